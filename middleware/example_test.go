package middleware_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })

// answer prints what a client gets.
func answer(h http.Handler, peer string, fields ...string) {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = peer
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
}

// Two requests at once, one more each minute. Forging headers does not make a client another one.
func ExampleShed() {
	s, err := shed.New(shed.Config{
		Limits: []shed.Limit{{Name: "per-client", Rule: limits.TokenBucket{Capacity: 2, Refill: limits.Rate{Amount: 1, Per: time.Minute}}}},
		Health: health.Config{Off: true}, // a real service leaves it on
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	h := middleware.Shed(s)(hello)
	answer(h, "192.0.2.7:1001")
	answer(h, "192.0.2.7:1002", "X-Forwarded-For", "6.6.6.6")
	answer(h, "192.0.2.7:1003", "X-Real-IP", "6.6.6.6", "X-API-Key", strings.Repeat("k", 10_000))
	answer(h, "198.51.100.1:1001")
	// Output:
	// 200 hello
	// 200 hello
	// 429 {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"detail":"The quota of the rule \"per-client\" is used up. Wait for the time in Retry-After, then try again.","reason":"over_limit","rule":"per-client","violated-policies":["per-client"]}
	// 200 hello
}

// Behind a proxy that is named, clients are told apart by what the proxy wrote, and only by that.
func ExampleShedWithConfig() {
	s, err := shed.New(shed.Config{
		Clients: shed.Clients{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		Limits:  []shed.Limit{{Name: "per-client", Rule: limits.TokenBucket{Capacity: 1, Refill: limits.Rate{Amount: 1, Per: time.Minute}}}},
		Health:  health.Config{Off: true},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	wrap, err := middleware.ShedWithConfig(middleware.Config{
		Shedder: s,
		Skip:    func(r *http.Request) bool { return r.URL.Path == "/pumpkin.json" },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	codes := func(forwarded ...string) {
		for _, list := range forwarded {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = "10.0.0.1:4711"
			r.Header.Set("X-Forwarded-For", list)
			w := httptest.NewRecorder()
			wrap(hello).ServeHTTP(w, r)
			fmt.Printf("%-20s %d\n", list, w.Code)
		}
	}
	codes("192.0.2.7", "6.6.6.6, 192.0.2.7", "192.0.2.8:52011", "1.1.1.1, nonsense")
	// Output:
	// 192.0.2.7            200
	// 6.6.6.6, 192.0.2.7   429
	// 192.0.2.8:52011      200
	// 1.1.1.1, nonsense    403
}
