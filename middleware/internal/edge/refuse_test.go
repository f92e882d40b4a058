package edge

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

// refusing answers a plain GET with the rejection.
func refusing(e *Edge, r *shed.Rejection) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	e.Refuse(w, httptest.NewRequest("GET", "/", nil), r)
	return w
}

func edgeWithFields() *Edge {
	e := &Edge{fields: new(fields)}
	e.view.Store(&view{answers: answers{keyHeader: "X-API-Key"}})
	return e
}

func document(t testing.TB, body []byte) (p Problem) {
	t.Helper()
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return p
}

func TestEveryReasonHasItsStatusAndWords(t *testing.T) {
	for _, row := range []struct {
		reason shed.Reason
		status int
		wait   string // Retry-After for a wait of 1.2 s
		typ    string
		says   string
		title  string // of the page
		page   string
	}{
		{shed.OverLimit, 429, "2", typeQuota, `"writes"`, "Too many requests", "more often"},
		{shed.InFlight, 429, "2", typeQuota, `"writes"`, "Too many requests", "still running"},
		{shed.CostTooLarge, 429, "", typeQuota, "Waiting does not help", "Too much at once", "Waiting does not help"},
		{shed.NoIdentity, 403, "", typeStatus, "X-API-Key", "Access denied", "who is asking"},
		{shed.BodyTooSlow, 408, "", typeStatus, "too slowly", "Not received", "in time"},
		{shed.FeatureOff, 503, "2", typeReduced, "switched off", "Not available", "switched off"},
		{shed.Overloaded, 503, "2", typeReduced, "Retry-After", "The service is busy", "more to do"},
		{shed.QueueFull, 503, "2", typeReduced, "Retry-After", "The service is busy", "more to do"},
		{shed.WaitExpired, 503, "2", typeReduced, "Retry-After", "The service is busy", "more to do"},
		{shed.Displaced, 503, "2", typeReduced, "Retry-After", "The service is busy", "more to do"},
		{shed.Deadline, 503, "2", typeReduced, "deadline", "The service is busy", "more to do"},
		{shed.StoreUnavailable, 503, "2", typeReduced, "quotas", "The service is busy", "more to do"},
		{Closed, 503, "2", typeReduced, "shutting down", "The service is busy", "more to do"},
	} {
		w := refusing(edgeWithFields(), &shed.Rejection{Reason: row.reason, Rule: "writes", RetryAfter: 1200 * time.Millisecond})
		p := document(t, w.Body.Bytes())
		if w.Code != row.status || p.Status != row.status {
			t.Errorf("%s: status %d, in the document %d, want %d", row.reason, w.Code, p.Status, row.status)
		}
		if got := w.Header().Get("Retry-After"); got != row.wait {
			t.Errorf("%s: Retry-After %q, want %q", row.reason, got, row.wait)
		}
		if p.Reason != row.reason || p.Type != row.typ || p.Title == "" || !strings.Contains(p.Detail, row.says) {
			t.Errorf("%s: %+v", row.reason, p)
		}
		wait := "Try again in " + row.wait + " seconds."
		if page := newPage(p).with(row.wait); !strings.Contains(page, "<h1>"+row.title) || !strings.Contains(page, row.page) ||
			strings.Contains(page, wait) != (row.wait != "") || strings.Contains(page, "Try again in 0") {
			t.Errorf("%s: the page is\n%s", row.reason, page)
		}
		if (row.status == 429) != (len(p.ViolatedPolicies) == 1 && p.ViolatedPolicies[0] == "writes") {
			t.Errorf("%s: violated policies %v", row.reason, p.ViolatedPolicies)
		}
		if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("%s: Content-Type %q", row.reason, got)
		}
		if got := w.Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control %q", row.reason, got)
		}
	}
}

func TestRetryAfterIsRoundedUpAndAtLeastOne(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		-time.Hour: "1", 0: "1", 1: "1", 105 * time.Millisecond: "1", time.Second: "1", time.Second + 1: "2",
		2 * time.Second: "2", 24 * time.Hour: "86400", 1<<63 - 1: "9223372037",
	} {
		w := refusing(edgeWithFields(), &shed.Rejection{Reason: shed.OverLimit, RetryAfter: wait})
		if got := w.Header().Get("Retry-After"); got != want {
			t.Errorf("a wait of %v is Retry-After %q, want %q", wait, got, want)
		}
	}
}

func TestRefusalNamesAllRulesThatRefusedAndWaitsForTheSlowest(t *testing.T) {
	hourly, fast := policy(t, "hourly", 1, limits.Rate{Amount: 1, Per: time.Hour}), policy(t, "fast", 1, limits.PerSecond(1))
	wide := policy(t, "wide", 100, limits.PerSecond(1))
	d := decide(t, 2, 1, fast, wide, hourly)
	w := refusing(edgeWithFields(), &shed.Rejection{Reason: shed.OverLimit, Rule: "hourly", RetryAfter: d[2].RetryAfter, Verdicts: d})
	p := document(t, w.Body.Bytes())
	if got := strings.Join(p.ViolatedPolicies, " "); got != "fast hourly" {
		t.Errorf("violated policies: %q", got)
	}
	policies, states := parsed(t, w.Header()["Ratelimit-Policy"]), parsed(t, w.Header()["Ratelimit"])
	for _, name := range p.ViolatedPolicies {
		if policies[name] == nil {
			t.Errorf("%s is not in RateLimit-Policy", name)
		}
		if n, ok := integer(states[name], "t"); !ok || n > 3600 {
			t.Errorf("%s: t is %d, later than Retry-After", name, n)
		}
	}
	if got := w.Header().Get("Retry-After"); got != "3600" {
		t.Errorf("Retry-After %q", got)
	}
}

