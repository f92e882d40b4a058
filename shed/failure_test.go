package shed_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

// failing is a store that cannot decide: charges pass unless a policy is closed.
type failing struct{ asked [][]limits.Charge }

func (f *failing) Take(_ context.Context, _ time.Time, charges []limits.Charge) (limits.Decision, error) {
	f.asked = append(f.asked, charges)
	d := limits.Decision{Allowed: true, Source: limits.FromOpen}
	for _, c := range charges {
		if c.Policy.OnFailure() == limits.Closed {
			return limits.Decision{Source: limits.FromClosed}, &limits.UnavailableError{Policy: c.Policy, Err: errors.New("i/o timeout")}
		}
		d.Append(limits.Verdict{Policy: c.Policy, Key: c.Key, Cost: c.Cost, Taken: limits.NotTaken})
	}
	return d, nil
}

func (f *failing) Peek(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	return f.Take(ctx, now, charges)
}

func (*failing) Refund(context.Context, time.Time, limits.Decision) error { return nil }

func (*failing) Report() limits.Report { return limits.Report{State: "down", Instances: 3} }

func TestALimitSaysWhatHappensWhileTheStoreFails(t *testing.T) {
	rule := limits.TokenBucket{Capacity: 1, Refill: limits.PerSecond(1)}
	store := &failing{}
	var sources []limits.Source
	cfg := shed.Config{
		Store: store,
		Limits: []shed.Limit{
			{Name: "reads", Rule: rule, Per: shed.Global, Routes: []string{"read"}, OnFailure: limits.Open},
			{Name: "money", Rule: rule, Per: shed.Global, Routes: []string{"pay"}, Strict: true},
			{Name: "plans", Rule: rule, Routes: []string{"plan"}, OnFailure: limits.Closed,
				Plans: map[string]limits.Rule{"premium": limits.TokenBucket{Capacity: 2, Refill: limits.PerSecond(2)}}},
		},
		Routes:   []shed.Route{{Name: "read"}, {Name: "pay"}, {Name: "plan"}},
		Observer: shed.ObserverFunc(func(e shed.Event) { sources = append(sources, e.Source) }),
	}
	s, err := shed.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, err := s.Admit(context.Background(), shed.Request{Route: "read"})
	if err != nil {
		t.Fatal(err)
	}
	p.Done(shed.Success)
	for route, rule := range map[string]string{"pay": "money", "plan": "plans"} {
		asked := len(store.asked)
		_, err := s.Admit(context.Background(), shed.Request{Route: route, Client: "c", Plan: "premium"})
		var r *shed.Rejection
		if !errors.As(err, &r) || r.Reason != shed.StoreUnavailable || r.Rule != rule || r.RetryAfter != time.Second {
			t.Errorf("%s: %v", route, err)
		}
		if n := len(store.asked) - asked; n != 1 {
			t.Errorf("%s: the store was asked %d times", route, n)
		}
	}
	if len(sources) != 4 || sources[0] != limits.FromOpen || sources[2] != limits.FromClosed || sources[3] != limits.FromClosed {
		t.Errorf("observed %v", sources)
	}
	st := s.Status()
	if st.Store == nil || st.Store.State != "down" || st.Refused[shed.StoreUnavailable] != 2 {
		t.Errorf("%+v", st)
	}
	if r := st.Rules; r[0].OnFailure != "open" || r[1].OnFailure != "" || !r[1].Strict || r[2].OnFailure != "closed" || r[2].Strict {
		t.Errorf("%+v", r)
	}
	// A reload changes the choice with the next request.
	cfg.Limits = slices.Clone(cfg.Limits)
	cfg.Limits[1].Strict, cfg.Limits[1].OnFailure = false, limits.Open
	if _, err := s.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	if p, err = s.Admit(context.Background(), shed.Request{Route: "pay"}); err != nil {
		t.Error(err)
	}
	p.Done(shed.Success)
}

func TestImpossibleChoicesAreRefused(t *testing.T) {
	bucket := limits.TokenBucket{Capacity: 1, Refill: limits.PerSecond(1)}
	for _, l := range []shed.Limit{
		{Name: "a", Rule: bucket, Strict: true, OnFailure: limits.Open},
		{Name: "a", Rule: bucket, Strict: true, OnFailure: limits.Local},
		{Name: "a", Rule: bucket, OnFailure: 17},
		{Name: "a", Rule: limits.InFlight{Max: 1}, OnFailure: limits.Open},
		{Name: "a", Rule: limits.InFlight{Max: 1}, Strict: true},
	} {
		if s, err := shed.New(shed.Config{Limits: []shed.Limit{l}}); err == nil {
			s.Close()
			t.Errorf("%+v is accepted", l)
		}
	}
}
