package shed

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/health"
)

// The tests here are named after kinds of defects that limiters have had.

// queue-abandoned-waiter: who gave up in the line must not be handed the next slot, nor keep its place.
func TestQueueAbandonedWaiterIsHandedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, fixed(1, Queue{Capacity: 8, MaxWait: time.Second}))
		running := admitted(t, s, Request{})
		var gave sync.WaitGroup
		for range 8 {
			gave.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(10*ms, cancel)
				if _, err := s.Admit(ctx, Request{}); !errors.Is(err, context.Canceled) {
					t.Errorf("%v", err)
				}
			})
		}
		gave.Wait()
		if st := s.Status(); st.Waiting != 0 || st.Gone != 8 {
			t.Errorf("%d wait, %d have gone, want 0 and 8", st.Waiting, st.Gone)
		}
		running.Done(Success)
		began := time.Now()
		if admitted(t, s, Request{}).Done(Success); time.Since(began) != 0 || s.Status().InFlight != 0 {
			t.Errorf("the slot came after %v, %d in flight", time.Since(began), s.Status().InFlight)
		}
	})
}

// queue-lost-wakeup: with one slot and a hundred callers in a loop everybody gets through. A wake-up that is lost would leave
// somebody waiting although nothing runs, and the wait would expire.
func TestQueueLostWakeupHappensToNobody(t *testing.T) {
	s := open(t, fixed(1, Queue{Capacity: 100, MaxWait: time.Minute}))
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for range 20 {
				p, err := s.Admit(t.Context(), Request{})
				if err != nil {
					t.Error(err)
					return
				}
				p.Done(Ignored)
			}
		})
	}
	all.Wait()
	if st := s.Status(); st.InFlight != 0 || st.Waiting != 0 || st.Admitted != 2000 {
		t.Errorf("%d in flight, %d waiting, %d admitted", st.InFlight, st.Waiting, st.Admitted)
	}
}

// queue-busy-loop: in a bubble time only goes on when everybody sleeps, so 50 waiters that spin would never see the second pass.
func TestQueueBusyLoopIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, fixed(1, Queue{Capacity: 50, MaxWait: 2 * time.Second}))
		running := admitted(t, s, Request{})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { admitted(t, s, Request{}).Done(Success) })
		}
		synctest.Wait()
		began := time.Now()
		time.AfterFunc(time.Second, func() { running.Done(Success) })
		all.Wait()
		if time.Since(began) != time.Second {
			t.Errorf("all were served after %v", time.Since(began))
		}
	})
}

// off-by-one: exactly the limit runs.
func TestOffByOneIsNot(t *testing.T) {
	for _, limit := range []int{1, 2, 7} {
		s := open(t, fixed(limit, Queue{Capacity: -1}))
		for range limit {
			defer admitted(t, s, Request{}).Done(Ignored)
		}
		refused(t, s, Request{}, Overloaded)
		if got := s.Status().InFlight; got != limit {
			t.Errorf("%d run under a limit of %d", got, limit)
		}
	}
}

// permit-leak: work that panics gives its slot back, and a second Done takes nobody else's.
func TestPermitLeakByPanic(t *testing.T) {
	s := open(t, fixed(2, Queue{Capacity: -1}))
	for range 10 {
		func() {
			defer func() { _ = recover() }()
			p := admitted(t, s, Request{})
			defer func() { p.Done(Ignored); p.Done(Success) }()
			panic("work")
		}()
	}
	if got := s.Status().InFlight; got != 0 {
		t.Errorf("%d in flight after panics", got)
	}
}

// goroutine-leak: closing ends those who wait, and leaves no goroutine; the bubble fails if one stays.
func TestGoroutineLeakByClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(fixed(1, Queue{Capacity: 10, MaxWait: time.Hour}))
		if err != nil {
			t.Fatal(err)
		}
		p := admitted(t, s, Request{})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := s.Admit(t.Context(), Request{}); !errors.Is(err, ErrClosed) {
					t.Errorf("%v", err)
				}
			})
		}
		synctest.Wait()
		s.Close()
		all.Wait()
		p.Done(Success)
	})
}

// queue-cancel: who is cancelled returns in that instant and stands in the line no longer
// (platinummonkey/go-concurrency-limits#93).
func TestQueueCancelIsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, fixed(1, Queue{Capacity: 10, MaxWait: time.Minute}))
		held := admitted(t, s, Request{})
		defer held.Done(Success)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		start := time.Now()
		_, err := s.Admit(ctx, Request{})
		if took := time.Since(start); !errors.Is(err, context.Canceled) || took != 10*time.Millisecond {
			t.Errorf("%v after %v, want to be cancelled after 10ms", err, took)
		}
		if n := s.Status().Waiting; n != 0 {
			t.Errorf("%d still wait", n)
		}
	})
}

// goroutine-leak: shedders that were closed leave no goroutine, and closing one twice is fine.
func TestGoroutineLeakByManyShedders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a bubble does not end while a goroutine of it lives
		before := runtime.NumGoroutine()
		for i := range 1000 {
			cfg := fixed(1, Queue{})
			cfg.Health = health.Config{Off: i%10 != 0}
			s, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			admitted(t, s, Request{}).Done(Success)
			s.Close()
			s.Close()
		}
		synctest.Wait()
		if after := runtime.NumGoroutine(); after > before+10 {
			t.Errorf("%d goroutines before and %d after", before, after)
		}
		idle := runtime.NumGoroutine()
		held := open(t, fixed(1, Queue{}))
		if runtime.NumGoroutine() <= idle {
			t.Error("an open shedder has no goroutine, so this test proves nothing")
		}
		held.Close()
	})
}
