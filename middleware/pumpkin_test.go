package middleware_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/pumpkin"
	"github.com/spillway-go/spillway/shed"
)

// raised is a pumpkin with one item that switches search off for a share of clients.
func raised(t *testing.T, share float64) *pumpkin.Pumpkin {
	t.Helper()
	p, err := pumpkin.New(pumpkin.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	err = p.Put("test", "search", pumpkin.Entry{
		Severity: pumpkin.Major, Message: map[string]string{"en": "Search is off."}, Features: map[string]pumpkin.Feature{"search": {Off: share}}, Reason: "r",
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A page of another origin can read the refusal, though the handler that answers CORS is never reached.
func TestPagesOfOtherOriginsCanReadThatAFeatureIsOff(t *testing.T) {
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) {
			p := raised(t, 1)
			s := open(t, 10, func(c *shed.Config) {
				c.Features, c.Routes = p, []shed.Route{{Name: "search", Match: "GET /search", Feature: "search"}}
			})
			h := a.wrap(t, middleware.Config{Shedder: s, Pumpkin: p}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, "ok")
			}))
			const expose, allow = "Access-Control-Expose-Headers", "Access-Control-Allow-Origin"
			res := call(h, "GET", "/search", "192.0.2.1:1", "Origin", "https://app.example").Result()
			if res.StatusCode != 503 || res.Header.Get("Content-Type") != "application/problem+json" || res.Header.Get("Retry-After") == "" ||
				res.Header.Get("Pumpkin-Feature") != "search" {
				t.Errorf("%d %v", res.StatusCode, res.Header)
			}
			exposed := strings.Join(res.Header.Values(expose), ", ")
			for _, field := range []string{"Retry-After", "Pumpkin-Feature", "Pumpkin-Rev"} {
				if !strings.Contains(exposed, field) {
					t.Errorf("%s is not exposed: %q", field, exposed)
				}
			}
			if res.Header.Get(allow) != "https://app.example" || res.Header.Get("Access-Control-Allow-Credentials") != "true" || res.Header.Get("Vary") != "Origin" {
				t.Errorf("%v", res.Header)
			}
			if res := call(h, "GET", "/search", "192.0.2.1:1").Result(); res.Header.Get(allow) != "" || res.Header.Get(expose) != "" {
				t.Errorf("without an origin: %v", res.Header)
			}
			// What is not off is the application's to allow; the revision can be seen where it does.
			res = call(h, "GET", "/other", "192.0.2.1:1", "Origin", "https://app.example").Result()
			if res.StatusCode != 200 || res.Header.Get(allow) != "" || res.Header.Get(expose) != "Pumpkin-Rev" || res.Header.Get("Pumpkin-Rev") != p.Rev() {
				t.Errorf("%d %v", res.StatusCode, res.Header)
			}
			// What layers further out have said stays, and is not said twice.
			varying := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Vary", "Accept-Encoding, origin")
				w.Header().Set(expose, "X-Own")
				h.ServeHTTP(w, r)
			})
			res = call(varying, "GET", "/search", "192.0.2.1:1", "Origin", "https://app.example").Result()
			if got := res.Header.Values("Vary"); len(got) != 1 || res.Header.Values(expose)[0] != "X-Own" || len(res.Header.Values(expose)) < 2 {
				t.Errorf("Vary %q, %s %q", got, expose, res.Header.Values(expose))
			}
			// A layer further out that has decided already is not overruled.
			outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set(allow, "https://only.example")
				h.ServeHTTP(w, r)
			})
			if res := call(outer, "GET", "/search", "192.0.2.1:1", "Origin", "https://app.example").Result(); len(res.Header.Values(allow)) != 1 ||
				res.Header.Get(allow) != "https://only.example" || res.Header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%v", res.Header)
			}
		})
	}
}

// A share of clients is refused, always the same ones, and more of them as it grows.
func TestAShareOfClientsIsTheSameOnEveryRequest(t *testing.T) {
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) {
			p := raised(t, 0.5)
			s := open(t, 10, func(c *shed.Config) {
				c.Features, c.Routes = p, []shed.Route{{Name: "search", Match: "GET /search", Feature: "search"}}
			})
			h := a.wrap(t, middleware.Config{Shedder: s, Pumpkin: p}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			refusals := func() map[int]bool {
				refused := map[int]bool{}
				for client := range 200 {
					for range 3 {
						code := call(h, "GET", "/search", fmt.Sprintf("198.51.100.%d:1", client)).Code
						if was, known := refused[client]; known && was != (code == 503) {
							t.Fatalf("client %d is refused now and served then", client)
						}
						refused[client] = code == 503
					}
				}
				return refused
			}
			count := func(refused map[int]bool) (n int) {
				for _, r := range refused {
					if r {
						n++
					}
				}
				return n
			}
			half := refusals()
			if n := count(half); n < 60 || n > 140 { // 200 draws at one half: outside of this once in 10⁸ runs
				t.Errorf("%d of 200 are refused at one half", n)
			}
			err := p.Put("test", "search", pumpkin.Entry{Severity: pumpkin.Major, Message: map[string]string{"en": "x"},
				Features: map[string]pumpkin.Feature{"search": {Off: 0.8}}, Reason: "r"})
			if err != nil {
				t.Fatal(err)
			}
			more := refusals()
			if count(more) <= count(half) {
				t.Errorf("%d at 0.8, %d at 0.5", count(more), count(half))
			}
			for client, was := range half {
				if was && !more[client] {
					t.Errorf("client %d came back while the share grew", client)
				}
			}
		})
	}
}

// While everything else is turned away, the document is served, by the same middleware and in front of the same handler.
func TestThePollAnswersWhileAllElseIsShed(t *testing.T) {
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) {
			p := raised(t, 0)
			s := open(t, 1, func(c *shed.Config) { c.Features = p })
			holding, release := make(chan struct{}), make(chan struct{})
			mux := http.NewServeMux()
			mux.HandleFunc("/hold", func(http.ResponseWriter, *http.Request) { close(holding); <-release })
			mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
			mux.Handle("/pumpkin.json", p.Public())
			h := a.wrap(t, middleware.Config{Shedder: s, Pumpkin: p, Skip: func(r *http.Request) bool { return r.URL.Path == "/pumpkin.json" }}, mux)
			done := make(chan struct{})
			go func() {
				defer close(done)
				call(h, "GET", "/hold", "192.0.2.9:1")
			}()
			<-holding
			defer func() { close(release); <-done }()
			tag := ""
			for i := range 300 {
				if code := call(h, "GET", "/", fmt.Sprintf("192.0.2.1:%d", i+1)).Code; code != 503 {
					t.Fatalf("something else passes: %d", code)
				}
				w := call(h, "GET", "/pumpkin.json", "192.0.2.1:1", "If-None-Match", tag)
				if i == 0 && w.Code != 200 || i > 0 && w.Code != 304 {
					t.Fatalf("poll %d: %d", i, w.Code)
				}
				tag = w.Header().Get("Etag")
			}
		})
	}
}
