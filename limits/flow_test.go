package limits_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

const ms = time.Millisecond

// bytesOf returns a flow of its own for the key k.
func bytesOf(t *testing.T, rule limits.Rule) (*limits.Flow, limits.Store, limits.Charge) {
	t.Helper()
	c := limits.Charge{Policy: must(limits.NewPolicy("bytes", rule)), Key: "k"}
	store := newMemory(t, limits.MemoryConfig{})
	return must(limits.NewFlow(store, c)), store, c
}

func TestWaitersStartInOrderAndEachAtItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := must(limits.NewPolicy("turns", limits.Delay{Rule: limits.LeakyBucket{Capacity: 10, Leak: limits.PerSecond(10)}}))
		store, start := newMemory(t, limits.MemoryConfig{}), time.Now()
		var all sync.WaitGroup
		for i := range 10 {
			time.Sleep(time.Nanosecond)
			all.Go(func() {
				d, err := limits.Wait(t.Context(), store, []limits.Charge{{Policy: p, Key: "k", Cost: 1}})
				if err != nil || !d.Allowed {
					t.Errorf("waiter %d: %+v, %v", i, d, err)
				}
				if at := time.Since(start).Round(ms); at != time.Duration(i)*100*ms {
					t.Errorf("waiter %d starts at %v", i, at)
				}
			})
			synctest.Wait()
		}
		all.Wait()
	})
}

func TestATurnBehindTheDeadlineIsGivenBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := must(limits.NewPolicy("turns", limits.Delay{Rule: limits.LeakyBucket{Capacity: 2, Leak: limits.PerSecond(1)}, MaxWait: time.Minute}))
		store, start := newMemory(t, limits.MemoryConfig{}), time.Now()
		charges := []limits.Charge{{Policy: p, Key: "k", Cost: 1}}
		must(limits.Wait(t.Context(), store, charges))
		short, cancel := context.WithTimeout(t.Context(), 999*ms)
		defer cancel()
		if _, err := limits.Wait(short, store, charges); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		long, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if d, err := limits.Wait(long, store, charges); err != nil || !d.Allowed || time.Since(start) != time.Second {
			t.Errorf("with just enough time: %v, %v after %v", d.Allowed, err, time.Since(start))
		}
		// Who leaves while waiting gives its turn back, and a refusal is no error.
		leaving, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := limits.Wait(leaving, store, charges)
			left <- err
		}()
		synctest.Wait()
		go func() { left <- errors.Join(waited(t, store, charges)) }()
		synctest.Wait()
		if d, err := limits.Wait(t.Context(), store, charges); err != nil || d.Allowed || d.Binding().Reason != limits.OverLimit {
			t.Errorf("a third to wait: %+v, %v", d, err)
		}
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who left: %v", err)
		}
		if d := must(store.Peek(t.Context(), time.Now(), charges)); !d.Allowed {
			t.Errorf("the place of who left is not free: %+v", d)
		}
		if err := <-left; err != nil {
			t.Error(err)
		}
	})
}

func waited(t *testing.T, store limits.Store, charges []limits.Charge) error {
	_, err := limits.Wait(t.Context(), store, charges)
	return err
}

func TestAStreamRunsAtThePaceOfItsRule(t *testing.T) {
	data := strings.Repeat("0123456789", 1000)
	for name, rule := range map[string]limits.Rule{
		"bucket that refuses": limits.TokenBucket{Capacity: 1000, Refill: limits.PerSecond(1000)},
		"bucket with turns":   limits.Delay{Rule: limits.TokenBucket{Capacity: 1000, Refill: limits.PerSecond(1000)}},
		"window":              limits.SlidingLog{Quota: limits.PerSecond(1000)},
	} {
		synctest.Test(t, func(t *testing.T) {
			flow, _, _ := bytesOf(t, rule)
			start := time.Now()
			got, err := io.ReadAll(limits.NewReader(t.Context(), strings.NewReader(data), flow))
			if err != nil || string(got) != data {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
			want := 9 * time.Second // 1000 at once, 9000 at 1000/s
			if name == "window" {
				want = 10 * time.Second // what is read in parts of 512 does not fill a window of 1000
			}
			if took := time.Since(start); took != want {
				t.Errorf("%s: reading 10000 bytes took %v, want %v", name, took, want)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			flow, _, _ := bytesOf(t, rule)
			start := time.Now()
			var sink bytes.Buffer
			n, err := limits.NewWriter(t.Context(), &sink, flow).Write([]byte(data))
			if err != nil || n != len(data) || sink.String() != data {
				t.Errorf("%s: %d bytes, %v", name, n, err)
			}
			if took := time.Since(start); took != 9*time.Second {
				t.Errorf("%s: writing 10000 bytes took %v, want 9s", name, took)
			}
		})
	}
}

func TestStreamsOfOneKeyShareItsFlowInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flow, _, _ := bytesOf(t, limits.Delay{Rule: limits.LeakyBucket{Capacity: 100, Leak: limits.PerSecond(100)}, MaxWait: time.Minute})
		start := time.Now()
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Nanosecond)
				var sink bytes.Buffer
				if n, err := limits.NewWriter(t.Context(), &sink, flow).Write(make([]byte, 50)); n != 50 || err != nil {
					t.Errorf("stream %d: %d bytes, %v", i, n, err)
				}
				if at := time.Since(start).Round(ms); at != time.Duration(min(i, 3))*500*ms && i < 3 {
					t.Errorf("stream %d has its turn at %v", i, at)
				}
			})
		}
		all.Wait()
		if took := time.Since(start).Round(ms); took != 1500*ms {
			t.Errorf("four streams of 50 at 100/s took %v, want 1.5s", took)
		}
	})
}

func TestAStreamEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flow, store, c := bytesOf(t, limits.TokenBucket{Capacity: 10, Refill: limits.PerSecond(1)})
		short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		var sink bytes.Buffer
		n, err := limits.NewWriter(short, &sink, flow).Write(make([]byte, 100))
		if n != 10 || sink.Len() != 10 || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 0 {
			t.Errorf("%d written after %v: %v", n, time.Since(start), err)
		}
		time.Sleep(2 * time.Second)
		c.Cost = 2
		if d := must(store.Take(t.Context(), time.Now(), []limits.Charge{c})); !d.Allowed {
			t.Error("what did not pass stays charged")
		}
		gone, leave := context.WithCancel(t.Context())
		go func() {
			time.Sleep(1500 * ms)
			leave()
		}()
		got, err := io.ReadAll(limits.NewReader(gone, strings.NewReader(strings.Repeat("x", 50)), flow))
		if len(got) != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("%d read: %v", len(got), err)
		}
	})
}

func TestAFlowThroughWhichNothingPassesSaysSo(t *testing.T) {
	flow, store, c := bytesOf(t, limits.TokenBucket{Capacity: 0, Refill: limits.PerSecond(1)})
	if n, err := limits.NewWriter(t.Context(), io.Discard, flow).Write([]byte("x")); n != 0 || !errors.Is(err, limits.ErrNoFlow) {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := limits.NewReader(t.Context(), strings.NewReader("x"), flow).Read(make([]byte, 9)); n != 0 || !errors.Is(err, limits.ErrNoFlow) {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := flow.Pass(t.Context(), 0); n != 0 || err != nil {
		t.Errorf("nothing at all: %d, %v", n, err)
	}
	c.Shadow = true // watches only
	watched := must(limits.NewFlow(store, c))
	if n, err := limits.NewWriter(t.Context(), io.Discard, watched).Write(make([]byte, 1000)); n != 1000 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for want, c := range map[string]limits.Charge{
		"limits: charge 0 of a flow: there is no policy":              {},
		`limits: charge 0 of a flow: policy "p" counts what is in fl`: {Policy: must(limits.NewPolicy("p", limits.InFlight{Max: 1}))},
	} {
		if _, err := limits.NewFlow(store, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A stream is slowed down to 64 KiB a second after its first megabyte.
func ExampleNewReader() {
	p := must(limits.NewPolicy("uploads", limits.TokenBucket{Capacity: 1 << 20, Refill: must(limits.ParseRate("64KiB/s"))}))
	store := must(limits.NewMemory(limits.MemoryConfig{}))
	flow := must(limits.NewFlow(store, limits.Charge{Policy: p, Key: "customer-42"}))
	body := limits.NewReader(context.Background(), strings.NewReader("an upload"), flow)
	io.Copy(io.Discard, body) // takes its time when the client has used up its burst
}

// half is a writer whose other end goes away after so many bytes.
type half struct{ room int }

func (h *half) Write(p []byte) (int, error) {
	n := min(len(p), h.room)
	h.room -= n
	if n < len(p) {
		return n, io.ErrClosedPipe
	}
	return n, nil
}

func TestWhatWasNotWrittenIsGivenBackAndWhatWasPaidPassesFreely(t *testing.T) {
	for _, c := range []struct {
		paid       int64
		room, size int
		left       int64
	}{
		{0, 100, 10, 90}, {0, 4, 10, 96}, {0, 0, 10, 100}, {1, 100, 10, 91}, {1, 0, 10, 100}, {1, 4, 10, 97}, {20, 100, 10, 100}, {0, 70, 80, 30},
	} {
		flow, store, charge := bytesOf(t, limits.TokenBucket{Capacity: 100, Refill: limits.Rate{Amount: 1, Per: limits.Day}})
		w := limits.NewWriter(t.Context(), &half{c.room}, flow)
		w.Paid = c.paid
		n, err := w.Write(make([]byte, c.size))
		if want := min(c.room, c.size); n != want || (err == nil) != (want == c.size) {
			t.Errorf("%+v: wrote %d, %v", c, n, err)
		}
		d, err := store.Peek(t.Context(), time.Now(), []limits.Charge{charge})
		if err != nil || d.At(0).Remaining != c.left {
			t.Errorf("%+v: %d left, %v", c, d.At(0).Remaining, err)
		}
	}
}
