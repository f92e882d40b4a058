package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/limits"
)

// sharing starts gateways as processes that have one file.
func sharing(t *testing.T, n int, file string) []*process {
	t.Helper()
	back := upstream(t, func(http.ResponseWriter, *http.Request) {})
	path := written(t, file)
	all := make([]*process, n)
	for i := range all {
		all[i] = started(t, "-upstream", back, "-config", path)
	}
	return all
}

// hop sends requests of a client to the gateways in turn, and returns how many had each status.
func hop(t *testing.T, all []*process, path, client string, n int) map[int]int {
	t.Helper()
	by := map[int]int{}
	for i := range n {
		res, _ := get(t, all[i%len(all)].addrs["proxy"]+path, "X-API-Key", client)
		by[res.StatusCode]++
	}
	return by
}

// metric is the value of a line of the metrics; 0 where there is none yet.
func (p *process) metric(line string) float64 {
	p.Helper()
	_, text := get(p.T, p.addrs["admin"]+"/metrics")
	for l := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(l, line+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				p.Fatal(err)
			}
			return v
		}
	}
	return 0
}

// view is what the debug view says of limits and their store.
type view struct {
	Rules []struct{ Sharing string }
	Store *limits.Report
}

func (p *process) view() view {
	p.Helper()
	var all struct{ Shed view }
	_, text := get(p.T, p.addrs["admin"]+"/debug/spillway")
	if err := json.Unmarshal([]byte(text), &all); err != nil || all.Shed.Store == nil {
		p.Fatalf("%v: %s", err, text)
	}
	return all.Shed
}

// Two gateways with one file and one Redis are one quota for a client who hops between them. When Redis is gone each limit does what
// it says for that, and the status, the metrics and the debug view tell; when it is back it decides again by itself.
func TestGatewaysWithOneRedisAreOneQuota(t *testing.T) {
	server := redistest.Single(t)
	file := `
clients: {identify: [api_key, ip]}
limits:
  - {name: local,  token_bucket: {capacity: 10, refill: 1/day}, routes: [local]}
  - {name: open,   token_bucket: {capacity: 10, refill: 1/day}, routes: [open],   on_failure: open}
  - {name: closed, token_bucket: {capacity: 10, refill: 1/day}, routes: [closed], on_failure: closed}
routes:
  - {name: local, match: /local}
  - {name: open, match: /open}
  - {name: closed, match: /closed}
`
	apart := sharing(t, 2, file) // the control
	if by := hop(t, apart, "/local", "k", 24); by[200] != 20 {
		t.Errorf("without a store two gateways are not two quotas: %v", by)
	}
	for _, p := range apart {
		p.ends()
	}
	all := sharing(t, 2, file+"store: {redis: {url: \"redis://"+server.Addr+"/0\", instances: 2, timeout: 5s}}\n")
	expect := func(when, path, client string, want map[int]int) {
		t.Helper()
		if by := hop(t, all, path, client, 24); fmt.Sprint(by) != fmt.Sprint(want) {
			t.Errorf("%s, %s: %v, want %v", when, path, by, want)
		}
	}
	for _, path := range []string{"/local", "/open", "/closed"} {
		expect("with Redis", path, "before", map[int]int{200: 10, 429: 14})
	}
	for i, p := range all {
		if p.metric("spillway_store_up") != 1 || p.metric(`spillway_store_decisions_total{source="redis"}`) != 36 || p.view().Store.State != "up" {
			t.Errorf("gateway %d is not up: %+v", i, p.view().Store)
		}
	}

	server.Kill()
	for i, p := range all {
		wait.Until(t, "Redis is missed", func() bool {
			get(t, p.addrs["proxy"]+"/open", "X-API-Key", "during")
			return p.metric("spillway_store_up") == 0
		})
		if s := p.view().Store; s.State != "down" {
			t.Errorf("gateway %d: the debug view says %+v", i, s)
		}
	}
	expect("without Redis", "/local", "during", map[int]int{200: 10, 429: 14}) // each has its half
	expect("without Redis", "/open", "during", map[int]int{200: 24})
	expect("without Redis", "/closed", "during", map[int]int{503: 24})
	res, body := get(t, all[0].addrs["proxy"]+"/closed", "X-API-Key", "during")
	if res.Header.Get("Retry-After") == "" || !strings.Contains(body, `"store_unavailable"`) {
		t.Errorf("%v %s", res.Header, body)
	}
	for i, p := range all {
		for _, source := range []string{"local", "open", "closed"} {
			if n := p.metric(`spillway_store_decisions_total{source="` + source + `"}`); n < 12 {
				t.Errorf("gateway %d: %v decisions by %s, want 12 or more", i, n, source)
			}
		}
	}

	server.Restart(t)
	back := time.Now()
	for _, p := range all {
		wait.Until(t, "Redis decides again", func() bool { return p.metric("spillway_store_up") == 1 })
	}
	t.Logf("Redis decides again %v after it was started", time.Since(back).Round(time.Millisecond))
	expect("with Redis again", "/closed", "after", map[int]int{200: 10, 429: 14})
	for _, p := range all {
		if s := p.view().Store; s.State != "up" {
			t.Errorf("the debug view says %+v", s)
		}
		p.ends()
	}
}

