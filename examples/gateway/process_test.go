package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/spillway-go/spillway/internal/browser"
	"github.com/spillway-go/spillway/internal/wait"
)

// SIGTERM: streams end, what runs finishes, the exit code is 0.
func TestSIGTERMLetsWorkFinishAndEndsStreams(t *testing.T) {
	arrived, finish := make(chan struct{}), make(chan struct{})
	back := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/events":
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: 1\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "/slow":
			close(arrived)
			<-finish
			io.WriteString(w, "finished")
		}
	})
	p := started(t, "-upstream", back)
	stream, err := http.DefaultClient.Do(request(t, "GET", p.addrs["proxy"]+"/events", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	slow := make(chan string)
	r := request(t, "GET", p.addrs["proxy"]+"/slow", "")
	go func() {
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			slow <- err.Error()
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		slow <- string(body)
	}()
	<-arrived
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(stream.Body); err != nil || string(rest) != "data: 1\n\n" {
		t.Errorf("the stream ends with %q, %v", rest, err)
	}
	close(finish)
	if got := <-slow; got != "finished" {
		t.Errorf("what ran ended with %q", got)
	}
	for p.stderr.Scan() {
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// The service need not be written in Go: Python's own file server stands for all others. A real browser goes through.
func TestAPageOfAPythonServiceInARealBrowser(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal("this test needs a service that is not written in Go: install Python with: apt-get install -y python3 (make test does so)")
	}
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "index.html"), `<!doctype html><title>shop</title><body>
<script>
document.body.dataset.poll = 'waiting';
fetch('/pumpkin.json').then(r => r.json()).then(d => { document.body.dataset.poll = 'schema ' + d.schema; });
fetch('/missing').then(r => { document.body.dataset.missing = r.status; });
</script><p id="words">hello from python</p>`)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	server := exec.Command(python, "-m", "http.server", port, "--bind", "127.0.0.1", "--directory", folder)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	wait.Until(t, "python listens", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	p := started(t, "-upstream", "http://"+addr, "-config", written(t,
		"limits: [{name: few, token_bucket: {capacity: 3, refill: 1/day}, per: ip, routes: [files]}]\n"+
			"routes: [{name: files, match: \"GET /files/\"}, {name: page, match: \"GET /{$}\"}]\n"))
	tab, end, err := browser.Open(t.Context(), 800, 600)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if err := chromedp.Do(tab, chromedp.Navigate(p.addrs["proxy"]+"/")); err != nil {
		t.Fatal(err)
	}
	const seen = `document.body.dataset.poll !== 'waiting' && document.body.dataset.missing &&
		[document.querySelector('#words').textContent, document.body.dataset.poll, document.body.dataset.missing].join(', ')`
	if _, err := chromedp.Run(tab, chromedp.Poll[any](seen, chromedp.WithPollingTimeout(time.Minute))); err != nil {
		t.Fatal(err)
	}
	if got, err := chromedp.Run(tab, chromedp.Evaluate[string](seen)); err != nil || got != "hello from python, schema 1, 404" {
		t.Errorf("the browser sees %q, %v", got, err)
	}
	for i, want := range []int{404, 404, 404, 429} {
		if res, _ := get(t, p.addrs["proxy"]+"/files/x"); res.StatusCode != want {
			t.Errorf("file %d: %d, want %d", i, res.StatusCode, want)
		}
	}
	p.ends()
}

func TestTheGatewayFollowsItsFile(t *testing.T) {
	back := upstream(t, func(http.ResponseWriter, *http.Request) {})
	quota := func(n string) string {
		return "limits:\n  - name: r\n    token_bucket: {capacity: " + n + ", refill: 1/s}\n"
	}
	path := written(t, quota("3"))
	p := started(t, "-upstream", back, "-config", path)
	policy := func(want string) {
		t.Helper()
		if res, _ := get(t, p.addrs["proxy"]+"/"); !strings.HasPrefix(res.Header.Get("RateLimit-Policy"), `"r";q=`+want+";") {
			t.Errorf("%q, want a quota of %s", res.Header.Get("RateLimit-Policy"), want)
		}
	}
	policy("3")
	writeFile(t, path, quota("5"))
	p.hears("limit r: rule")
	policy("5")
	writeFile(t, path, quota("-5"))
	p.hears(path + ":3: limits[0].token_bucket.capacity")
	policy("5")
	writeFile(t, path, quota("6")+"pumpkin: {admin: {token_file: elsewhere}}\n")
	p.hears("needs a restart")
	policy("5")
	writeFile(t, path, quota("7"))
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.hears("limit r: rule")
	policy("7")
	_, metrics := get(t, p.addrs["admin"]+"/metrics")
	for _, want := range []string{`spillway_config_reloads_total{result="applied"} 2`, `spillway_config_reloads_total{result="failed"} 2`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
	p.ends()
}

func TestCheckSaysWhetherAFileIsInOrder(t *testing.T) {
	good := "limits: [{name: r, token_bucket: {capacity: 1, refill: 1/s}}]\nroutes: [{name: a, match: /a, upstream: \"http://h\"}]\n"
	for _, row := range []struct {
		what, file string
		code       int
		says       string
	}{
		{"good", good, exitOK, ": in order: 1 limit, "},
		{"patterns as wide as any", "routes: [{name: a, match: \"GET /{page}\"}, {name: b, match: \"POST /\"}]\n", exitOK, ": in order: "},
		{"a mistake", "limits: [{name: r, token_bucket: {capacity: 1}}]\n", exitUsage, ":1: limits[0].token_bucket.refill: is missing; "},
		{"empty", "", exitUsage, ":1: the file is empty; "},
		{"users that no gateway knows", "\nclients: {identify: [principal]}\n", exitUsage, ":2: clients.identify: lists principal alone, "},
		{"a method that does not exist", "routes: [{name: a, match: \"PSOT /a\"}]\n", exitUsage, ":1: routes[0].match: "},
		{"what is always refused", "limits: [{name: r, token_bucket: {capacity: 1, refill: 1/s}}]\nroutes: [{name: a, match: /a, cost: 2}]\n", exitUsage, ":2: routes[0].cost: "},
		{"an upstream that is none", "routes: [{name: a, match: /a, upstream: here}]\n", exitUsage, ":1: routes[0].upstream: "},
	} {
		path := written(t, row.file)
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"-check", "-config", path}, &stdout, &stderr)
		said := stdout.String() + stderr.String()
		if code != row.code || !strings.Contains(said, row.says) || !strings.HasPrefix(said, path) || (code == exitOK) != (stderr.Len() == 0) {
			t.Errorf("%s: exit %d, says %q", row.what, code, said)
		}
	}
}

