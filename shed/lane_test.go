package shed

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/health"
)

// lanes of a machine that runs n at once on the routes a, b and the default.
func laneMachine(t *testing.T, n int) *Machine {
	t.Helper()
	cfg := fixed(n, Queue{})
	cfg.Routes = []Route{{Name: "a"}, {Name: "b"}}
	cfg.Health.Checks = []health.Check{{
		Name: "db", Routes: []string{"a"}, Thresholds: health.Thresholds{Low: 0, High: 1},
		Func: func(context.Context) (float64, error) { return 0, nil },
	}}
	m, err := NewMachine(cfg, time.Unix(0, 0), 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// crowdIn lets n requests to a route in, and returns those that run.
func crowdIn(m *Machine, now time.Duration, route string, n int) (running []*Job) {
	for range n {
		j := new(Job)
		if m.Admit(now, j, Request{Route: route}); j.State == Granted {
			running = append(running, j)
		} else {
			m.Leave(now, j)
		}
	}
	return running
}

func (m *Machine) lane(route string) RouteStatus {
	for _, r := range m.Status().Routes {
		if r.Route == route {
			return r
		}
	}
	return RouteStatus{}
}

func TestPressureOnWhatOneRouteNeedsNarrowsThatRouteOnly(t *testing.T) {
	m := laneMachine(t, 20)
	now := time.Duration(0)
	all := crowdIn(m, now, "a", 10)
	tick := func(n int) {
		for range n {
			now += TickEvery
			m.Tick(now, 0, false)
		}
	}
	m.RoutePressure("a", 1, health.OK)
	tick(30)
	if got := m.lane("a"); got.Bound == 0 || got.Bound > 5 || got.HealthCap != got.Bound || got.Slow {
		t.Fatalf("after three seconds of pressure route a is %+v, want halved", got)
	}
	held := m.lane("a").Bound
	if n := len(crowdIn(m, now, "a", 1)); n != 0 {
		t.Error("10 run, more than may, and another one got in")
	}
	if n := len(crowdIn(m, now, "b", 10)); n != 10 {
		t.Errorf("%d of 10 got in on route b, which needs nothing that is ill", n)
	}
	m.RoutePressure("a", 1, health.Stale)
	if tick(20); m.lane("a").Bound != held {
		t.Errorf("a stale reading moved the bound from %d to %d", held, m.lane("a").Bound)
	}
	m.RoutePressure("a", 1, health.OK)
	if tick(600); m.lane("a").Bound != 1 {
		t.Errorf("after a minute the bound is %d, want the one place that shows a recovery", m.lane("a").Bound)
	}
	for _, j := range all {
		m.Done(now, j, Success)
	}
	if n := len(crowdIn(m, now, "a", 3)); n != 1 {
		t.Fatalf("%d of 3 got in, want one", n)
	}
	m.RoutePressure("a", 1, health.Failed)
	if tick(1); m.lane("a").Bound != 0 {
		t.Errorf("without an opinion of health there is still a bound of %d", m.lane("a").Bound)
	}
	m.RoutePressure("b", 1, health.OK) // no signal is scoped to it
	if tick(30); m.lane("b").Bound != 0 {
		t.Errorf("route b has a bound of %d although nothing is scoped to it", m.lane("b").Bound)
	}
}

// TestARouteAtItsBoundTakesNoQuota: it is refused before the rules are asked.
func TestARouteAtItsBoundTakesNoQuota(t *testing.T) {
	m := laneMachine(t, 20)
	cfg := m.s.current().config
	cfg.Limits = []Limit{bucket("each", 1, 1)}
	m, err := NewMachine(cfg, time.Unix(0, 0), 1)
	if err != nil {
		t.Fatal(err)
	}
	l := m.s.current().routes["a"].lane
	l.shut, m.s.gate.lanes.shut = 1, 1
	m.s.crowded.Store(true)
	l.inFlight = 1
	var j Job
	if m.Admit(0, &j, Request{Route: "a", Client: "c"}); j.State != TurnedAway || j.Rejection.Reason != Overloaded {
		t.Fatalf("%+v", j.Rejection)
	}
	if m.Admit(0, &j, Request{Route: "b", Client: "c"}); j.State != Granted {
		t.Errorf("the refusal has used up the client's quota: %v", j.Rejection)
	}
}

func TestSignalsAboutRoutesThatCannotBeShedAreErrors(t *testing.T) {
	for route, what := range map[string]string{"nowhere": "does not exist", "probes": "is exempt", "events": "is long-lived"} {
		cfg := fixed(4, Queue{})
		cfg.Routes = []Route{{Name: "probes", Exempt: true}, {Name: "events", LongLived: 3}}
		cfg.Health.Dependencies = []health.Dependency{{Name: "search", Routes: []string{route}}}
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), route) {
			t.Errorf("%s: %v, want that it %s", route, err, what)
		}
	}
}

