package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/middleware"
)

const checkFile = `
clients: {trusted_proxies: [127.0.0.0/8]}
limits:
  - {name: two, token_bucket: {capacity: 2, refill: 1/day}, per: ip, routes: [pages]}
  - {name: posts, token_bucket: {capacity: 1, refill: 1/day}, per: ip, routes: [posts]}
  - {name: bodies, token_bucket: {capacity: 1, refill: 1/day}, unit: request_bytes, per: ip}
routes:
  - {name: pages, match: "GET /pages/{page}"}
  - {name: posts, match: "POST /pages/{page}"}
  - {name: reports, match: /reports, feature: reports}
`

func checking(t *testing.T) *gateway {
	t.Helper()
	g := opened(t, func(o *options) { o.checkListen, o.config = "127.0.0.1:0", written(t, checkFile) })
	r := request(t, "PUT", g.url("admin", "/items/x"), `{"severity":"major","message":{"en":"No reports."},"features":{"reports":{"off":1}},"reason":"test"}`,
		"Authorization", "Bearer "+strings.Repeat("t", 32), "Content-Type", "application/json")
	if res, body := asked(t, r); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	return g
}

func TestNginxIsAnsweredInItsTerms(t *testing.T) {
	g := checking(t)
	ask := func(client, method, uri string) (*http.Response, middleware.Problem) {
		t.Helper()
		res, body := get(t, g.url("check", "/nginx"), "X-Original-URI", uri, "X-Original-Method", method, "X-Forwarded-For", client)
		var p middleware.Problem
		if res.StatusCode != 200 {
			if err := json.Unmarshal([]byte(body), &p); err != nil {
				t.Errorf("%s: %v", body, err)
			}
		}
		return res, p
	}
	for i, row := range []struct {
		client, method, uri string
		status              int
		meant, reason       string
	}{
		{"203.0.113.1", "GET", "/pages/1?q=1", 200, "", ""},
		{"203.0.113.1", "GET", "/pages/2", 200, "", ""},
		{"203.0.113.1", "GET", "/pages/3", 403, "429", "over_limit"},
		{"203.0.113.2", "GET", "/pages/3", 200, "", ""}, // another client
		{"203.0.113.1", "POST", "/pages/3", 200, "", ""},
		{"203.0.113.1", "POST", "/pages/3", 403, "429", "over_limit"},
		{"203.0.113.1", "GET", "/else", 200, "", ""},
		{"203.0.113.3", "", "/pages/1", 200, "", ""}, // asked with GET
		{"203.0.113.3", "", "/pages/1", 200, "", ""},
		{"203.0.113.3", "", "/pages/1", 403, "429", "over_limit"},
		{"garbage", "GET", "/pages/1", 403, "403", "no_identity"},
		{"203.0.113.1", "GET", "/reports", 403, "503", "feature_off"},
	} {
		res, p := ask(row.client, row.method, row.uri)
		if res.StatusCode != row.status || res.Header.Get("Spillway-Status") != row.meant || string(p.Reason) != row.reason {
			t.Errorf("%d: %d %v %+v", i, res.StatusCode, res.Header, p)
		}
		if (row.status == 403 && row.reason != "no_identity") != (res.Header.Get("Retry-After") != "") {
			t.Errorf("%d: Retry-After %q", i, res.Header.Get("Retry-After"))
		}
	}
	// Without the address nothing can be decided, and nothing is let through for that.
	if res, body := get(t, g.url("check", "/nginx")); res.StatusCode != 403 || !strings.Contains(body, `"reason":"no_original"`) ||
		res.Header.Get("Cache-Control") != "no-store" || res.ContentLength != int64(len(body)) {
		t.Errorf("no X-Original-URI: %d %s", res.StatusCode, body)
	}
	// With it nginx is known without its prefix, but by no field under Envoy's, whose clients can send that.
	if res, _ := get(t, g.url("check", "/"), "X-Original-URI", "/reports"); res.StatusCode != 403 || res.Header.Get("Spillway-Status") != "503" {
		t.Errorf("without a prefix: %d %v", res.StatusCode, res.Header)
	}
	if res, _ := get(t, g.url("check", "/envoy/reports"), "X-Original-URI", "/else"); res.StatusCode != 429 || res.Header.Get("Spillway-Status") != "503" {
		t.Errorf("under Envoy's prefix: %d %v", res.StatusCode, res.Header)
	}
	if res, _ := get(t, g.url("check", "/nginx"), "X-Original-URI", "/else", "X-Original-URI", "/reports", "X-Forwarded-For", "203.0.113.9"); res.StatusCode != 403 {
		t.Errorf("two of them, and who knows which is the proxy's: %d", res.StatusCode)
	}
	// Nothing was learnt about a service that nobody has seen.
	if st := g.shedder.Status(); st.Finished["success"] != 0 || st.InFlight != 0 {
		t.Errorf("%+v", st.Finished)
	}
}

