package shed

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// brokenStore decides nothing.
type brokenStore struct{ limits.Store }

func (brokenStore) Take(context.Context, time.Time, []limits.Charge) (limits.Decision, error) {
	return limits.Decision{}, errors.New("no answer")
}

// TestAShadowRefusesNothingAndSaysWhatItWouldHave runs each kind of refusal through a shadow, and through the same configuration that
// acts: the reasons are the same.
func TestAShadowRefusesNothingAndSaysWhatItWouldHave(t *testing.T) {
	for _, row := range []struct {
		name   string
		cfg    func() Config
		before int // requests that stay in flight
		req    Request
		want   Reason
	}{
		{"nothing", func() Config { return fixed(4, Queue{}) }, 0, Request{}, ""},
		{"a limit", func() Config {
			cfg := fixed(4, Queue{})
			cfg.Limits = []Limit{bucket("each", 1, 1)}
			return cfg
		}, 1, Request{Client: "a"}, OverLimit},
		{"a cost above the capacity", func() Config {
			cfg := fixed(4, Queue{})
			cfg.Limits = []Limit{bucket("each", 1, 1)}
			return cfg
		}, 0, Request{Client: "a", Cost: 2}, CostTooLarge},
		{"too many at once", func() Config {
			cfg := fixed(4, Queue{})
			cfg.Limits = []Limit{{Name: "parallel", Rule: limits.InFlight{Max: 1}}}
			return cfg
		}, 1, Request{Client: "a"}, InFlight},
		{"nobody known", func() Config {
			cfg := fixed(4, Queue{})
			cfg.Limits = []Limit{bucket("each", 1, 1)}
			return cfg
		}, 0, Request{}, NoIdentity},
		{"a store that is gone", func() Config {
			cfg := fixed(4, Queue{})
			cfg.Limits, cfg.Store = []Limit{bucket("each", 1, 1)}, brokenStore{}
			return cfg
		}, 0, Request{Client: "a"}, StoreUnavailable},
		{"no line", func() Config { return fixed(2, Queue{Capacity: -1}) }, 2, Request{}, Overloaded},
		{"a full line", func() Config { return fixed(1, Queue{Capacity: 1}) }, 2, Request{}, QueueFull},
		{"a full budget", func() Config {
			cfg := fixed(4, Queue{})
			cfg.Routes = []Route{{Name: "live", LongLived: 1}}
			return cfg
		}, 1, Request{Route: "live"}, Overloaded},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := row.cfg()
				cfg.Shadow = true
				var told []Reason
				cfg.Observer = ObserverFunc(func(e Event) {
					if e.Kind == Admitted {
						told = append(told, e.WouldRefuse)
					}
				})
				s := open(t, cfg)
				began := time.Now()
				var out []Permit
				for range row.before {
					out = append(out, admitted(t, s, row.req))
				}
				p := admitted(t, s, row.req)
				if got := p.WouldRefuse(); got != row.want || time.Since(began) != 0 {
					t.Errorf("would refuse: %q after %v, want %q at once", got, time.Since(began), row.want)
				}
				if last := told[len(told)-1]; last != row.want {
					t.Errorf("the observer was told %q", last)
				}
				st := s.Status()
				if row.want != "" && st.WouldRefuse[row.want] != 1 || len(st.Refused) != 0 || !st.Shadow {
					t.Errorf("status: would refuse %v, refused %v", st.WouldRefuse, st.Refused)
				}
				for _, p := range append(out, p) {
					p.Done(Success)
				}
				if st := s.Status(); st.InFlight != 0 || st.Beyond != 0 || slices.ContainsFunc(st.Budgets, func(b LongLivedStatus) bool { return b.InUse > 0 }) {
					t.Errorf("at the end: %+v", st)
				}
				if row.want == "" || row.want == QueueFull { // acting, the second one would stand in the line
					return
				}
				cfg.Shadow = false
				acting := open(t, cfg)
				for range row.before {
					defer admitted(t, acting, row.req).Done(Ignored)
				}
				refused(t, acting, row.req, row.want)
			})
		})
	}
}

