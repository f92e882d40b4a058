package configfile

import (
	"context"
	"testing"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/shed"
)

// TestRefusalsAreCachedWhenTheFileSaysSo goes the whole way: file, Redis, Shedder, and what the debug view counts.
func TestRefusalsAreCachedWhenTheFileSaysSo(t *testing.T) {
	server := redistest.Single(t)
	for _, on := range []bool{false, true} {
		key := ""
		if on {
			key = ", cache_refusals: true"
		}
		s, _ := instance(t, `
limits:
  - {name: few, fixed_window: {quota: 1/day}, per: global}
store: {redis: {url: "redis://`+server.Addr+`/0", instances: 1, timeout: 5s`+key+`}}
`)
		for range 50 {
			if p, err := s.Admit(context.Background(), shed.Request{}); err == nil {
				p.Done(shed.Success)
			}
		}
		cached := s.Status().Store.Decisions["cache"]
		if on && cached < 20 || !on && cached != 0 {
			t.Errorf("cache_refusals: %v: %d decisions from the cache", on, cached)
		}
	}
}