// Gateways that tell each other afterwards admit no more than they may until they have heard of each other, and then nothing.
func TestGatewaysThatShareAsynchronously(t *testing.T) {
	server := redistest.Single(t)
	const capacity, n = 20, 2
	all := sharing(t, n, `
clients: {identify: [api_key, ip]}
limits: [{name: hot, token_bucket: {capacity: 20, refill: 1/day}, sharing: async}]
store: {redis: {url: "redis://`+server.Addr+`/0", instances: 2, timeout: 5s, merge_every: 50ms}}
`)
	passed := 0
	for i, p := range all {
		wait.Until(t, fmt.Sprintf("gateway %d decides by what it has heard", i), func() bool {
			passed += hop(t, all, "/", "k", n)[200]
			return p.metric(`spillway_store_decisions_total{source="async"}`) > 0
		})
	}
	wait.Until(t, "all is used", func() bool { by := hop(t, all, "/", "k", n); passed += by[200]; return by[429] == n })
	if passed < capacity || passed > capacity+n*capacity {
		t.Errorf("%d passed, want %d, and at most %d", passed, capacity, capacity+n*capacity)
	}
	for i, p := range all {
		if s := p.view(); s.Rules[0].Sharing != "async" || s.Store.Merges == nil || s.Store.Merges.Done == 0 {
			t.Errorf("gateway %d: %+v, %+v", i, s.Rules[0], s.Store)
		}
		p.ends()
	}
}

// Gateways of two regions have a Redis each and one at home, and one quota together.
func TestGatewaysOfTwoRegions(t *testing.T) {
	home := redistest.Single(t)
	passed := map[string]int{}
	for _, region := range []string{"eu", "us"} {
		file := `
clients: {identify: [api_key, ip]}
limits: [{name: all, token_bucket: {capacity: 60, refill: 1/day}}]
store:
  redis: {url: "redis://` + redistest.Single(t).Addr + `/0", timeout: 5s}
  regions: {region: ` + region + `, weights: {eu: 2, us: 1}, home: "redis://` + home.Addr + `/0", timeout: 5s}
`
		var said bytes.Buffer
		if code := run(t.Context(), []string{"-check", "-config", written(t, file)}, &said, &said); code != exitOK {
			t.Fatalf("the file is refused: %s", said.String())
		}
		all := sharing(t, 1, file)
		passed[region] = hop(t, all, "/", "k", 80)[200]
		if h := all[0].view().Store.Home; h == nil || h.Region != region || h.State != "up" {
			t.Errorf("%s: the debug view says %+v", region, h)
		}
		if up := all[0].metric(`spillway_store_home_up{region="` + region + `"}`); up != 1 {
			t.Errorf("%s: home is %v", region, up)
		}
		all[0].ends()
	}
	// The first has its own 20 and what home lends of 30, the other its own 10 and what is left at home.
	if passed["eu"] < 20 || passed["us"] < 10 || passed["eu"]+passed["us"] > 60 || passed["eu"] == 20 {
		t.Errorf("%v passed", passed)
	}
}