// TestAShadowsNumbersAreThoseOfTheReal: at twice the capacity a shadow would refuse about as many as are refused in earnest, as far as
// the service bears the load.
func TestAShadowsNumbersAreThoseOfTheReal(t *testing.T) {
	share := func(shadow bool) float64 {
		cfg := fixed(10, Queue{MaxWait: 100 * ms})
		cfg.Shadow = shadow
		m, err := NewMachine(cfg, time.Unix(0, 0), 1)
		if err != nil {
			t.Fatal(err)
		}
		type end struct {
			at time.Duration
			j  *Job
		}
		var running []end
		jobs := make(map[*Job]bool)
		start := func(now time.Duration, j *Job) { running = append(running, end{now + 20*ms, j}) }
		for now := time.Duration(0); now < 20*time.Second; now += ms { // one a millisecond: twice what 10 places of 20 ms can do
			for len(running) > 0 && running[0].at <= now {
				m.Done(now, running[0].j, Success)
				running = running[1:]
			}
			if now%TickEvery == 0 {
				m.Tick(now, 0, false)
			}
			j := new(Job)
			if m.Admit(now, j, Request{Client: "a"}); j.State == Granted {
				start(now, j)
			} else if j.State == Standing {
				jobs[j] = true
			}
			for j := m.Woken(); j != nil; j = m.Woken() {
				if j.State == Granted {
					start(now, j)
				}
			}
		}
		st, all := m.Status(), 0.
		for _, n := range st.WouldRefuse {
			all += float64(n)
		}
		for _, n := range st.Refused {
			all += float64(n)
		}
		return all / 20000
	}
	if real, shadow := share(false), share(true); real < .45 || shadow < real-.05 || shadow > real+.05 {
		t.Errorf("refused %.3f in earnest, %.3f by the shadow", real, shadow)
	}
}

func TestAShadowRouteLeavesTheOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(4, Queue{})
		cfg.Routes = []Route{{Name: "tried", Shadow: true}, {Name: "real"}}
		cfg.Limits = []Limit{bucket("each", 1, 1)}
		s := open(t, cfg)
		for i := range 3 {
			p := admitted(t, s, Request{Client: "a", Route: "tried"})
			if want := []Reason{"", OverLimit, OverLimit}[i]; p.WouldRefuse() != want {
				t.Errorf("request %d: %q, want %q", i, p.WouldRefuse(), want)
			}
			if len(p.Verdicts()) != 0 || len(p.Shadows()) != 1 {
				t.Errorf("%d verdicts and %d shadows, want that the client is told nothing", len(p.Verdicts()), len(p.Shadows()))
			}
			p.Done(Success)
		}
		admitted(t, s, Request{Client: "b", Route: "real"}).Done(Success)
		refused(t, s, Request{Client: "b", Route: "real"}, OverLimit)
		if st := s.Status(); st.WouldRefuse[OverLimit] != 2 || st.Refused[OverLimit] != 1 || st.Rules[0].WouldRefuse != 2 {
			t.Errorf("%+v", st)
		}
	})
}

// TestAShadowWaitsForNoTurn: a rule that delays makes nobody wait there.
func TestAShadowWaitsForNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(9, Queue{})
		cfg.Shadow = true
		cfg.Limits = []Limit{{Name: "turns", Per: Global, Excess: Delay, Rule: limits.LeakyBucket{Capacity: 2, Leak: limits.PerSecond(1)}, MaxWait: time.Minute}}
		s := open(t, cfg)
		began, refused := time.Now(), 0
		for range 6 {
			if p := admitted(t, s, Request{}); p.WouldRefuse() == OverLimit {
				refused++
			}
		}
		if time.Since(began) != 0 || refused != 3 { // one at once, two that would wait
			t.Errorf("%d of 6 would be refused, after %v", refused, time.Since(began))
		}
	})
}

func TestWhatIsSwitchedOffIsOffInAShadowToo(t *testing.T) {
	cfg := fixed(4, Queue{})
	cfg.Shadow = true
	cfg.Routes = []Route{{Name: "a", Feature: "search"}}
	cfg.Features = offFeatures{}
	refused(t, open(t, cfg), Request{Route: "a"}, FeatureOff)
}

type offFeatures struct{}

func (offFeatures) FeatureOff(string, string) (string, time.Duration, bool) {
	return "off", time.Second, true
}
