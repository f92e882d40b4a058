package measure

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/spillway-go/spillway/bench/scenarios"
)

func scenario(phases ...scenarios.Phase) *scenarios.Scenario {
	return &scenarios.Scenario{
		ID: "test", Deadline: 100 * time.Millisecond, App: scenarios.App{Slots: 1, Service: 10 * time.Millisecond}, Phases: phases,
		Populations: []scenarios.Population{{Name: "all", Clients: 4, Service: 10 * time.Millisecond}},
	}
}

// within tells whether two latencies are the same to the three digits of the histograms.
func within(a, b time.Duration) bool { return a >= b-b/500 && a <= b+b/500 }

// TestTwoHumpsStayApart is the case in which sketches mislead: 94 % at 7 ms and 6 % at 1502 ms.
func TestTwoHumpsStayApart(t *testing.T) {
	var l Latency
	for i := range 100_000 {
		if i%100 < 94 {
			l.Add(7 * time.Millisecond)
		} else {
			l.Add(1502 * time.Millisecond)
		}
	}
	if q := l.Quantile(.94); !within(q, 7*time.Millisecond) {
		t.Errorf("q .94 = %v, want 7ms", q)
	}
	if q := l.Quantile(.942); !within(q, 1502*time.Millisecond) {
		t.Errorf("q .942 = %v, want 1.502s", q)
	}
}

func TestMergedIsTheHistogramOfTheUnion(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var a, b, union Latency
	for i := range 10_000 {
		d := time.Duration(rng.ExpFloat64() * float64(20*time.Millisecond))
		union.Add(d)
		if i%3 == 0 {
			a.Add(d)
		} else {
			b.Add(d)
		}
	}
	a.Merge(&b)
	for _, q := range []float64{0, .1, .5, .9, .99, .999, 1} {
		if a.Quantile(q) != union.Quantile(q) {
			t.Errorf("q %v: merged %v, union %v", q, a.Quantile(q), union.Quantile(q))
		}
	}
	if a.Count() != 10_000 {
		t.Errorf("%d values", a.Count())
	}
}

func TestWhatIsTooSlowForTheHistogramCountsAsTheSlowest(t *testing.T) {
	var l Latency
	l.Add(time.Hour)
	l.Add(-time.Second)
	if q := l.Quantile(1); !within(q, time.Minute) || l.Count() != 2 {
		t.Errorf("max %v of %d", q, l.Count())
	}
}

// answered records n requests that ended alike.
func answered(r *Recorder, n int, at time.Duration, o Outcome, latency time.Duration) {
	for range n {
		r.Asked(at, 0, 1, false)
		r.Ended(End{At: at, Client: 1, Outcome: o, Latency: latency})
	}
}

func TestQuickRefusalsDoNotFlatterTheAdmitted(t *testing.T) {
	r := NewRecorder(scenario(scenarios.Phase{Name: "p", For: 10 * time.Second}), "none", "sim", 1, 1)
	answered(r, 1000, time.Second, OK, 50*time.Millisecond)
	answered(r, 10, time.Second, Timeout, 100*time.Millisecond)
	answered(r, 100_000, time.Second, Shed, 10*time.Microsecond)
	s := r.Finish().Sum(Pick{})
	if p := s.Admitted.Quantile(.5); !within(p, 50*time.Millisecond) {
		t.Errorf("p50 of the admitted %v, want 50ms", p)
	}
	if p := s.Admitted.Quantile(.999); !within(p, 100*time.Millisecond) {
		t.Errorf("p99.9 %v: clients that gave up have vanished", p)
	}
}

func TestWarmUpIsDrawnButJudgedByNothing(t *testing.T) {
	r := NewRecorder(scenario(scenarios.Phase{Name: "w", For: 2 * time.Second, Warmup: true}, scenarios.Phase{Name: "p", For: 2 * time.Second}), "none", "sim", 1, 1)
	answered(r, 5, time.Second, Shed, 0)
	answered(r, 7, 3*time.Second, OK, time.Millisecond)
	run := r.Finish()
	if s := run.Sum(Pick{}); s.Asked != 7 || s.Success() != 1 {
		t.Errorf("asked %d, success %v", s.Asked, s.Success())
	}
	if run.Series.Points[1].Asked != 5 || run.Series.Points[3].Asked != 7 {
		t.Errorf("series %+v", run.Series.Points)
	}
}

