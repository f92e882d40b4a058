package configfile

import (
	"context"
	"strings"
	"testing"
	"time"

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

// TestAHotLimitIsLeasedWhenTheFileSaysSo: by the limit or by the store, and never where a limit is strict.
func TestAHotLimitIsLeasedWhenTheFileSaysSo(t *testing.T) {
	server := redistest.Single(t)
	for i, c := range []struct {
		limit, store string
		leased       bool
	}{
		{"", "", false},
		{", sharing: lease", "", true},
		{"", ", sharing: lease", true},
		{", sharing: exact", ", sharing: lease", false},
		{", guarantee: strict", ", sharing: lease", false},
	} {
		s, _ := instance(t, `
limits:
  - {name: hot, token_bucket: {capacity: 100000, refill: 100/s}, per: global`+c.limit+`}
store: {redis: {url: "redis://`+server.Addr+`/0", prefix: p`+string(rune('a'+i))+`, instances: 2, timeout: 5s, lease: 1s`+c.store+`}}
`)
		for range 400 {
			p, err := s.Admit(context.Background(), shed.Request{})
			if err != nil {
				t.Fatal(err)
			}
			p.Done(shed.Success)
		}
		st := s.Status()
		if n := st.Store.Decisions["lease"]; (n > 0) != c.leased || st.Store.State != "up" {
			t.Errorf("limit%s, store%s: %d decisions by lease, state %s", c.limit, c.store, n, st.Store.State)
		}
		if want := strings.TrimPrefix(strings.TrimPrefix(c.limit, ", guarantee: strict"), ", sharing: "); st.Rules[0].Sharing != want {
			t.Errorf("limit%s: the debug view says %q", c.limit, st.Rules[0].Sharing)
		}
	}
}

// TestAWideLimitIsCountedAfterwardsWhenTheFileSaysSo: by the limit or by the store, and never where a limit is strict.
func TestAWideLimitIsCountedAfterwardsWhenTheFileSaysSo(t *testing.T) {
	server := redistest.Single(t)
	for i, c := range []struct {
		limit, store string
		here         bool
	}{
		{"", "", false},
		{", sharing: async", "", true},
		{"", ", sharing: async", true},
		{", sharing: exact", ", sharing: async", false},
		{", guarantee: strict", ", sharing: async", false},
	} {
		prefix := "w" + string(rune('a'+i))
		s, _ := instance(t, `
limits:
  - {name: wide, token_bucket: {capacity: 100000, refill: 1/h}, per: global`+c.limit+`}
store: {redis: {url: "redis://`+server.Addr+`/0", prefix: `+prefix+`, instances: 2, timeout: 5s, merge_every: 10ms`+c.store+`}}
`)
		here := func() int64 { return s.Status().Store.Decisions["async"] }
		admitted := 0
		for begin := time.Now(); admitted < 200 || c.here && here() == 0 && time.Since(begin) < time.Minute; admitted++ {
			p, err := s.Admit(context.Background(), shed.Request{})
			if err != nil {
				t.Fatal(err)
			}
			p.Done(shed.Success)
		}
		st := s.Status()
		if (here() > 0) != c.here || st.Store.State != "up" || st.Store.Merges == nil {
			t.Errorf("limit%s, store%s: %d decisions here, %+v", c.limit, c.store, here(), st.Store)
		}
		if want := strings.TrimPrefix(strings.TrimPrefix(c.limit, ", guarantee: strict"), ", sharing: "); st.Rules[0].Sharing != want {
			t.Errorf("limit%s: the debug view says %q", c.limit, st.Rules[0].Sharing)
		}
	}
}

// TestAGlobalLimitIsKeptInPartsWhenTheFileSaysSo, with all else that spares Redis calls.
func TestAGlobalLimitIsKeptInPartsWhenTheFileSaysSo(t *testing.T) {
	server := redistest.Single(t)
	s, _ := instance(t, `
limits:
  - {name: site, token_bucket: {capacity: 100, refill: 1/h}, per: global, sub_buckets: 4}
store: {redis: {url: "redis://`+server.Addr+`/0", instances: 1, timeout: 5s, cache_refusals: true}}
`)
	admitted := 0
	for range 400 {
		if p, err := s.Admit(context.Background(), shed.Request{}); err == nil {
			p.Done(shed.Success)
			admitted++
		}
	}
	st := s.Status()
	if admitted > 100 || admitted < 95 || st.Rules[0].SubBuckets != 4 || st.Store.SecondTries == 0 {
		t.Errorf("%d admitted, %d parts, %d second tries", admitted, st.Rules[0].SubBuckets, st.Store.SecondTries)
	}
	if n := len(strings.Fields(server.Do(t, "KEYS", "*site/*"))); n != 4 {
		t.Errorf("%d balances in Redis: %s", n, server.Do(t, "KEYS", "*"))
	}
}
