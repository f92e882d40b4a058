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

// The tests of this file are named after kinds of defects that admission controls have had; CONTRIBUTING.md lists them all.

// queue-abandoned-waiter: who gave up is handed no permit (failsafe-lib/failsafe#393).
func TestKindQueueAbandonedWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, fixed(1, Queue{Capacity: 8, MaxWait: time.Minute}))
		held := admitted(t, s, Request{})
		short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if p, err := s.Admit(short, Request{}); err == nil {
					p.Done(Success)
					t.Error("admitted at limit 1 beside another")
				}
			})
		}
		all.Wait()
		held.Done(Success)
		start := time.Now()
		admitted(t, s, Request{}).Done(Success)
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the place was free, yet it took %v", waited)
		}
		if st := s.Status(); st.InFlight != 0 || st.Waiting != 0 {
			t.Errorf("at the end %d run and %d wait", st.InFlight, st.Waiting)
		}
	})
}

// queue-busy-loop: who waits blocks. In a bubble time goes on only while everybody blocks: with a waiter that spins this test
// would never see its second pass (platinummonkey/go-concurrency-limits#162).
func TestKindQueueBusyLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, fixed(1, Queue{Capacity: 50, MaxWait: time.Minute}))
		held := admitted(t, s, Request{})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { admitted(t, s, Request{}).Done(Success) })
		}
		synctest.Wait()
		if st := s.Status(); st.Waiting != 50 {
			t.Errorf("%d wait, want 50", st.Waiting)
		}
		start := time.Now()
		time.Sleep(time.Second)
		if passed := time.Since(start); passed != time.Second {
			t.Errorf("a second took %v", passed)
		}
		held.Done(Success)
		all.Wait()
	})
}

// queue-cancel: who is cancelled returns in that instant and stands in the line no longer
// (platinummonkey/go-concurrency-limits#93).
func TestKindQueueCancel(t *testing.T) {
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
func TestKindGoroutineLeak(t *testing.T) {
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
		held := open(t, fixed(1, Queue{}))
		if runtime.NumGoroutine() == before {
			t.Error("an open shedder has no goroutine, so this test proves nothing")
		}
		held.Close()
	})
}
