package shed

import (
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/concurrency"
)

func TestTheExplanationNamesTheCause(t *testing.T) {
	m := laneMachine(t, 20)
	says := func(want ...string) {
		t.Helper()
		text := m.Status().Explain.Text
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%q does not say %q", text, w)
			}
		}
	}
	now := time.Duration(0)
	tick := func(n int, pressure float64) {
		for range n {
			now += TickEvery
			m.Tick(now, pressure, true)
		}
	}
	tick(1, 0)
	says("0 of 20 places are in use, so nobody waits.")
	if c := m.Status().Explain.Change; c != (LimitChange{}) {
		t.Errorf("a change out of nothing: %+v", c)
	}
	running := crowdIn(m, now, "b", 20)
	waiting := new(Job)
	m.Admit(now, waiting, Request{Client: "secret", Route: "a"})
	says("20 of 20 places are in use, and 1 wait for one, 1 of them from client ")
	if strings.Contains(m.Status().Explain.Text, "secret") {
		t.Error("a client's name is shown")
	}
	m.Leave(now, waiting)
	tick(5, 1)
	says("Health holds the limit below the 20", "(health)")
	before := m.Status().Explain.Change
	if before.Reason != "health" || before.From <= before.To || before.To != m.Status().Limit || before.Ago != 0 {
		t.Errorf("%+v with a limit of %d", before, m.Status().Limit)
	}
	tick(7, .3) // held
	if c := m.Status().Explain.Change; c.To != before.To || time.Duration(c.Ago) != 700*ms {
		t.Errorf("%+v, want the same change, 700 ms later", c)
	}
	m.RoutePressure("a", 1, health.OK)
	crowdIn(m, now, "a", 1)
	for _, j := range running[:10] {
		m.Done(now, j, Success)
	}
	crowdIn(m, now, "a", 4)
	tick(10, .3)
	if m.lane("a").Bound > 0 {
		says("Route a is held to", "under pressure")
	} else {
		t.Error("route a is not held")
	}
}

func TestAReloadIsAReason(t *testing.T) {
	cfg := fixed(10, Queue{})
	s := open(t, cfg)
	s.tick(0, false, nil)
	cfg.Concurrency = concurrency.Config{Algorithm: "fixed", Min: 1, Max: 5, Initial: 5}
	if _, err := s.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	if c := s.Status().Explain.Change; c.From != 10 || c.To != 5 || c.Reason != "reload" {
		t.Errorf("%+v, want from 10 to 5 by reload", c)
	}
}

func TestTheExplanationNamesAStoreThatIsAway(t *testing.T) {
	since := time.Date(2026, 5, 1, 10, 0, 7, 0, time.FixedZone("", 3600))
	for state, want := range map[string]string{
		"up":     "",
		"down":   " The store of the quotas is not asked, since 09:00:07 UTC (refused): each limit does what its on_failure says.",
		"faulty": " The store of the quotas answers with errors that somebody has to mend, since 09:00:07 UTC (refused): each limit does what its on_failure says.",
	} {
		st := Status{Limit: 3, Store: &limits.Report{State: state, Since: since, Error: "refused"}}
		st.explain()
		if got, ok := strings.CutPrefix(st.Explain.Text, "0 of 3 places are in use, so nobody waits."); !ok || got != want {
			t.Errorf("%s: %q", state, st.Explain.Text)
		}
	}
}