func TestCheckWarnsOfATokenFileThatIsOfNoUse(t *testing.T) {
	path := written(t, "queue: {}\npumpkin: {admin: {token_file: none}}\n")
	says := func(want string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{"-check", "-config", path}, &stdout, &stderr); code != exitOK || !strings.HasPrefix(stderr.String(), want) || want == "" && stderr.Len() > 0 {
			t.Errorf("exit %d, says %q, want %q", code, stderr.String(), want)
		}
	}
	says("warning: " + path + ":2: pumpkin.admin.token_file: pumpkin: admin token")
	token := filepath.Join(filepath.Dir(path), "none")
	writeFile(t, token, strings.Repeat("x", 31))
	says("warning: " + path + ":2: pumpkin.admin.token_file: pumpkin: admin token")
	writeFile(t, token, strings.Repeat("x", 32))
	says("")
}

func TestCheckLooksAtOtherFilesAndHangsAtNone(t *testing.T) {
	says := func(path string) (int, string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"-check", "-config", path}, &stdout, &stderr)
		return code, stderr.String()
	}
	path := written(t, "queue: {}\npumpkin: {admin: {audit_file: none/audit.jsonl}}\n")
	if code, said := says(path); code != exitOK || !strings.HasPrefix(said, "warning: "+path+":2: pumpkin.admin.audit_file: this user cannot make a file in ") {
		t.Errorf("a folder that is not there: exit %d, says %q", code, said)
	}
	if err := os.Mkdir(filepath.Join(filepath.Dir(path), "none"), 0o700); err != nil {
		t.Fatal(err)
	}
	if code, said := says(path); code != exitOK || said != "" {
		t.Errorf("the control: exit %d, says %q", code, said)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := says(pipe); code != exitUsage || !strings.Contains(said, "is no file; name a file") {
		t.Errorf("a pipe: exit %d, says %q", code, said)
	}
	if code, said := says(written(t, "pumpkin: {admin: {token_file: "+pipe+"}}\n")); code != exitUsage || !strings.Contains(said, ":1: pumpkin.admin.token_file: ") {
		t.Errorf("a token from a pipe: exit %d, says %q", code, said)
	}
}