func TestEnvoyIsAnsweredInItsTerms(t *testing.T) {
	g := checking(t)
	for i, row := range []struct {
		method, path  string
		status        int
		meant, reason string
		client        string
	}{
		{"GET", "/envoy/pages/1", 200, "", "", ""},
		{"GET", "/pages/2", 200, "", "", ""}, // without a path_prefix
		{"GET", "/envoy/pages/1", 429, "429", "over_limit", ""},
		{"POST", "/envoy/pages/1", 200, "", "", ""}, // what it sends along is not the body that is asked about
		{"GET", "/envoy/reports", 429, "503", "feature_off", ""},
		{"GET", "/envoy/pages/1", 403, "403", "no_identity", "garbage"},
	} {
		res, body := asked(t, request(t, row.method, g.url("check", row.path), "a body", "X-Forwarded-For", cmp.Or(row.client, "203.0.113.9")))
		if res.StatusCode != row.status || res.Header.Get("Spillway-Status") != row.meant || !strings.Contains(body, row.reason) {
			t.Errorf("%d: %d %v %s", i, res.StatusCode, res.Header, body)
		}
		if limited := res.Header.Get("X-Envoy-Ratelimited"); (limited == "true") != (row.status == 429) {
			t.Errorf("%d: X-Envoy-Ratelimited %q with %d", i, limited, res.StatusCode)
		}
	}
}

// snippet is what the manual tells to write into nginx's configuration.
func snippet(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```nginx\n")
	text, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("docs/gateway.md has no snippet for nginx")
	}
	return text
}

// The snippet of the manual, in a real nginx: clients see what they would see of the gateway itself.
func TestNginxTurnsRefusalsBackIntoWhatTheyMean(t *testing.T) {
	path, err := exec.LookPath("nginx")
	if err != nil {
		if _, err := os.Stat("/usr/sbin/nginx"); err != nil {
			t.Fatal("this test needs nginx; install it with: apt-get install -y nginx (make test does so)")
		}
		path = "/usr/sbin/nginx"
	}
	back := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/pages/forbidden" {
			w.WriteHeader(http.StatusForbidden)
		}
		fmt.Fprint(w, "served")
	})
	g := checking(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	folder := t.TempDir()
	text := strings.NewReplacer("127.0.0.1:9190", strings.TrimPrefix(g.url("check", ""), "http://"),
		"http://127.0.0.1:9000", back, "listen 80;", "listen "+addr+";").Replace(snippet(t))
	writeFile(t, filepath.Join(folder, "nginx.conf"), `
daemon off;
worker_processes 1;
pid nginx.pid;
error_log error.log;
events { worker_connections 64; }
http {
access_log off;
client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
`+text+"}\n")
	server := exec.Command(path, "-p", folder, "-c", "nginx.conf")
	var said strings.Builder
	server.Stderr = &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- server.Wait() }()
	t.Cleanup(func() { server.Process.Signal(syscall.SIGQUIT); <-exited })
	wait.Until(t, "nginx listens", func() bool {
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("nginx ends: %v\n%s", err, said.String())
		default:
		}
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	for i, row := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", "/pages/1", "", 200, "served"},
		{"GET", "/pages/forbidden", "", 403, "served"}, // the service's own 403 stays one
		{"GET", "/pages/1", "", 429, `"reason":"over_limit"`},
		{"POST", "/pages/1", "a body", 200, "served"},
		{"POST", "/pages/1", "a body", 429, `"reason":"over_limit"`},
		{"GET", "/reports", "", 503, `"reason":"feature_off"`},
		{"GET", "/else", "", 200, "served"},
	} {
		// What the client says about its address is not believed: nginx says what it sees.
		res, body := asked(t, request(t, row.method, "http://"+addr+row.path, row.body, "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i)))
		if res.StatusCode != row.status || !strings.Contains(body, row.says) {
			t.Errorf("%s %s: %d %v %s", row.method, row.path, res.StatusCode, res.Header, body)
		}
		if row.status == 429 || row.status == 503 {
			if res.Header.Get("Retry-After") == "" || res.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s %s: %v", row.method, row.path, res.Header)
			}
		}
	}
}

// TestAWarningIsSaidOnce: whichever listeners there are, what the configuration leaves open is no news the second time.
func TestAWarningIsSaidOnce(t *testing.T) {
	const file = `
clients: {trusted_proxies: [127.0.0.0/8]}
limits:
  - {name: per-client, token_bucket: {capacity: 2, refill: 1/s}}
`
	for _, upstream := range []string{"http://127.0.0.1:9", ""} {
		var said bytes.Buffer
		o := options{config: written(t, file), upstream: upstream, listen: "127.0.0.1:0", admin: "127.0.0.1:0", checkListen: "127.0.0.1:0"}
		if upstream == "" {
			o.listen = ""
		}
		g, err := open(o, func(string) string { return "" }, slog.New(slog.NewTextHandler(&said, nil)))
		if err != nil {
			t.Fatal(err)
		}
		g.release()
		if n := strings.Count(said.String(), "only labels"); n != 1 {
			t.Errorf("with the upstream %q it is said %d times that keys are only labels:\n%s", upstream, n, &said)
		}
	}
}
