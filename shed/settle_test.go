package shed

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// everyRule is one of each kind with room for 10 and nothing to come back within a test.
var everyRule = []limits.Rule{
	limits.TokenBucket{Capacity: 10, Refill: limits.Rate{Amount: 1, Per: time.Hour}},
	limits.LeakyBucket{Capacity: 10, Leak: limits.Rate{Amount: 1, Per: time.Hour}},
	limits.FixedWindow{Quota: limits.PerHour(10)},
	limits.SlidingLog{Quota: limits.PerHour(10)},
	limits.SlidingWindow{Quota: limits.PerHour(10)},
	limits.Burst{Soft: limits.PerHour(5), Hard: limits.PerHour(10)},
	limits.Burst{Soft: limits.PerHour(5), Hard: limits.PerHour(10), Total: limits.PerDay(10)},
}

// left asks how much of a rule client a has left.
func left(t *testing.T, s *Shedder, i int) int64 {
	t.Helper()
	d, err := s.store.Peek(t.Context(), time.Now(), []limits.Charge{{Policy: s.current().rules[i].policy, Key: "a", Cost: 0}})
	if err != nil {
		t.Fatal(err)
	}
	return d.At(0).Remaining
}

func TestWhatTheWorkCameToIsWhatItCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rule := range everyRule {
			for _, c := range []struct{ charged, cost, left int64 }{
				{5, 2, 8}, {5, 5, 5}, {5, 0, 5}, {5, Free, 10}, {5, 7, 3}, {5, 10, 0}, {5, 99, 0}, {1, 1, 9}, {10, 1, 9},
			} {
				cfg := fixed(9, Queue{})
				cfg.Limits = []Limit{{Name: "r", Rule: rule}, {Name: "watching", Rule: rule, Shadow: true}}
				s := open(t, cfg)
				p := admitted(t, s, Request{Client: "a", Cost: c.charged})
				p.Settle(Ending{Cost: c.cost})
				p.Settle(Ending{Cost: Free}) // too late
				p.Done(Success)
				p.Settle(Ending{Cost: Free})
				for i := range 2 {
					if got := left(t, s, i); got != c.left {
						t.Errorf("%v: charged %d, came to %d: %d left of rule %d, want %d", rule, c.charged, c.cost, got, i, c.left)
					}
				}
			}
		}
	})
}

func TestSettlingOneRequestLeavesTheChargesOfOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rule := range everyRule {
			cfg := fixed(9, Queue{})
			cfg.Limits = []Limit{{Name: "r", Rule: rule}}
			s := open(t, cfg)
			a, b := admitted(t, s, Request{Client: "a", Cost: 4}), admitted(t, s, Request{Client: "a", Cost: 4})
			a.Settle(Ending{Cost: 1})
			if got := left(t, s, 0); got != 5 {
				t.Errorf("%v: %d left, want 5", rule, got)
			}
			b.Settle(Ending{Cost: 3})
			if got := left(t, s, 0); got != 6 {
				t.Errorf("%v: %d left, want 6", rule, got)
			}
			a.Done(Success)
			b.Done(Success)
		}
	})
}

func TestLoginsCountFailuresAndPrizesCountSuccesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			count Count
			left  map[Result]int64
		}{
			{CountFailures, map[Result]int64{Failed: 9, Succeeded: 10, NoResult: 10}},
			{CountSuccesses, map[Result]int64{Failed: 10, Succeeded: 9, NoResult: 10}},
			{CountAll, map[Result]int64{Failed: 9, Succeeded: 9, NoResult: 9}},
		} {
			for result, want := range c.left {
				cfg := fixed(9, Queue{})
				cfg.Limits = []Limit{{Name: "r", Rule: everyRule[0], Count: c.count}}
				s := open(t, cfg)
				p := admitted(t, s, Request{Client: "a"})
				if got := left(t, s, 0); got != 9 {
					t.Errorf("%d left while it runs: many at once would slip through", got)
				}
				p.Settle(Ending{Result: result})
				p.Done(Success)
				if got := left(t, s, 0); got != want {
					t.Errorf("count %d, result %d: %d left, want %d", c.count, result, got, want)
				}
				if got := s.Status().Rules[0].Settled; got != 10-(10-want)-9 {
					t.Errorf("settled: %d", got)
				}
			}
		}
	})
}

