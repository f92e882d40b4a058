package pumpkin_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/spillway-go/spillway/pumpkin"
)

// An operator switches the search off; clients see the banner, and the server refuses what they still send.
func Example() {
	p, err := pumpkin.New(pumpkin.Config{Token: "a-token-of-at-least-32-characters", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()

	// On the admin listener, usually 127.0.0.1:9180:
	r := httptest.NewRequest("PUT", "http://127.0.0.1:9180/items/search", strings.NewReader(`{
		"severity": "major",
		"message": {"en": "Search is off while we rebuild its index."},
		"features": {"search": {"off": 1}},
		"ttl": "30m",
		"reason": "index rebuild"
	}`))
	r.Header.Set("Authorization", "Bearer a-token-of-at-least-32-characters")
	r.Header.Set("Content-Type", "application/json")
	admin := httptest.NewRecorder()
	p.Admin().ServeHTTP(admin, r)
	fmt.Println("put:", admin.Code)

	// On the public listener:
	mux := http.NewServeMux()
	mux.Handle("/pumpkin.json", p.Public())
	poll := httptest.NewRecorder()
	mux.ServeHTTP(poll, httptest.NewRequest("GET", "/pumpkin.json", nil))
	fmt.Println("poll:", poll.Code, strings.Contains(poll.Body.String(), `"active":true`))

	words, _, off := p.FeatureOff("search", "customer-42")
	fmt.Println("search off:", off, "-", words)
	// Output:
	// put: 200
	// poll: 200 true
	// search off: true - Search is off while we rebuild its index.
}

// A poll of what has not changed costs 304 and no body.
func ExamplePumpkin_Public() {
	p, err := pumpkin.New(pumpkin.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()

	first := httptest.NewRecorder()
	p.Public().ServeHTTP(first, httptest.NewRequest("GET", "/pumpkin.json", nil))
	again := httptest.NewRequest("GET", "/pumpkin.json", nil)
	again.Header.Set("If-None-Match", first.Header().Get("ETag"))
	second := httptest.NewRecorder()
	p.Public().ServeHTTP(second, again)
	fmt.Println(first.Code, second.Code, second.Body.Len())
	// Output: 200 304 0
}

// A program raises an item itself. A write that is refused says why, and changes nothing.
func ExamplePumpkin_Put() {
	p, err := pumpkin.New(pumpkin.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()

	e := pumpkin.Entry{
		Severity: pumpkin.Minor,
		Message:  map[string]string{"en": "Reports are slow today.", "de": "Berichte dauern heute länger."},
		Features: map[string]pumpkin.Feature{"reports": {Off: 0.5}}, // for half of the clients
		Reason:   "replica lag",
	}
	fmt.Println(p.Put("lag-watch", "reports", e), p.Document().Rev)

	e.URL = "javascript:alert(1)"
	fmt.Println(p.Put("lag-watch", "reports", e), p.Document().Rev)
	// Output:
	// <nil> 1
	// pumpkin: invalid_field: url: must be an absolute http or https URL without user information 1
}

// A program takes the tokens from a file, else from the environment, else makes one and prints it.
func ExampleAdminTokens() {
	tokens, made, err := pumpkin.AdminTokens("", "") // the second is os.Getenv(pumpkin.TokenEnv)
	fmt.Println(len(tokens), tokens[0].Name, len(made) >= 32, err)

	_, _, err = pumpkin.AdminTokens("", "hunter2")
	fmt.Println(err) // programs print it and exit with 2
	// Output:
	// 1 admin true <nil>
	// pumpkin: admin token in SPILLWAY_ADMIN_TOKEN has 7 characters, at least 32 are needed; make one with: openssl rand -base64 32
}
