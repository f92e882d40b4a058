package shed

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

func TestWhoHasLeftBeforeIsNotAdmittedAtOnce(t *testing.T) {
	s := open(t, fixed(1, Queue{}))
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := s.Admit(ctx, Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if st := s.Status(); st.InFlight != 0 || st.Gone != 1 || st.Admitted != 0 {
		t.Errorf("%d in flight, %d gone, %d admitted", st.InFlight, st.Gone, st.Admitted)
	}
}

func TestAnObserverThatPanicsTakesNoQuotaWithIt(t *testing.T) {
	cfg := fixed(1, Queue{Capacity: -1})
	cfg.Limits = []Limit{{Name: "per-client", Rule: limits.TokenBucket{Capacity: 1, Refill: limits.PerDay(1)}}}
	wild := true
	cfg.Observer = ObserverFunc(func(e Event) {
		if wild && e.Kind == Admitted {
			panic("observer")
		}
	})
	s := open(t, cfg)
	func() {
		defer func() { _ = recover() }()
		s.Admit(t.Context(), Request{Client: "a"})
	}()
	wild = false
	admitted(t, s, Request{Client: "a"}).Done(Success)
	refused(t, s, Request{Client: "a"}, OverLimit)
}

// TestWhoFindsNoRoomAnyMoreAfterItsChargeIsTreatedAsAnybody lets the last place go between the look at the gate and the charge.
func TestWhoFindsNoRoomAnyMoreAfterItsChargeIsTreatedAsAnybody(t *testing.T) {
	day := func(n int64) limits.Rule { return limits.TokenBucket{Capacity: n, Refill: limits.PerDay(1)} }
	for _, c := range []struct {
		name     string
		queue    Queue
		capacity int64
		reason   Reason // "" if it has to wait
		left     int    // of the quota in the end
	}{
		{"no line", Queue{Capacity: -1}, 3, Overloaded, 2},
		{"a line", Queue{}, 3, "", 1},
		{"no quota", Queue{}, 1, OverLimit, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := fixed(1, c.queue)
				cfg.Limits = []Limit{{Name: "per-client", Rule: day(c.capacity)}}
				s := open(t, cfg)
				req := Request{Client: "a"}
				last := admitted(t, s, req)
				time.AfterFunc(time.Millisecond, func() { last.Done(Success) })
				p, err := s.admitAtOnce(t.Context(), s.current().route(""), &req)
				if r, ok := err.(*Rejection); c.reason != "" && (!ok || r.Reason != c.reason) || c.reason == "" && err != nil {
					t.Fatalf("error %v, want %q", err, c.reason)
				}
				p.Done(Success)
				time.Sleep(time.Second)
				st := s.Status()
				if want := c.reason == ""; st.InFlight != 0 || (st.Admitted == 2) != want {
					t.Errorf("%d in flight, %d admitted", st.InFlight, st.Admitted)
				}
				for range c.left {
					admitted(t, s, req).Done(Success)
				}
				refused(t, s, req, OverLimit)
			})
		})
	}
}

// TestASlowRouteIsSeenByWhoIsAdmittedAtOnce lets all work of a route hang between two ticks, while another route is well.
func TestASlowRouteIsSeenByWhoIsAdmittedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(100, Queue{})
		cfg.Routes = []Route{{Name: "slow", Match: "/slow"}, {Name: "well", Match: "/well"}}
		s := open(t, cfg)
		work := func(route string) {
			p := admitted(t, s, Request{Route: route})
			time.Sleep(5 * time.Millisecond)
			p.Done(Success)
		}
		for range 2 * pulseFirst {
			work("slow")
			work("well")
		}
		time.Sleep(TickEvery - s.clock.now()%TickEvery + 5*time.Millisecond)
		for range 20 {
			defer admitted(t, s, Request{Route: "slow"}).Done(Success)
		}
		for range 6 {
			work("well")
		}
		slow := func() bool { return s.Status().Routes[0].Slow }
		if slow() {
			t.Fatal("somebody has looked already, so this test proves nothing")
		}
		defer admitted(t, s, Request{Route: "slow"}).Done(Success)
		if !slow() {
			t.Error("20 requests have taken six times as long as usual, and nobody who came has noticed")
		}
	})
}
