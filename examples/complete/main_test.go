package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/pumpkin"
)

// TestTheWholeLife runs the program with its own file: it limits, shows, takes a changed file over, raises the banner, and lets a request
// that runs finish when it is told to stop.
func TestTheWholeLife(t *testing.T) {
	token := strings.Repeat("for-this-test-", 3)
	t.Setenv(pumpkin.TokenEnv, token)
	began, finish := make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	mux.Handle("/", app())
	mux.HandleFunc("GET /slow", func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-finish
		io.WriteString(w, "done")
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	config := ownFile(t)
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, mux, config, "127.0.0.1:0", out)
		out.Close()
	}()
	lines := bufio.NewScanner(said)
	where := func(name string) string {
		if !lines.Scan() {
			t.Fatalf("it ends with %v", <-ended)
		}
		if !strings.HasPrefix(lines.Text(), name) {
			t.Fatalf("it says %q, want where the %s is", lines.Text(), name)
		}
		return strings.TrimSuffix(regexp.MustCompile(`http://\S+`).FindString(lines.Text()), "/")
	}
	base, admin := where("app"), where("admin")
	go io.Copy(io.Discard, said)

	// A report costs 5 of 20; the bucket also refills, so it may take one more.
	passed := 0
	for ; passed < 500; passed++ {
		res, body := get(t, base+"/report")
		if res.StatusCode == http.StatusTooManyRequests {
			if res.Header.Get("Retry-After") == "" || !strings.Contains(body, `"rule":"per-client"`) {
				t.Errorf("the refusal says %v %s", res.Header, body)
			}
			break
		}
	}
	if passed < 4 || passed == 500 {
		t.Errorf("%d reports passed; want 4, and few more by time", passed)
	}

	// Operators see it.
	for _, see := range []struct{ path, text string }{
		{"/metrics", `spillway_refused_total{reason="over_limit",route="report",rule="per-client"} 1`},
		{"/metrics", "spillway_limit "},             // read from the Shedder
		{"/metrics", "spillway_pumpkin_scheduled "}, // read from the pumpkin
		{"/debug/spillway", `"per-client"`},
		{"/dashboard/", "<title>"},
		{"/readyz", ""},
		{"/livez", ""},
	} {
		if res, body := get(t, admin+see.path); res.StatusCode != 200 || !strings.Contains(body, see.text) {
			t.Errorf("%s: %d, without %s", see.path, res.StatusCode, see.text)
		}
	}

	// A changed file is in force soon.
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(strings.Replace(string(text), "capacity: 20", "capacity: 10000", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the new capacity", func() bool {
		res, _ := get(t, base+"/report")
		return strings.HasPrefix(res.Header.Get("RateLimit-Policy"), `"per-client";q=10000;`)
	})

	// The banner switches reports off and nothing else, in its own words, and pages have its script.
	item := `{"severity":"major","message":{"en":"No reports tonight."},"features":{"reports":{"off":1}},"ttl":"1h","reason":"test"}`
	put, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, admin+"/items/night", strings.NewReader(item))
	put.Header.Set("Authorization", "Bearer "+token)
	put.Header.Set("Content-Type", "application/json")
	if res, body := do(t, put); res.StatusCode >= 300 {
		t.Fatalf("the banner is not taken: %d %s", res.StatusCode, body)
	}
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/report":       {503, "No reports tonight."},
		"/pumpkin.json": {200, "No reports tonight."},
		"/pumpkin.js":   {200, "pumpkin"},
		"/":             {200, `src="/pumpkin.js"`},
	} {
		if res, body := get(t, base+path); res.StatusCode != want.status || !strings.Contains(body, want.text) {
			t.Errorf("%s: %d %.200s, want %d with %s", path, res.StatusCode, body, want.status, want.text)
		}
	}

	// What runs when the stop comes is answered in full.
	slow := make(chan string, 1)
	go func() {
		res, err := http.Get(base + "/slow")
		if err != nil {
			slow <- err.Error()
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		slow <- fmt.Sprint(res.StatusCode, " ", string(body))
	}()
	<-began
	stop()
	until(t, "the listener to close", func() bool {
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(base + "/")
		if err == nil {
			res.Body.Close()
		}
		return err != nil
	})
	close(finish)
	if got := <-slow; got != "200 done" {
		t.Errorf("the running request ends with %s", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("the program ends with %v", err)
	}
}

// TestAWrongFileIsSaidWithItsLine: nothing is served, and the message names the place.
func TestAWrongFileIsSaidWithItsLine(t *testing.T) {
	config := filepath.Join(t.TempDir(), "spillway.yaml")
	if err := os.WriteFile(config, []byte("limits:\n  - name: a\n    token_bucket: {capacity: 20, refil: 5/s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), app(), config, "127.0.0.1:0", io.Discard); err == nil || !strings.HasPrefix(err.Error(), config+":3: ") {
		t.Errorf("it says %v", err)
	}
}

// ownFile is a copy of the example's file whose admin listener is on a free port.
func ownFile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("spillway.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "spillway.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "127.0.0.1:9183", "127.0.0.1:0", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for %s", what)
		}
	}
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, r)
}

func do(t *testing.T, r *http.Request) (*http.Response, string) {
	t.Helper()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}