func TestWindowsGoByTheScheduledTime(t *testing.T) {
	r := NewRecorder(scenario(scenarios.Phase{Name: "p", For: 5 * time.Second}), "none", "sim", 1, 1)
	r.Asked(time.Second, 0, 0, false)
	r.Asked(3*time.Second, 0, 0, false)
	r.Ended(End{At: 3 * time.Second, Outcome: OK, Latency: time.Millisecond})
	r.Ended(End{At: time.Second, Outcome: Late, Latency: 3 * time.Second})
	points := r.Finish().Series.Points
	if points[1].Counts[Late] != 1 || points[1].P99 < 2_900_000 || points[3].P99 > 1100 {
		t.Errorf("windows %+v", points)
	}
}

func TestADayTakesNoMoreMemoryThanAMinute(t *testing.T) {
	r := NewRecorder(scenario(scenarios.Phase{Name: "p", For: 24 * time.Hour}), "none", "sim", 1, 1)
	n := testing.AllocsPerRun(1, func() {
		for at := time.Duration(0); at < 24*time.Hour; at += 10 * time.Second {
			answered(r, 1, at, OK, time.Millisecond)
		}
	})
	// A histogram for the phase and one for each window that answers can still come for, and no more.
	if n > 30 {
		t.Errorf("%v allocations", n)
	}
	if run := r.Finish(); len(run.Series.Points) > mostWindows || run.Fine.Window != 0 {
		t.Errorf("%d windows, fine %v", len(run.Series.Points), run.Fine.Window)
	}
}

func TestTheMeanLimitIsThatOfAllReadingsInAWindow(t *testing.T) {
	r := NewRecorder(scenario(scenarios.Phase{Name: "p", For: 24 * time.Hour}), "none", "sim", 1, 1)
	window := r.run.Series.Window.Duration()
	for i, limit := range []int{20, 45, 25, 4} { // three in the first window, one in the next but one
		r.Gauge([]time.Duration{0, time.Second, window - 1, 2 * window}[i], limit, 0, 0)
	}
	p := r.Finish().Series.Points
	if p[0].MeanLimit != 30 || p[0].Limit != 25 || p[1].MeanLimit != 0 || p[2].MeanLimit != 4 {
		t.Errorf("%+v", p[:3])
	}
}

func TestRetriesAreAttemptsAndNotRequests(t *testing.T) {
	r := NewRecorder(scenario(scenarios.Phase{Name: "p", For: time.Second}), "none", "sim", 1, 1)
	r.Asked(0, 0, 0, false)
	r.Asked(1, 0, 0, true)
	r.Asked(2, 0, 0, true)
	if s := r.Finish().Sum(Pick{}); s.Asked != 1 || s.Attempts != 3 {
		t.Errorf("asked %d, attempts %d", s.Asked, s.Attempts)
	}
}

func TestManyClientsAreKeptAsCohorts(t *testing.T) {
	s := scenario(scenarios.Phase{Name: "p", For: time.Second})
	s.Populations[0].Clients = 1000
	r := NewRecorder(s, "none", "sim", 1, 1)
	for c := range 1000 {
		r.Asked(0, 0, c, false)
	}
	clients := r.Finish().Clients
	if len(clients) != cohorts {
		t.Fatalf("%d bars", len(clients))
	}
	for i, c := range clients {
		if c.Asked[0] != 1000/cohorts {
			t.Errorf("cohort %d asked %d", i, c.Asked[0])
		}
	}
}

func TestARunSurvivesItsFile(t *testing.T) {
	r := NewRecorder(scenario(scenarios.Phase{Name: "p", For: time.Second}), "none", "sim", 1, 1)
	answered(r, 100, 0, OK, 7*time.Millisecond)
	run := r.Finish()
	text, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	var back Run
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	a, b := run.Sum(Pick{}), back.Sum(Pick{})
	if a.Admitted.Quantile(.99) != b.Admitted.Quantile(.99) || a.Counts != b.Counts || len(back.Clients) != len(run.Clients) {
		t.Errorf("%+v became %+v", a, b)
	}
	if err := json.Unmarshal([]byte(`{"phases":[{"populations":[{"latency":["nonsense","","","",""]}]}]}`), &back); err == nil {
		t.Error("a broken histogram was read")
	}
}
