package widget

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/pumpkin"
)

// snippets returns the code blocks of a language in docs/pumpkin.md.
func snippets(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/pumpkin.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, part := range strings.Split(string(text), "\n```"+language+"\n")[1:] {
		block, _, ok := strings.Cut(part, "\n```")
		if !ok {
			t.Fatalf("a block of %s has no end", language)
		}
		found = append(found, block)
	}
	return found
}

// startProxy runs a proxy until the test ends and returns when it listens at ready.
func startProxy(t *testing.T, ready, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	home := t.TempDir() // where Caddy keeps what nobody needs here
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		<-ended
		if t.Failed() {
			t.Log(said.String())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if c, err := net.Dial("tcp", ready); err == nil {
			c.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ended: %v: %s", name, err, said.String())
		case <-ctx.Done():
			t.Fatalf("%s does not listen at %s", name, ready)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// find returns the path of a proxy, or ends the test with what to do.
func find(t *testing.T, name, install string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		if path = "/usr/sbin/" + name; !exists(path) {
			t.Fatalf("this test tries what docs/pumpkin.md says of %s, which is not installed; install it with: %s (make test does so)", name, install)
		}
	}
	return path
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// freePort returns an address on which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// polled asks as a client does.
func polled(t *testing.T, url, tag string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// nginxWith starts nginx with what goes into http { } and server { }.
func nginxWith(t *testing.T, inHTTP, inServer string) string {
	t.Helper()
	path := find(t, "nginx", "apt-get install -y nginx-light")
	dir, listen := t.TempDir(), freePort(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "nginx.conf")
	user := ""
	if os.Getuid() == 0 {
		user = "user root;\n"
	}
	text := fmt.Sprintf(`%sdaemon off; pid %[2]s/pid; error_log stderr; events {}
http {
	access_log off; client_body_temp_path %[2]s/b; proxy_temp_path %[2]s/p; fastcgi_temp_path %[2]s/f; uwsgi_temp_path %[2]s/u; scgi_temp_path %[2]s/s;
	types { application/json json; text/javascript js; }
	%[3]s
	server { listen %[4]s; %[5]s }
}`, user, dir, inHTTP, listen, inServer)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	startProxy(t, listen, path, "-c", conf, "-p", dir, "-e", "stderr")
	return "http://" + listen
}

func TestNginxAnswersWhileTheServiceIsDown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.put(t, "down", notice(pumpkin.Critical, "We are down."))
	block := snippets(t, "nginx")[0]
	block = strings.ReplaceAll(block, "/var/cache/nginx/pumpkin", t.TempDir())
	block = strings.ReplaceAll(block, "http://127.0.0.1:8080", s.URL)
	inHTTP, inServer, ok := strings.Cut(block, "# in server { }")
	if !ok || !strings.Contains(inServer, s.URL) {
		t.Fatal("the snippet is not what this test expects")
	}
	url := nginxWith(t, inHTTP, inServer)

	first, body := polled(t, url+"/pumpkin.json", "")
	if first.StatusCode != 200 || !strings.Contains(body, "We are down.") || first.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Fatalf("%d %v %s", first.StatusCode, first.Header, body)
	}
	before := s.polled()
	for range 50 {
		if again, _ := polled(t, url+"/pumpkin.json?x=1", first.Header.Get("Etag")); again.StatusCode != 304 || again.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Fatalf("a poll that brings nothing new: %d %v", again.StatusCode, again.Header)
		}
	}
	if n := s.polled() - before; n > 20 { // one in 5 s, however slow this machine is
		t.Errorf("%d of 50 polls came through", n)
	}
	if script, body := polled(t, url+"/pumpkin.js", ""); script.StatusCode != 200 || !strings.Contains(body, "pumpkin-banner") {
		t.Errorf("the script: %d", script.StatusCode)
	}

	s.CloseClientConnections()
	s.Close()
	time.Sleep(6 * time.Second) // until what nginx has is no longer fresh
	stale, body := polled(t, url+"/pumpkin.json", "")
	if stale.StatusCode != 200 || !strings.Contains(body, "We are down.") {
		t.Errorf("while the service is down: %d %s", stale.StatusCode, body)
	}
	if stale, _ := polled(t, url+"/pumpkin.json", first.Header.Get("Etag")); stale.StatusCode != 304 {
		t.Errorf("a poll with a tag while the service is down: %d", stale.StatusCode)
	}
}

func TestNginxServesTheDocumentFromAFile(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.put(t, "down", notice(pumpkin.Critical, "We are down."))
	_, body := polled(t, s.URL+"/pumpkin.json", "")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pumpkin.json"), []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
	url := nginxWith(t, "", strings.ReplaceAll(snippets(t, "nginx")[1], "/srv/pumpkin", dir))
	answer, got := polled(t, url+"/pumpkin.json", "")
	if answer.StatusCode != 200 || got != body || answer.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %v %s", answer.StatusCode, answer.Header, got)
	}
	if got, want := answer.Header.Get("Cache-Control"), "public, max-age=5, stale-if-error=86400"; got != want {
		t.Errorf("Cache-Control is %q, want %q", got, want)
	}
	for _, key := range []string{"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Cross-Origin-Resource-Policy", "X-Content-Type-Options"} {
		own, _ := polled(t, s.URL+"/pumpkin.json", "")
		if want := own.Header.Get(key); answer.Header.Get(key) != want {
			t.Errorf("%s is %q, the service says %q", key, answer.Header.Get(key), want)
		}
	}
	if again, _ := polled(t, url+"/pumpkin.json", answer.Header.Get("Etag")); again.StatusCode != 304 {
		t.Errorf("a poll with a tag: %d", again.StatusCode)
	}
}

func TestCaddyServesTheLastCopyWhileTheServiceIsDown(t *testing.T) {
	t.Parallel()
	path := find(t, "caddy", "apt-get install -y caddy")
	s := newSite(t)
	s.put(t, "down", notice(pumpkin.Critical, "We are down."))
	_, body := polled(t, s.URL+"/pumpkin.json", "")
	dir, listen := t.TempDir(), freePort(t)
	if err := os.WriteFile(filepath.Join(dir, "pumpkin.json"), []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
	block := strings.ReplaceAll(snippets(t, "caddy")[0], "/srv/pumpkin", dir)
	block = strings.ReplaceAll(block, "127.0.0.1:8080", strings.TrimPrefix(s.URL, "http://"))
	block = "{\n\tadmin off\n\tauto_https off\n}\n" + strings.Replace(block, "shop.example", "http://"+listen, 1) + "\n"
	conf := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(conf, []byte(block), 0o600); err != nil {
		t.Fatal(err)
	}
	startProxy(t, listen, path, "run", "--config", conf, "--adapter", "caddyfile")
	url := "http://" + listen
	live, got := polled(t, url+"/pumpkin.json", "")
	if live.StatusCode != 200 || got != body || live.Header.Get("Cdn-Cache-Control") == "" {
		t.Fatalf("%d %v %s", live.StatusCode, live.Header, got)
	}
	s.CloseClientConnections()
	s.Close()
	copied, got := polled(t, url+"/pumpkin.json", "")
	if copied.StatusCode != 200 || got != body || copied.Header.Get("Access-Control-Allow-Origin") != "*" || copied.Header.Get("Cache-Control") == "" {
		t.Errorf("while the service is down: %d %v %s", copied.StatusCode, copied.Header, got)
	}
}
