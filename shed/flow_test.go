package shed

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

func TestWhatIsNotKnownAtAdmissionPassesThroughAFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(100, Queue{})
		cfg.Limits = []Limit{
			{Name: "chat", Rule: limits.TokenBucket{Capacity: 10, Refill: limits.PerSecond(5)}, Unit: Messages, For: []string{"api_key"},
				Plans: map[string]limits.Rule{"quiet": limits.TokenBucket{Capacity: 1, Refill: limits.PerSecond(1)}}},
			bucket("requests", 10, 1),
		}
		s := open(t, cfg)
		req := Request{Client: "a", By: "api_key"}
		p := admitted(t, s, req)
		defer p.Done(Ignored)
		if v := p.Verdicts(); len(v) != 1 || v[0].Policy.Name() != "requests" {
			t.Errorf("charged at admission: %+v", v)
		}
		flow, start := s.Flow(Messages, req), time.Now()
		if n, err := flow.Pass(t.Context(), 20); n != 20 || err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("%d messages in %v: %v", n, time.Since(start), err)
		}
		start = time.Now()
		quiet := s.Flow(Messages, Request{Client: "b", By: "api_key", Plan: "quiet"})
		if n, err := quiet.Pass(t.Context(), 3); n != 3 || err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("%d messages of a quiet plan in %v: %v", n, time.Since(start), err)
		}
		for _, other := range []Request{{Client: "a", By: "ip"}, {By: "api_key"}} {
			if s.Flow(Messages, other) != nil {
				t.Errorf("a limit that does not apply slows %+v down", other)
			}
		}
		if s.Flow(Requests, req) != nil || s.Flow(ResponseBytes, req) != nil {
			t.Error("a flow of what nobody limits")
		}
	})
}
