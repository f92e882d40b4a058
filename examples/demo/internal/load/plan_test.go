package load

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// sound is a plan without fault.
func sound() Plan {
	return Plan{Addr: "127.0.0.1:8080", Method: "GET", Path: "/api/items", Count: 100, Rate: 50, Keys: 10, KeyPrefix: "t"}.withDefaults()
}

func TestPlansThatCouldHarmAreRefused(t *testing.T) {
	if err := sound().validate(); err != nil {
		t.Fatalf("a sound plan is refused: %v", err)
	}
	for name, c := range map[string]struct {
		spoil func(*Plan)
		says  string
	}{
		"another machine":      {func(p *Plan) { p.Addr = "192.0.2.1:80" }, "not a loopback address"},
		"any address":          {func(p *Plan) { p.Addr = "0.0.0.0:80" }, "not a loopback address"},
		"a name":               {func(p *Plan) { p.Addr = "localhost:80" }, "not IP:PORT"},
		"another method":       {func(p *Plan) { p.Method = "DELETE" }, "neither GET nor POST"},
		"smuggled header":      {func(p *Plan) { p.Path = "/a\r\nX: y" }, "holds blanks or controls"},
		"relative path":        {func(p *Plan) { p.Path = "a" }, "does not start with /"},
		"key with a line end":  {func(p *Plan) { p.KeyPrefix = "a\nb" }, "key prefix"},
		"no key":               {func(p *Plan) { p.KeyPrefix = "" }, "key prefix"},
		"nothing to send":      {func(p *Plan) { p.Count = 0 }, "count 0"},
		"too many":             {func(p *Plan) { p.Count = maxCount + 1 }, "count"},
		"negative rate":        {func(p *Plan) { p.Rate = -1 }, "rate -1/s"},
		"too fast":             {func(p *Plan) { p.Rate = maxRate + 1 }, "rate"},
		"too long":             {func(p *Plan) { p.Count, p.Rate = 61, 1 }, "longer than 1m0s"},
		"no client":            {func(p *Plan) { p.Keys = 0 }, "0 keys"},
		"waiting for ever":     {func(p *Plan) { p.Timeout = time.Hour }, "timeout 1h0m0s"},
		"detail of a big plan": {func(p *Plan) { p.Count, p.Rate, p.Detail = 1001, 1000, true }, "detail"},
	} {
		t.Run(name, func(t *testing.T) {
			p := sound()
			c.spoil(&p)
			if err := p.validate(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("validate() = %v, want an error with %q", err, c.says)
			}
		})
	}
}

func TestTheScheduleKeepsItsRateWithoutDrift(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.IntRange(1, maxRate).Draw(t, "rate")
		seconds := rapid.IntRange(0, 60).Draw(t, "seconds")
		i := rapid.IntRange(0, rate).Draw(t, "i")
		p := Plan{Rate: rate}
		if got, want := p.due(seconds*rate), time.Duration(seconds)*time.Second; got != want {
			t.Fatalf("after %d s of %d/s the next is due at %v", seconds, rate, got)
		}
		if p.due(i+1) <= p.due(i) {
			t.Fatalf("request %d is due at %v, the next at %v", i, p.due(i), p.due(i+1))
		}
	})
	if got := (Plan{}).due(99); got != 0 {
		t.Errorf("without a rate request 99 is due at %v, want at once", got)
	}
}

func TestClientsTakeTurns(t *testing.T) {
	p := sound()
	seen := map[string]int{}
	for i := range p.Count {
		seen[p.key(i)]++
	}
	if len(seen) != p.Keys {
		t.Fatalf("%d keys, want %d", len(seen), p.Keys)
	}
	for key, n := range seen {
		if n != p.Count/p.Keys {
			t.Errorf("%s sends %d requests, want %d", key, n, p.Count/p.Keys)
		}
	}
}

func TestConnectionsCoverWhatCanBeUnderWay(t *testing.T) {
	for _, c := range []struct {
		count, rate int
		timeout     time.Duration
		want        int
	}{
		{25, 0, 3 * time.Second, 25},           // all at once
		{25, 5, 3 * time.Second, 16},           // 15 can be waited for, one more is due
		{60_000, 4000, 3 * time.Second, 512},   // bounded
		{3, 1000, 3 * time.Second, 3},          // never more than requests
		{100, 100, 100 * time.Millisecond, 11}, // short answers need few
	} {
		p := Plan{Count: c.count, Rate: c.rate, Timeout: c.timeout}
		if got := p.conns(); got != c.want {
			t.Errorf("%d at %d/s with %v: %d connections, want %d", c.count, c.rate, c.timeout, got, c.want)
		}
	}
}
