package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The whole program follows its file: what is saved comes into force by itself, SIGHUP hurries it, and a mistake is named and
// changes nothing.
func TestTheDemoFollowsItsConfigurationFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "demo.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	quota := func(n string) string {
		return "limits:\n  - name: per-client\n    token_bucket: {capacity: " + n + ", refill: 1/s}\n"
	}
	write(quota("3"))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-listen", "127.0.0.1:0", "-admin", "127.0.0.1:0", "-config", file)
	cmd.Env = append(os.Environ(), programEnv+"=1")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, told := io.Pipe()
	cmd.Stderr = told
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	base := ""
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "live page"); ok {
			base = strings.TrimSuffix(strings.TrimSpace(rest), "/")
			break
		}
	}
	go io.Copy(io.Discard, stdout)
	lines := bufio.NewScanner(stderr)
	hears := func(want string) {
		t.Helper()
		defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop() // so that what is never said is an error
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("never said %q", want)
	}
	policy := func() string {
		t.Helper()
		r := request(t, http.MethodGet, base+"/api/items", "")
		answer, _ := answered(t, r)
		return answer.Header.Get("RateLimit-Policy")
	}
	if got := policy(); !strings.HasPrefix(got, `"per-client";q=3;`) {
		t.Errorf("at the start: %q", got)
	}
	write(quota("7"))
	hears("limit per-client: rule")
	if got := policy(); !strings.HasPrefix(got, `"per-client";q=7;`) {
		t.Errorf("saved: %q", got)
	}
	write(quota("many"))
	hears(file + ":3: limits[0].token_bucket.capacity: ")
	if got := policy(); !strings.HasPrefix(got, `"per-client";q=7;`) {
		t.Errorf("a mistake: %q", got)
	}
	write(quota("9"))
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	hears("limit per-client: rule")
	if got := policy(); !strings.HasPrefix(got, `"per-client";q=9;`) {
		t.Errorf("SIGHUP: %q", got)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, stderr)
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
}