// Documents are remembered; each refusal names those that refused this time.
func TestRefusalsByTheSameRuleBesideOthersAreToldApart(t *testing.T) {
	hourly, fast := policy(t, "hourly", 1, limits.Rate{Amount: 1, Per: time.Hour}), policy(t, "fast", 1, limits.PerSecond(1))
	wide := policy(t, "wide", 100, limits.PerSecond(1))
	e := edgeWithFields()
	for _, row := range []struct {
		policies []*limits.Policy
		want     string
	}{{[]*limits.Policy{fast, hourly}, "fast hourly"}, {[]*limits.Policy{wide, hourly}, "hourly"}, {[]*limits.Policy{hourly}, "hourly"}} {
		p := document(t, refusing(e, &shed.Rejection{Reason: shed.OverLimit, Rule: "hourly", Verdicts: decide(t, 2, 1, row.policies...)}).Body.Bytes())
		if got := strings.Join(p.ViolatedPolicies, " "); got != row.want {
			t.Errorf("violated policies: %q, want %q", got, row.want)
		}
	}
}

func TestWhoHasGoneAwayIsAnsweredNothing(t *testing.T) {
	if w := refusing(edgeWithFields(), nil); w.Code != StatusGone || w.Body.Len() != 0 || len(w.Header()) != 0 {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
}

func TestAPageSaysWaitsAsPeopleDo(t *testing.T) {
	for seconds, want := range map[int64]string{
		1: "1 second", 2: "2 seconds", 119: "119 seconds", 120: "2 minutes", 121: "3 minutes", 7199: "120 minutes", 7200: "2 hours",
		7201: "3 hours", 172_799: "48 hours", 172_800: "2 days", 172_801: "3 days", 9_223_372_037: "106752 days",
	} {
		if got := span(seconds); got != want {
			t.Errorf("%d seconds are %q, want %q", seconds, got, want)
		}
	}
}

func TestWordsOfTheBannerAreTheDetail(t *testing.T) {
	e := edgeWithFields()
	for _, words := range []string{`Reports are "off" <b>today</b>`, "Berichte später wieder", "", "Reports are back at noon"} {
		w := refusing(e, &shed.Rejection{Reason: shed.FeatureOff, Feature: "reports", Words: words, RetryAfter: time.Minute})
		p := document(t, w.Body.Bytes())
		if words != "" && p.Detail != words || p.Detail == "" {
			t.Errorf("detail is %q, the banner says %q", p.Detail, words)
		}
		if p.Feature != "reports" || w.Header().Get("Pumpkin-Feature") != "reports" {
			t.Errorf("feature %q, field %q", p.Feature, w.Header().Get("Pumpkin-Feature"))
		}
	}
}

func TestRefusalSaysNothingAboutTheBodyThatIsNotSent(t *testing.T) {
	w := httptest.NewRecorder()
	for _, field := range []string{"Content-Length", "Content-Encoding", "ETag", "Last-Modified", "Content-Type"} {
		w.Header().Set(field, "stale")
	}
	w.Header().Set("Retry-After", "1")
	w.Header().Set("X-Request-ID", "7")
	edgeWithFields().Refuse(w, httptest.NewRequest("GET", "/", nil), &shed.Rejection{Reason: shed.Overloaded, RetryAfter: 3 * time.Second})
	for field, lines := range w.Header() {
		if len(lines) != 1 || lines[0] == "stale" {
			t.Errorf("%s: %q", field, lines)
		}
	}
	if w.Header().Get("Retry-After") != "3" || w.Header().Get("X-Request-ID") != "7" {
		t.Errorf("fields: %v", w.Header())
	}
}

func TestTheLaterRetryAfterWins(t *testing.T) {
	for outer, want := range map[string]string{"60": "60", "1": "3", "Fri, 31 Dec 1999 23:59:59 GMT": "3", "-5": "3"} {
		w := httptest.NewRecorder()
		w.Header().Set("Retry-After", outer)
		edgeWithFields().Refuse(w, httptest.NewRequest("GET", "/", nil), &shed.Rejection{Reason: shed.Overloaded, RetryAfter: 3 * time.Second})
		if got := w.Header().Values("Retry-After"); len(got) != 1 || got[0] != want {
			t.Errorf("after %q: Retry-After %q, want %q", outer, got, want)
		}
	}
}

func TestConnectionClosesExactlyWhenABodyIsLeftUnread(t *testing.T) {
	for _, row := range []struct {
		why    string
		change func(*http.Request)
		want   string
	}{
		{"a body of known length", func(r *http.Request) {}, "close"},
		{"a body of unknown length", func(r *http.Request) { r.ContentLength = -1 }, "close"},
		{"no body", func(r *http.Request) { r.ContentLength, r.Body = 0, http.NoBody }, ""},
		{"an empty body", func(r *http.Request) { r.ContentLength = 0 }, ""},
		{"HTTP/2", func(r *http.Request) { r.ProtoMajor = 2 }, ""},
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader("body"))
		row.change(r)
		w := httptest.NewRecorder()
		edgeWithFields().Refuse(w, r, &shed.Rejection{Reason: shed.OverLimit})
		if got := w.Header().Get("Connection"); got != row.want {
			t.Errorf("%s: Connection is %q, want %q", row.why, got, row.want)
		}
	}
}
