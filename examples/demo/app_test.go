package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/demo/internal/web"
	"github.com/spillway-go/spillway/shed"
)

func TestEachRouteAnswersAsItsKind(t *testing.T) {
	d := started(t)
	for _, c := range []struct {
		method, path string
		status       int
		media, holds string
	}{
		{"GET", "/api/items", 200, "application/json", "anchor"},
		{"GET", "/api/report", 200, "application/json", "report"},
		{"HEAD", "/api/items", 200, "application/json", ""},
		{"HEAD", "/api/report", 200, "application/json", ""},
		{"POST", "/api/orders", 201, "application/json", `"order":1`},
		{"GET", "/healthz", 200, "text/plain", "ok"},
		{"GET", "/metrics", 200, "text/plain", "spillway_limit "},
		{"GET", "/pumpkin.json", 200, "application/json", `"active":false`},
		{"GET", "/pumpkin.js", 200, "text/javascript", "pumpkin-banner"},
		{"GET", "/", 200, "text/html", "<title>Spillway"},
		{"GET", web.Icon, 200, "image/svg+xml", "<svg"},
		{"GET", "/demo/stats", 200, "application/json", `"capacity":800`},
		{"GET", "/api/nothing", 404, "application/json", ""},
		{"DELETE", "/api/items", 405, "application/json", ""},
		{"GET", "/demo/burst", 405, "", ""},
		{"POST", "/demo/stats", 405, "", ""},
		{"POST", "/pumpkin.json", 405, "", ""},
		{"POST", "/metrics", 405, "", ""},
		{"DELETE", "/", 405, "", ""},
	} {
		answer, body := answered(t, request(t, c.method, d.url(c.path), "", "X-API-Key", "kinds"))
		if answer.StatusCode != c.status || !strings.HasPrefix(answer.Header.Get("Content-Type"), c.media) || !strings.Contains(body, c.holds) {
			t.Errorf("%s %s: %d %s %.200q; want %d %s with %q", c.method, c.path, answer.StatusCode, answer.Header.Get("Content-Type"), body, c.status, c.media, c.holds)
		}
	}
}

func TestAReportCostsFiveAndExemptRoutesNothing(t *testing.T) {
	d := started(t, slowRefill(t)...)
	for range 4 { // 4 × 5: the whole bucket
		if answer, _ := answered(t, request(t, "GET", d.url("/api/report"), "", "X-API-Key", "reader")); answer.StatusCode != 200 {
			t.Fatalf("a report within the quota: status %d", answer.StatusCode)
		}
	}
	answer, body := answered(t, request(t, "GET", d.url("/api/report"), "", "X-API-Key", "reader"))
	if answer.StatusCode != 429 || answer.Header.Get("Retry-After") == "" || !strings.Contains(body, "over_limit") {
		t.Errorf("the fifth report: %d, Retry-After %q, %s; want 429, a time, over_limit", answer.StatusCode, answer.Header.Get("Retry-After"), body)
	}
	for _, path := range []string{"/healthz", "/metrics", "/", "/assets/live.js", "/assets/demo.js", "/demo/stats", "/pumpkin.json", "/pumpkin.js"} {
		answer, _ := answered(t, request(t, "GET", d.url(path), "", "X-API-Key", "reader"))
		if answer.StatusCode != 200 || answer.Header.Get("RateLimit") != "" {
			t.Errorf("%s for a client over its quota: %d, RateLimit %q; want 200 and none", path, answer.StatusCode, answer.Header.Get("RateLimit"))
		}
	}
	if got := d.shedder.Status().Refused["over_limit"]; got != 1 {
		t.Errorf("%d refusals by quota, want 1", got)
	}
}

func TestAStreamSendsItsFirstEventAtOnceAndEndsWithTheDemo(t *testing.T) {
	d := started(t)
	answer, err := http.DefaultClient.Do(request(t, "GET", d.url("/api/events"), ""))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	if !lines.Scan() || lines.Text() != "id: 1" {
		t.Fatalf("the stream begins with %q", lines.Text())
	}
	s := d.shedder.Status()
	if len(s.Budgets) != 1 || s.Budgets[0].InUse != 1 || s.InFlight != 0 {
		t.Errorf("budgets %+v and %d in flight; want the stream in its own budget and none in flight", s.Budgets, s.InFlight)
	}
	close(d.stopping)
	d.stopping = make(chan struct{}) // for the end of the test
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream ends with %v, want a clean end", err)
	}
}

