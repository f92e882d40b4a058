package middleware_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"

func TestPeopleGetAPageAndProgramsADocument(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 10, limited(shed.Limit{Name: "<per&client>", Rule: limits.TokenBucket{Capacity: 1, Refill: limits.Rate{Amount: 1, Per: time.Hour}}}))
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, ok))
		allowed(t, send(t, srv, "GET", "/", "Accept", browser))
		plain := send(t, srv, "GET", "/")
		refused(t, plain, 429, shed.OverLimit)
		for accept, page := range map[string]bool{
			browser: true, "text/html": true, "application/xhtml+xml": true, "text/html;q=1": true, "text/html;q=1.1": false, "text/html;level=1;q=0": false,
			"application/json, text/html": true, "TEXT/HTML; charset=utf-8": true, "application/json;q=0.5, text/html;q=0.9": true,
			"*/*": false, "text/*": false, "text/html;q=0": false, "text/html;q=x": false, "text/html;q=-1": false, "text/html;q=NaN": false,
			"application/json, text/html;q=0.9": false, "application/problem+json;q=0.9, text/html;q=0.8": false, "text/plain": false,
			strings.Repeat("a/b,", 300) + "text/html": false,
		} {
			for _, method := range []string{"GET", "HEAD"} {
				res := send(t, srv, method, "/", "Accept", accept)
				want := "application/problem+json"
				if page {
					want = "text/html; charset=utf-8"
				}
				if got := res.Header.Get("Content-Type"); res.StatusCode != 429 || got != want {
					t.Errorf("%s, Accept %.60q: status %d, %s", method, accept, res.StatusCode, got)
				}
				for _, field := range []string{"RateLimit-Policy", "Cache-Control"} {
					if res.Header.Get(field) != plain.Header.Get(field) || res.Header.Get(field) == "" {
						t.Errorf("Accept %.60q: %s is %q, without it %q", accept, field, res.Header.Get(field), plain.Header.Get(field))
					}
				}
				// As time goes by less is left to wait.
				before, _ := strconv.Atoi(plain.Header.Get("Retry-After"))
				if after, err := strconv.Atoi(res.Header.Get("Retry-After")); err != nil || after > before || after < before/2 {
					t.Errorf("Accept %.60q: Retry-After is %q, without it %d", accept, res.Header.Get("Retry-After"), before)
				}
				body, _ := io.ReadAll(res.Body)
				if page && method == "GET" {
					checkPage(t, string(body))
				} else if method == "HEAD" && len(body) > 0 {
					t.Errorf("HEAD has a body: %q", body)
				}
			}
		}
	})
}

// checkPage checks what makes a page readable for everybody and lets it pass any content security policy.
func checkPage(t *testing.T, text string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		count[n.Data]++
		for _, a := range n.Attr {
			if a.Key == "style" || a.Key == "src" || a.Key == "href" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s %s> would need a policy's permission", n.Data, a.Key)
			}
		}
		if n.Data == "html" && (len(n.Attr) != 1 || n.Attr[0].Key != "lang") {
			t.Error("the page does not say in which language it is")
		}
	}
	for _, name := range []string{"script", "style", "link", "img", "iframe", "per&client"} {
		if count[name] > 0 {
			t.Errorf("there is a <%s>", name)
		}
	}
	if count["title"] != 1 || count["h1"] != 1 || count["main"] != 1 {
		t.Errorf("elements: %v", count)
	}
	for _, word := range []string{"Try again in 60 minutes.", "over_limit, &lt;per&amp;client&gt;", `name="viewport"`} {
		if !strings.Contains(text, word) {
			t.Errorf("no %q in\n%s", word, text)
		}
	}
}

func TestPagesCanBeSwitchedOff(t *testing.T) {
	s := open(t, 10, limited(bucket("per-client", 0)))
	h := wrapHTTP(t, middleware.Config{Shedder: s, NoHTML: true}, ok)
	refused(t, call(h, "GET", "/", "192.0.2.1:1", "Accept", browser).Result(), 429, shed.CostTooLarge)
}

func TestThePageSaysWhatTheBannerSays(t *testing.T) {
	off := func(c *shed.Config) {
		c.Features = featureOff{}
		c.Routes = []shed.Route{{Name: "r", Match: "/", Feature: "reports"}}
	}
	h := wrapHTTP(t, middleware.Config{Shedder: open(t, 1, off)}, ok)
	body := call(h, "GET", "/", "192.0.2.1:1", "Accept", browser).Body.String()
	if !strings.Contains(body, "<p>Back &lt;soon&gt;.</p>") || !strings.Contains(body, "<h1>Not available") || !strings.Contains(body, "Try again in 30 seconds.") {
		t.Error(body)
	}
}

type featureOff struct{}

func (featureOff) FeatureOff(string, string) (string, time.Duration, bool) {
	return "Back <soon>.", 30 * time.Second, true
}

func TestTheApplicationsOwnRendererAnswers(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		cfg := middleware.Config{Shedder: open(t, 10, limited(bucket("per-client", 0)))}
		cfg.Render = func(w http.ResponseWriter, _ *http.Request, rejection *shed.Rejection, p middleware.Problem) {
			w.Header().Set("Content-Type", "text/x-mine")
			w.WriteHeader(p.Status)
			_, _ = io.WriteString(w, string(rejection.Reason)+" "+p.Rule)
		}
		srv := w.serve(t, w.wrap(t, cfg, ok))
		res := send(t, srv, "GET", "/", "Accept", browser)
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != 429 || res.Header.Get("Content-Type") != "text/x-mine" || string(body) != "cost_too_large per-client" {
			t.Errorf("%s %v %q", res.Status, res.Header, body)
		}
		if res.Header.Get("RateLimit") == "" || res.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v", res.Header)
		}
	})
}

// A renderer that says nothing is no success; one that says anything has the only word.
func TestARendererThatSaysNothingIsNoSuccess(t *testing.T) {
	for why, row := range map[string]struct {
		says  func(w http.ResponseWriter)
		spoke bool
		code  int
		body  string
	}{
		"nothing":  {func(http.ResponseWriter) {}, false, 429, ""},
		"hints":    {func(w http.ResponseWriter) { w.WriteHeader(103) }, false, 103, ""}, // httptest keeps the first one
		"a status": {func(w http.ResponseWriter) { w.WriteHeader(429) }, true, 429, ""},
		"a body":   {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "mine") }, true, 200, "mine"},
	} {
		cfg := middleware.Config{Shedder: open(t, 10, limited(bucket("per-client", 0)))}
		cfg.Render = func(w http.ResponseWriter, _ *http.Request, _ *shed.Rejection, _ middleware.Problem) { row.says(w) }
		w := call(wrapHTTP(t, cfg, ok), "GET", "/", "192.0.2.1:1")
		if document := strings.Contains(w.Body.String(), `"cost_too_large"`); document == row.spoke || w.Code != row.code || row.spoke && w.Body.String() != row.body {
			t.Errorf("%s: %d %s", why, w.Code, w.Body)
		}
	}
}
