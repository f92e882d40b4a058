package shed

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

func TestEachLimitIsChargedAtItsStageAndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(9, Queue{})
		for name, per := range map[string]Scope{"site": Global, "route": PerRoute, "ip": PerIP, "prefix": PerIPPrefix, "client": PerClient, "client-route": PerClientRoute} {
			cfg.Limits = append(cfg.Limits, Limit{Name: name, Rule: everyRule[0], Per: per})
		}
		cfg.Limits = append(cfg.Limits,
			Limit{Name: "known", Rule: everyRule[0], Per: Global, For: []string{"principal"}},
			Limit{Name: "parallel", Rule: limits.InFlight{Max: 1}},
			Limit{Name: "watching", Rule: everyRule[0], Shadow: true})
		s := open(t, cfg)
		charged := func(p Permit) map[string]bool {
			all := map[string]bool{}
			for _, v := range append(p.Verdicts(), p.Shadows()...) {
				if all[v.Policy.Name()] || v.Taken == limits.NotTaken {
					t.Errorf("%s is charged twice or not at all", v.Policy.Name())
				}
				all[v.Policy.Name()] = true
			}
			return all
		}
		outer := Request{Stage: BeforeIdentity, IP: netip.MustParseAddr("192.0.2.1"), Client: "ip:192.0.2.1", By: "ip"}
		p := admitted(t, s, outer)
		if got := charged(p); len(got) != 4 || got["client"] || got["client-route"] || got["known"] {
			t.Errorf("before it is known who asks: %v", got)
		}
		inner := Request{IP: netip.MustParseAddr("192.0.2.1"), Client: "principal:a", By: "principal"}
		if err := p.Extend(t.Context(), inner); err != nil {
			t.Fatal(err)
		}
		if got := charged(p); len(got) != 8 {
			t.Errorf("afterwards: %v", got)
		}
		q := admitted(t, s, outer)
		var r *Rejection
		if err := q.Extend(t.Context(), inner); !errors.As(err, &r) || r.Reason != InFlight {
			t.Errorf("the client has one in flight: %v", err)
		}
		if got := charged(q); len(got) != 4 {
			t.Errorf("what was refused has charged %v", got)
		}
		q.Done(Ignored)
		p.Settle(Ending{Cost: Free})
		p.Done(Success)
		p = admitted(t, s, outer)
		if err := p.Extend(t.Context(), inner); err != nil {
			t.Errorf("nothing is in flight any more: %v", err)
		}
		p.Done(Success)
		if err := p.Extend(t.Context(), inner); err != nil {
			t.Errorf("after the end: %v", err)
		}
		q = admitted(t, s, outer)
		if err := q.Extend(t.Context(), inner); err != nil {
			t.Errorf("an extension that came too late holds what it has raised: %v", err)
		}
		q.Done(Success)
	})
}

func TestAnExtensionWaitsForItsTurnInThePlaceItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(9, Queue{})
		cfg.Limits = []Limit{{Name: "r", Rule: limits.LeakyBucket{Capacity: 5, Leak: limits.PerSecond(1)}, Excess: Delay, MaxWait: time.Minute}}
		s, start := open(t, cfg), time.Now()
		for range 3 {
			p := admitted(t, s, Request{Stage: BeforeIdentity})
			if err := p.Extend(t.Context(), Request{Client: "a"}); err != nil {
				t.Fatal(err)
			}
			p.Done(Success)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("three turns took %v, want 2s", took)
		}
		if got := s.Status().InFlight; got != 0 {
			t.Errorf("%d in flight", got)
		}
	})
}
