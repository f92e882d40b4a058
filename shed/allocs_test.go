//go:build !race

// The race detector makes sync.Pool forget at random, so what allocates nothing is counted without it.

package shed

import (
	"context"
	"slices"
	"testing"

	"github.com/spillway-go/spillway/limits"
)

func TestAdmitAndDoneAllocateNothing(t *testing.T) {
	cfg := fixed(100, Queue{})
	cfg.Limits = []Limit{bucket("per-client", 1<<40, 1<<20)}
	s := open(t, cfg)
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() {
		p, err := s.Admit(ctx, Request{Client: "a"})
		if err != nil {
			t.Fatal(err)
		}
		p.Done(Success)
	}); n != 0 {
		t.Errorf("Admit and Done allocate %v times", n)
	}
}

func TestSheddingAllocatesNothing(t *testing.T) {
	cfg := fixed(1, Queue{Capacity: -1})
	cfg.Limits = []Limit{bucket("per-client", 1<<40, 1<<20)}
	s := open(t, cfg)
	ctx := t.Context()
	p := admitted(t, s, Request{Client: "a"})
	defer p.Done(Success)
	if n := testing.AllocsPerRun(1000, func() { s.Admit(ctx, Request{Client: "a"}) }); n != 0 {
		t.Errorf("a shed request allocates %v times", n)
	}
}

func TestChargingOtherKindsOfRulesAllocatesNothing(t *testing.T) {
	cfg := fixed(100, Queue{})
	shadow := bucket("shadow", 1, 1)
	shadow.Shadow = true
	cfg.Limits = []Limit{
		{Name: "parallel", Rule: limits.InFlight{Max: 5}}, shadow,
		{Name: "burst", Rule: limits.Burst{Soft: limits.PerDay(1 << 40), Hard: limits.PerDay(1 << 40)}},
		{Name: "window", Rule: limits.SlidingWindow{Quota: limits.PerDay(1 << 20)}, Plans: map[string]limits.Rule{"big": limits.FixedWindow{Quota: limits.PerDay(1 << 40)}}},
	}
	s := open(t, cfg)
	ctx, req := context.Background(), Request{Client: "a", Plan: "big"}
	one := func() {
		p, err := s.Admit(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		p.Done(Success)
	}
	one()
	if n := testing.AllocsPerRun(200, one); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if !slices.ContainsFunc(s.Status().Rules, func(r RuleStatus) bool { return r.WouldRefuse > 100 }) {
		t.Error("the shadow has refused nothing, so it is not tested")
	}
}
