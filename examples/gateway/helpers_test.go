package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// programEnv makes the test binary behave as the gateway itself.
const programEnv = "SPILLWAY_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// opened is a gateway in this process on free ports.
func opened(t *testing.T, change func(*options)) *gateway {
	t.Helper()
	o := options{listen: "127.0.0.1:0", admin: "127.0.0.1:0"}
	change(&o)
	g, err := open(o, func(string) string { return strings.Repeat("t", 32) }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	g.report = func(string) {}
	g.serve()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := g.stop(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// in front of an upstream with the rules of a file.
func inFront(t *testing.T, upstream, file string) *gateway {
	t.Helper()
	return opened(t, func(o *options) {
		o.upstream = upstream
		if file != "" {
			o.config = written(t, file)
		}
	})
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// url is where a listener serves path.
func (g *gateway) url(name, path string) string {
	for _, l := range g.listeners {
		if l.name == name {
			return "http://" + l.address() + path
		}
	}
	return ""
}

// upstream is a service that the gateway stands in front of.
func upstream(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func request(t *testing.T, method, url, body string, fields ...string) *http.Request {
	t.Helper()
	var b io.Reader
	if body != "" {
		b = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, b)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

// asked sends r and returns the answer with its body read.
func asked(t *testing.T, r *http.Request) (*http.Response, string) {
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

func get(t *testing.T, url string, fields ...string) (*http.Response, string) {
	t.Helper()
	return asked(t, request(t, http.MethodGet, url, "", fields...))
}

// process is the gateway as a process of its own.
type process struct {
	*testing.T
	cmd    *exec.Cmd
	addrs  map[string]string // by listener
	stderr *bufio.Scanner
}

func started(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], append([]string{"-listen", "127.0.0.1:0", "-admin", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), programEnv+"=1")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{T: t, cmd: cmd, addrs: map[string]string{}, stderr: bufio.NewScanner(stderr)}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 3 && strings.HasPrefix(words[2], "http://") {
			p.addrs[words[1]] = words[2]
		} else if len(words) > 1 && words[1] == "token" || strings.Contains(lines.Text(), "goes") {
			break
		}
	}
	if p.addrs["proxy"] == "" {
		p.stderr.Scan()
		t.Fatalf("it did not start: %s", p.stderr.Text())
	}
	go io.Copy(io.Discard, stdout)
	t.Cleanup(func() {
		cmd.Process.Kill()
		http.DefaultClient.CloseIdleConnections()
	})
	return p
}

// hears reads what the program says until a line holds want.
func (p *process) hears(want string) {
	p.Helper()
	for p.stderr.Scan() {
		if strings.Contains(p.stderr.Text(), want) {
			return
		}
	}
	p.Fatalf("never said %q", want)
}

// ends sends SIGTERM and waits for a clean end.
func (p *process) ends() {
	p.Helper()
	begin := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.Fatal(err)
	}
	for p.stderr.Scan() { // to its end, as Wait asks for
	}
	if err := p.cmd.Wait(); err != nil {
		p.Errorf("it ends with %v, want 0", err)
	}
	if d := time.Since(begin); d > 10*time.Second {
		p.Errorf("it took %v to stop", d)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