func TestATurnIsUsedUpWhateverTheWorkCameTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(9, Queue{})
		cfg.Limits = []Limit{{Name: "r", Rule: limits.LeakyBucket{Capacity: 5, Leak: limits.PerSecond(1)}, Excess: Delay, MaxWait: time.Minute}}
		s := open(t, cfg)
		p := admitted(t, s, Request{Client: "a", Cost: 2})
		p.Settle(Ending{Cost: Free})
		p.Done(Success)
		start := time.Now()
		admitted(t, s, Request{Client: "a"}).Done(Success)
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("the next turn came after %v, want 2s", took)
		}
	})
}

func TestWhatIsCountedByHandIsChargedOrRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(9, Queue{})
		cfg.Limits = []Limit{{Name: "rows", Rule: limits.TokenBucket{Capacity: 10, Refill: limits.PerSecond(1)}, Unit: "rows"}}
		s := open(t, cfg)
		req := Request{Client: "a"}
		for i, c := range []struct {
			n    int64
			want string
		}{{7, "<nil>"}, {7, "shed: refused: over_limit by rule rows, retry after 4s"}, {3, "<nil>"}, {0, "<nil>"}, {11, "shed: refused: cost_too_large by rule rows"}} {
			if err := s.Charge(t.Context(), req, "rows", c.n); fmt.Sprint(err) != c.want {
				t.Errorf("%d: %v, want %s", i, err, c.want)
			}
		}
		if err := s.Charge(t.Context(), req, "rows", -1); err == nil {
			t.Error("less than nothing was charged")
		}
		if err := s.Charge(t.Context(), req, "columns", 1e9); err != nil {
			t.Errorf("what nobody limits: %v", err)
		}
		if st := s.Status().Rules[0]; st.Units != 10 || st.Unit != "rows" {
			t.Errorf("%+v", st)
		}
	})
}

func TestMessagesAreToldApartBySize(t *testing.T) {
	cfg := fixed(9, Queue{})
	large := Limit{Name: "large", Rule: everyRule[0], Unit: Messages, MinSize: 1000}
	cfg.Limits = []Limit{large, {Name: "all", Rule: everyRule[1], Unit: Messages}, {Name: "also-large", Rule: everyRule[2], Unit: Messages, MinSize: 1000}}
	s := open(t, cfg)
	flows := s.MessageFlows(Request{Client: "a"})
	if len(flows) != 2 || flows[0].Min != 0 || flows[1].Min != 1000 {
		t.Fatalf("%+v", flows)
	}
	if _, err := flows[1].Flow.Pass(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{7, 10, 7} {
		if got := left(t, s, i); got != want {
			t.Errorf("rule %d: %d left, want %d", i, got, want)
		}
	}
	if s.MessageFlows(Request{}) != nil {
		t.Error("nobody is known, so nothing can be counted")
	}
}

func TestCountsAndSizesThatMakeNoSenseAreRefused(t *testing.T) {
	for _, l := range []Limit{
		{MinSize: -1, Unit: Messages}, {MinSize: 1}, {MinSize: 1, Unit: RequestBytes}, {Count: 3}, {Count: CountFailures, Unit: Messages},
		{Count: CountFailures, Excess: Delay}, {Count: CountSuccesses, Rule: limits.InFlight{Max: 1}},
	} {
		l.Name = "r"
		if l.Rule == nil {
			l.Rule = everyRule[0]
		}
		if _, err := compileLimit(l); err == nil {
			t.Errorf("%+v was taken", l)
		}
	}
}
