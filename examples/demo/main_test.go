package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/demo/internal/load"
	"github.com/spillway-go/spillway/internal/testlog"
	"github.com/spillway-go/spillway/internal/wait"
)

// TestMain lets the test binary be the child that makes the load, and the demo itself.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == load.ChildArg {
		os.Exit(load.Child(os.Stdin, os.Stdout, os.Stderr))
	}
	if os.Getenv(programEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

const testToken = "a-token-for-tests-that-is-long-enough"

// started is a demo that serves on free ports until the test ends.
func started(t *testing.T, args ...string) *demo {
	t.Helper()
	d := opened(t, args...)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := d.stop(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// opened is a demo that serves on free ports until the test stops it.
func opened(t *testing.T, args ...string) *demo {
	t.Helper()
	t.Setenv("SPILLWAY_ADMIN_TOKEN", testToken)
	o, err := parse(append([]string{"-listen", "127.0.0.1:0", "-admin", "127.0.0.1:0"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	d, err := open(o, os.Getenv, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	d.serve()
	return d
}

func (d *demo) url(path string) string { return "http://" + d.public.Addr().String() + path }

// answered sends a request and returns the answer with its body read.
func answered(t *testing.T, r *http.Request) (*http.Response, string) {
	t.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

// request makes a request; header fields come in pairs.
func request(t *testing.T, method, url, body string, fields ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	return r
}

// written is a file of the test's with the content.
func written(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// slowRefill makes the buckets so slow to refill that a burst leaves nothing to chance, however slow the machine is.
func slowRefill(t *testing.T) []string {
	t.Helper()
	return []string{"-config", written(t, "spillway.yaml", "limits:\n  - {name: per-client, token_bucket: {capacity: 20, refill: 1/min}}\n")}
}

func TestWhatCannotWorkIsOneClearLineAndExitCode2(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	taken := busy.Addr().String()
	config := func(yaml string) []string { return []string{"-config", written(t, "spillway.yaml", yaml)} }
	free := []string{"-listen", "127.0.0.1:0", "-admin", "127.0.0.1:0"}
	for name, c := range map[string]struct {
		args  []string
		token string
		says  []string
	}{
		"busy port":              {args: []string{"-listen", taken, "-admin", "127.0.0.1:0"}, says: []string{taken, "another program does", "-listen"}},
		"busy admin port":        {args: []string{"-listen", "127.0.0.1:0", "-admin", taken}, says: []string{taken, "-admin"}},
		"no port":                {args: []string{"-listen", "127.0.0.1"}, says: []string{"127.0.0.1", "HOST:PORT"}},
		"a tour to a busy port":  {args: []string{"-tour", "-listen", taken}, says: []string{taken, "another program does"}},
		"unknown flag":           {args: []string{"-port", "80"}, says: []string{"-port", "-h"}},
		"empty flag":             {args: []string{"-config", ""}, says: []string{"-config is empty"}},
		"argument":               {args: []string{"serve"}, says: []string{`"serve"`, "-h"}},
		"token too short":        {args: free, token: "short", says: []string{"SPILLWAY_ADMIN_TOKEN", "32"}},
		"config does not exist":  {args: []string{"-config", "/nowhere/spillway.yaml"}, says: []string{"/nowhere/spillway.yaml: there is no such file"}},
		"config is a folder":     {args: []string{"-config", t.TempDir()}, says: []string{"folder"}},
		"unknown key":            {args: config("limit:\n  - name: x\n"), says: []string{"spillway.yaml:1:", "limits"}},
		"negative capacity":      {args: config("limits:\n  - name: x\n    token_bucket: {capacity: -1, refill: 5/s}\n"), says: []string{"spillway.yaml:3:", "capacity"}},
		"rate 0":                 {args: config("limits:\n  - name: x\n    token_bucket: {capacity: 1, refill: 0/s}\n"), says: []string{"spillway.yaml:3:", "refill"}},
		"duplicate rule":         {args: config("limits:\n  - {name: x, token_bucket: {capacity: 1, refill: 1/s}}\n  - {name: x, token_bucket: {capacity: 1, refill: 1/s}}\n"), says: []string{"spillway.yaml:3:", "x"}},
		"conflicting routes":     {args: config("routes:\n  - {name: a, match: \"GET /x/{id}\"}\n  - {name: b, match: \"GET /x/{key}\"}\n"), says: []string{"spillway.yaml:3:", "/x/{key}"}},
		"no YAML":                {args: config("limits: [\n"), says: []string{"spillway.yaml:1:"}},
		"token file is missing":  {args: config("pumpkin:\n  admin: {token_file: nowhere.token}\n"), says: []string{"spillway.yaml:2: ", "nowhere.token"}},
		"token file is a folder": {args: config("pumpkin:\n  admin: {token_file: .}\n"), says: []string{"spillway.yaml:2: ", "token"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SPILLWAY_ADMIN_TOKEN", c.token)
			var out, errs bytes.Buffer
			if code := run(t.Context(), c.args, &out, &errs); code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			line := errs.String()
			if strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") {
				t.Errorf("standard error is not one line: %q", line)
			}
			for _, want := range c.says {
				if !strings.Contains(line, want) {
					t.Errorf("%q does not say %q", line, want)
				}
			}
			if out.Len() > 0 {
				t.Errorf("something was started: %q", &out)
			}
		})
	}
}

// When the second listener cannot be opened the first must not stay: nothing is half-started.
func TestABusyAdminPortLeavesThePublicOneFree(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	public := probe.Addr().String()
	probe.Close()
	if code := run(t.Context(), []string{"-listen", public, "-admin", busy.Addr().String()}, io.Discard, io.Discard); code != 2 {
		t.Fatalf("exit code %d, want 2", code)
	}
	again, err := net.Listen("tcp", public)
	if err != nil {
		t.Fatalf("the public port is still taken: %v", err)
	}
	again.Close()
}

func TestHelpGoesToStandardOutput(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-h"}, &out, &errs); code != 0 || errs.Len() > 0 {
		t.Errorf("exit code %d, errors %q", code, &errs)
	}
	for _, flag := range []string{"-listen", "-admin", "-config", "-tour", "SPILLWAY_ADMIN_TOKEN"} {
		if !strings.Contains(out.String(), flag) {
			t.Errorf("the help does not mention %s", flag)
		}
	}
}

func TestItGreetsWithAddressesTokenAndThreeLinesToTry(t *testing.T) {
	for name, c := range map[string]struct {
		token, says, hides string
	}{
		"made up":              {"", "(made up for this run", "nothing"},
		"from the environment": {testToken, "token       from SPILLWAY_ADMIN_TOKEN", testToken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SPILLWAY_ADMIN_TOKEN", c.token)
			ctx, stop := context.WithCancel(t.Context())
			var out testlog.Log
			code := make(chan int)
			go func() {
				code <- run(ctx, []string{"-listen", "127.0.0.1:0", "-admin", "127.0.0.1:0"}, &out, io.Discard)
			}()
			wait.Until(t, "the greeting", func() bool { return strings.Contains(out.String(), "Stop with Ctrl-C") })
			text := out.String()
			if n := strings.Count(text, "\n  curl "); n != 3 {
				t.Errorf("%d curl lines, want 3:\n%s", n, text)
			}
			if !strings.Contains(text, c.says) || strings.Contains(text, c.hides) {
				t.Errorf("the greeting should say %q and not %q:\n%s", c.says, c.hides, text)
			}
			stop()
			if got := <-code; got != 0 {
				t.Errorf("exit code %d, want 0", got)
			}
		})
	}
}

// The file beside the demo is the documentation of its rules: it must say what the program does without it.
func TestTheExampleFileIsTheBuiltInConfiguration(t *testing.T) {
	d := started(t, "-config", "spillway.yaml")
	own := program()
	if got, want := fmt.Sprintf("%+v", d.config.Shed.Limits), fmt.Sprintf("%+v", own.Shed.Limits); got != want {
		t.Errorf("limits\n%s, built in\n%s", got, want)
	}
	if got, want := fmt.Sprintf("%+v", d.config.Shed.Routes), fmt.Sprintf("%+v", own.Shed.Routes); got != want {
		t.Errorf("routes\n%s, built in\n%s", got, want)
	}
	if got, want := d.config.Shed.Queue, own.Shed.Queue; got != want {
		t.Errorf("queue %+v, built in %+v", got, want)
	}
	if got, want := d.config.Shed.Concurrency, own.Shed.Concurrency; got != want {
		t.Errorf("concurrency %+v, built in %+v", got, want)
	}
	if got, want := fmt.Sprintf("%+v", d.config.Pumpkin), fmt.Sprintf("%+v", own.Pumpkin); got != want {
		t.Errorf("pumpkin %+v, built in %+v", got, want)
	}
	if got, want := d.config.Shed.Health.WarmUp, own.Shed.Health.WarmUp; got != want {
		t.Errorf("health warm-up %v, built in %v", got, want)
	}
}
