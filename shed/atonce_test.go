package shed

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
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