// A file that serves several programs names principals first. The gateway has none and goes on with the other ways, and says so.
func TestPrincipalBesideOtherWaysIsAWarning(t *testing.T) {
	path := written(t, "limits: [{name: r, token_bucket: {capacity: 1, refill: 1/day}}]\nclients: {identify: [principal, api_key, ip]}\n")
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-check", "-config", path}, &stdout, &stderr)
	if warning := "warning: " + path + ":2: clients.identify: lists principal, "; code != exitOK || !strings.HasPrefix(stderr.String(), warning) {
		t.Errorf("exit %d, says %q", code, stderr.String())
	}
	p := started(t, "-upstream", upstream(t, func(http.ResponseWriter, *http.Request) {}), "-config", path)
	for _, row := range []struct {
		key  string
		want int
	}{{"ann", 200}, {"ann", 429}, {"bob", 200}} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, p.addrs["proxy"]+"/", nil)
		r.Header.Set("X-API-Key", row.key)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != row.want {
			t.Errorf("%s: %d, want %d", row.key, res.StatusCode, row.want)
		}
	}
	p.ends()
}

func TestWhatCannotWorkIsSaidAtTheStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	trusting := written(t, "clients: {trusted_proxies: [127.0.0.0/8]}\n")
	for _, row := range []struct{ args, says string }{
		{"", "name the service with -upstream URL"},
		{"-upstream localhost:1", "-upstream localhost:1: it has to begin with http"},
		{"-upstream http://u:p@h", "do not belong"},
		{"-check", "-check needs -config"},
		{"-upstream http://h -config /nowhere.yaml", "/nowhere.yaml: there is no such file"},
		{"-upstream http://h -admin 127.0.0.1:0 -listen " + taken.Addr().String(), "another program does; stop it or choose another address with -listen"},
		{"-upstream http://h -admin 127.0.0.1:0 -listen 127.0.0.1:0 -check-listen 127.0.0.1:0 -config " + written(t, "queue: {}\n"), "clients.trusted_proxies"},
		{"-upstream http://h -admin 127.0.0.1:0 -listen 127.0.0.1:0 -peers http://10.0.0.1:1 -config " + trusting, "say which with -self"},
		{"-upstream http://h -admin 127.0.0.1:0 -listen 127.0.0.1:0 -self http://a -peers http://a,http://a", "twice"},
		{"-upstream http://h -admin 127.0.0.1:0 -listen 127.0.0.1:0 -self http://a -peers http://a,nonsense", "begin with http"},
		{"-upstream http://h -self http://a", "without -peers"},
		{"-upstream http://h extra", "unexpected argument"},
		{"-nonsense", "run with -h"},
		{"-upstream=", "-upstream is empty"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("should it start it ends at once"))
		var stdout, stderr bytes.Buffer
		if code := run(ctx, strings.Fields(row.args), &stdout, &stderr); code != exitUsage || !strings.Contains(stderr.String(), row.says) {
			t.Errorf("%s: exit %d, says %q", row.args, code, stderr.String())
		}
	}
	var stdout bytes.Buffer
	if code := run(t.Context(), []string{"-h"}, &stdout, os.Stderr); code != exitOK || !strings.Contains(stdout.String(), "-check-listen") {
		t.Errorf("-h: exit %d", code)
	}
}
