package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/spillway-go/spillway/internal/wait"
)

// programEnv makes the test binary behave as the demo itself.
const programEnv = "SPILLWAY_TEST_AS_PROGRAM"

func TestStoppingLetsRunningWorkFinishAndLeavesNothing(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	d := opened(t)
	type result struct {
		status int
		err    error
	}
	results := make(chan result)
	client := &http.Client{Transport: &http.Transport{}}
	go func() {
		answer, err := client.Get(d.url("/api/report"))
		if err != nil {
			results <- result{err: err}
			return
		}
		_, err = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		results <- result{answer.StatusCode, err}
	}()
	wait.Until(t, "in flight", func() bool { return d.shedder.Status().InFlight == 1 })
	if err := d.stop(); err != nil {
		t.Error(err)
	}
	if r := <-results; r.status != 200 || r.err != nil {
		t.Errorf("the running request ended with %d, %v; want 200", r.status, r.err)
	}
	for _, l := range []net.Listener{d.public, d.admin} {
		if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
			c.Close()
			t.Errorf("%s still listens", l.Addr())
		}
	}
	if n := d.shedder.Status().InFlight; n != 0 {
		t.Errorf("%d in flight at the end", n)
	}
	client.CloseIdleConnections()
	goleak.VerifyNone(t, ignore)
}

// The whole program, as a process: SIGTERM ends streams, lets work finish, and the exit code is 0.
func TestSIGTERMEndsTheProgramCleanly(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-listen", "127.0.0.1:0", "-admin", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), programEnv+"=1")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	base := ""
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "live page"); ok {
			base = strings.TrimSuffix(strings.TrimSpace(rest), "/")
		}
		if strings.HasPrefix(lines.Text(), "Stop with") {
			break
		}
	}
	if base == "" {
		t.Fatalf("it did not greet: %s", &stderr)
	}
	stream, err := http.DefaultClient.Do(request(t, http.MethodGet, base+"/api/events", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if answer, _ := answered(t, request(t, http.MethodPost, base+"/demo/overload", "")); answer.StatusCode != http.StatusAccepted {
		t.Errorf("the overload does not start: %d", answer.StatusCode)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, stream.Body); err != nil {
		t.Errorf("the stream ends with %v, want a clean end", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it exits with %v, want 0: %s", err, &stderr)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Error("it had to be killed")
	}
}
