package stats

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/spillway-go/spillway/shed"
)

const ms = time.Millisecond

// ticks decodes what After returns.
func ticks(t *testing.T, m *Meter, after int64) []Tick {
	t.Helper()
	raw, _ := m.After(after)
	all := make([]Tick, len(raw))
	for i, r := range raw {
		if err := json.Unmarshal(r, &all[i]); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestEveryRequestIsCountedAsWhatBecameOfIt(t *testing.T) {
	m := New()
	for range 9 {
		m.Arrived()
	}
	m.Observe(shed.Event{Kind: shed.Admitted})
	m.Observe(shed.Event{Kind: shed.Admitted, Wait: ms})
	m.Observe(shed.Event{Kind: shed.Admitted, Wait: ms + 1})
	for _, reason := range []shed.Reason{shed.OverLimit, shed.CostTooLarge, shed.Overloaded, shed.QueueFull, shed.WaitExpired, shed.FeatureOff} {
		m.Observe(shed.Event{Kind: shed.Refused, Reason: reason})
	}
	m.Observe(shed.Event{Kind: shed.Finished, Outcome: shed.Success})
	m.Close(Gauges{Limit: 20, InFlight: 7, Waiting: 3, Pressure: 0.5})
	want := []Tick{{
		Seq: 1, Counts: Counts{Offered: 9, Served: 2, Delayed: 1, Over: 2, Full: 3, Off: 1},
		Gauges: Gauges{Limit: 20, InFlight: 7, Waiting: 3, Pressure: 0.5}, P50: -1, P99: -1,
	}}
	if diff := cmp.Diff(want, ticks(t, m, 0)); diff != "" {
		t.Errorf("ticks (-want +got):\n%s", diff)
	}
	if n := m.Arrived(); n != 10 {
		t.Errorf("the next arrival is number %d, want 10", n)
	}
	if _, total := m.After(0); total != want[0].Counts {
		t.Errorf("total %+v, want %+v: the open tick does not count yet", total, want[0].Counts)
	}
	m.Close(Gauges{})
	if _, total := m.After(0); total.Offered != 10 {
		t.Errorf("%d offered in total, want 10", total.Offered)
	}
}

func TestOnlySuccessWithin250msIsGood(t *testing.T) {
	m := New()
	m.Answered(200, 250*ms)
	m.Answered(201, 20*ms)
	m.Answered(200, 251*ms)
	m.Answered(503, ms)
	m.Answered(429, ms)
	m.Answered(404, ms)
	m.Close(Gauges{})
	got := ticks(t, m, 0)[0]
	if got.Good != 2 || got.P50 != 250 || got.P99 != 251 {
		t.Errorf("good %d, p50 %d, p99 %d; want 2, 250, 251", got.Good, got.P50, got.P99)
	}
}

func TestQuantilesLookBackOneSecond(t *testing.T) {
	m := New()
	m.Answered(200, 100*ms)
	for i := range 2 * perSecond {
		m.Close(Gauges{})
		want := 100
		if i >= perSecond {
			want = -1
		}
		if got := ticks(t, m, int64(i))[0].P99; got != want {
			t.Errorf("tick %d: p99 is %d, want %d", i+1, got, want)
		}
	}
}

func TestAfterGivesEachTickOnceAndAtMostAMinute(t *testing.T) {
	m := New()
	if got := ticks(t, m, 0); len(got) != 0 {
		t.Fatalf("a new meter has %d ticks", len(got))
	}
	for range Kept + 10 {
		m.Close(Gauges{})
	}
	newest := int64(Kept + 10)
	for _, c := range []struct {
		after       int64
		first, many int64
		why         string
	}{
		{0, 11, int64(Kept), "a new page gets the last minute"},
		{newest - 2, newest - 1, 2, "the next poll gets what is new"},
		{newest, 0, 0, "nothing twice"},
		{3, 11, int64(Kept), "a page that slept gets the last minute"},
		{newest + 500, 11, int64(Kept), "a number from before a restart counts as none"},
		{-5, 11, int64(Kept), "nor does nonsense"},
	} {
		got := ticks(t, m, c.after)
		if int64(len(got)) != c.many || len(got) > 0 && got[0].Seq != c.first {
			t.Errorf("after %d: %d ticks, want %d from %d: %s", c.after, len(got), c.many, c.first, c.why)
		}
		for i := 1; i < len(got); i++ {
			if got[i].Seq != got[i-1].Seq+1 {
				t.Errorf("after %d: tick %d follows %d", c.after, got[i].Seq, got[i-1].Seq)
			}
		}
	}
}

func TestRunClosesFiveTicksASecondAndEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			m.Run(ctx, func() Gauges { return Gauges{Limit: 20} })
			close(done)
		}()
		time.Sleep(time.Second)
		synctest.Wait()
		cancel()
		<-done
		got := ticks(t, m, 0)
		if len(got) != 5 || got[4].Limit != 20 {
			t.Errorf("after a second: %+v, want five ticks with limit 20", got)
		}
	})
}

func TestLatencyQuantilesAgreeWithSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.IntRange(0, 1500), 1, 200).Draw(t, "ms")
		var a, b, all latencies
		for i, v := range values {
			half := &a
			if i%2 == 0 {
				half = &b
			}
			half.add(time.Duration(v) * ms)
		}
		all.merge(&a)
		all.merge(&b)
		slices.Sort(values)
		for _, percent := range []int{1, 50, 99, 100} {
			rank := (len(values)*percent + 99) / 100
			if got, want := all.quantile(percent), min(values[rank-1], 1000); got != want {
				t.Fatalf("quantile %d is %d, want %d", percent, got, want)
			}
		}
	})
}