func TestTheDebugViewIsForThisMachineAndForBearers(t *testing.T) {
	d := started(t)
	admin := "http://" + d.admin.Addr().String()
	for _, c := range []struct {
		authorization, host string
		status              int
	}{
		{"", "", 200},
		{"Bearer " + testToken, "", 200},
		{"Bearer " + testToken + "x", "", 401},
		{"", "attacker.example", 401}, // a page that had its own name resolved to this machine
		{"Bearer " + testToken, "attacker.example", 200},
	} {
		r := request(t, "GET", admin+"/debug/spillway", "")
		if c.authorization != "" {
			r.Header.Set("Authorization", c.authorization)
		}
		r.Host = c.host
		answer, body := answered(t, r)
		if answer.StatusCode != c.status {
			t.Errorf("%+v: status %d", c, answer.StatusCode)
		}
		if c.status == 200 && (!strings.Contains(body, "per-client") || !strings.Contains(body, "smooth-orders") || !strings.Contains(body, "pumpkin")) {
			t.Errorf("the debug view lacks the rules or the pumpkin: %s", body)
		}
	}
	if answer, _ := answered(t, request(t, "GET", d.url("/debug/spillway"), "")); answer.StatusCode != 404 {
		t.Errorf("the public listener shows the debug view: %d", answer.StatusCode)
	}
}

// polled asks for the statistics as the page does, until they are about offered requests.
func polled(t *testing.T, d *demo, offered int64) (s struct {
	Ticks []shed.Moment
	Total shed.Flow
	Extra beside
}) {
	t.Helper()
	for s.Total.Offered < offered {
		_, body := answered(t, request(t, "GET", d.url("/demo/stats?after=0"), ""))
		if err := json.Unmarshal([]byte(body), &s); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
	}
	return s
}

func TestThePageSeesWhatBecameOfEveryRequest(t *testing.T) {
	d := started(t, slowRefill(t)...)
	for range 25 {
		answered(t, request(t, "GET", d.url("/api/items"), "", "X-API-Key", "greedy"))
	}
	got := polled(t, d, 25)
	sum := got.Total.Served + got.Total.Delayed + got.Total.Over + got.Total.Full
	if got.Total.Offered != 25 || sum != 25 || got.Total.Over != 5 || len(got.Ticks) == 0 || !got.Extra.Controls {
		t.Errorf("%+v; want 25 offered, all accounted for, 5 over their quota, and the buttons usable", got)
	}
}

func TestOperatorsHaveTheLivePageToo(t *testing.T) {
	d := started(t)
	admin := "http://" + d.admin.Addr().String() + "/dashboard/"
	for path, holds := range map[string]string{"": "<title>Spillway", "assets/live.js": "spillway:stats", "stats": `"ticks":[`} {
		if answer, body := answered(t, request(t, "GET", admin+path, "")); answer.StatusCode != 200 || !strings.Contains(body, holds) {
			t.Errorf("/dashboard/%s: %d %.100q; want 200 with %q", path, answer.StatusCode, body, holds)
		}
	}
	r := request(t, "GET", admin, "")
	r.Host = "attacker.example"
	if answer, _ := answered(t, r); answer.StatusCode != 401 {
		t.Errorf("under a made-up host name: %d, want 401", answer.StatusCode)
	}
}

// Over HTTP/2 the demo says what it says over HTTP/1.1.
func TestHTTP2WithoutTLS(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.yaml")
	if err := os.WriteFile(path, []byte("limits: [{name: few, token_bucket: {capacity: 2, refill: 1/day}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := started(t, "-config", path)
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	defer tr.CloseIdleConnections()
	for i, want := range []int{200, 200, 429} {
		answer, err := tr.RoundTrip(request(t, "GET", d.url("/api/items"), "", "X-API-Key", "h2"))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		refused := answer.Header.Get("Retry-After") != "" && answer.Header.Get("Content-Type") == "application/problem+json"
		if answer.ProtoMajor != 2 || answer.StatusCode != want || refused != (want == 429) || answer.Header.Get("RateLimit-Policy") != `"few";q=2;w=172800` {
			t.Errorf("call %d: %s %d %v, want %d", i+1, answer.Proto, answer.StatusCode, answer.Header, want)
		}
	}
}