func TestAReloadKeepsWhatIsKnownOfRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(20, Queue{})
		cfg.Routes = []Route{{Name: "a"}, {Name: "b"}}
		s := open(t, cfg)
		p := admitted(t, s, Request{Route: "a"})
		l := s.current().routes["a"].lane
		l.shut, l.pulse.slow = 3, true
		s.gate.lanes.shut = 1
		cfg.Routes = []Route{{Name: "a", Cost: 2}, {Name: "c"}}
		if _, err := s.Reload(cfg); err != nil {
			t.Fatal(err)
		}
		if st := s.Status().Routes; len(st) != 3 || st[0].InFlight != 1 || st[0].Bound != 3 || s.gate.lanes.shut != 1 {
			t.Errorf("after a reload: %+v, %d narrowed", st, s.gate.lanes.shut)
		}
		cfg.Routes = nil
		if _, err := s.Reload(cfg); err != nil {
			t.Fatal(err)
		}
		if st := s.Status().Routes; len(st) != 0 || s.gate.lanes.shut != 0 {
			t.Errorf("without routes: %+v, %d narrowed", st, s.gate.lanes.shut)
		}
		p.Done(Success)
		if st := s.Status(); st.InFlight != 0 {
			t.Errorf("%d in flight at the end", st.InFlight)
		}
	})
}

// TestADetachedStreamLeavesItsLane: neither what it takes nor what it holds is the route's any more.
func TestADetachedStreamLeavesItsLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(4, Queue{})
		cfg.Routes = []Route{{Name: "a"}}
		s := open(t, cfg)
		p := admitted(t, s, Request{Route: "a"})
		p.Detach()
		if st := s.Status().Routes[0]; st.InFlight != 0 {
			t.Errorf("%d in flight after Detach", st.InFlight)
		}
		time.Sleep(time.Hour)
		p.Done(Success)
		if l := s.current().routes["a"].lane; l.inFlight != 0 || l.pulse.running != 0 || l.pulse.n != 0 {
			t.Errorf("after Done: %+v", l)
		}
	})
}

// TestWhoWaitsForANarrowRouteIsToldAtItsTurn: the route was narrowed while they waited.
func TestWhoWaitsForANarrowRouteIsToldAtItsTurn(t *testing.T) {
	m := laneMachine(t, 1)
	running := crowdIn(m, 0, "b", 1)[0]
	var waiting, other Job
	m.Admit(0, &waiting, Request{Route: "a", Client: "x"})
	m.Admit(0, &other, Request{Route: "b", Client: "y"})
	if waiting.State != Standing || other.State != Standing {
		t.Fatal("nobody waits")
	}
	l := m.s.current().routes["a"].lane
	l.shut, l.inFlight = 1, 1
	m.Done(ms, running, Success)
	if waiting.State != TurnedAway || waiting.Rejection.Reason != Overloaded || other.State != Granted {
		t.Errorf("waiting %v %v, other %v", waiting.State, waiting.Rejection, other.State)
	}
	if m.Status().InFlight != 1 {
		t.Errorf("%d in flight", m.Status().InFlight)
	}
}
