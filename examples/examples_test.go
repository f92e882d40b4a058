// Package examples_test runs the example programs as their users do.
package examples_test

import (
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

// TestTheSmallestProgramsLimitAndStopCleanly starts each program, uses up a client's quota, and stops it.
func TestTheSmallestProgramsLimitAndStopCleanly(t *testing.T) {
	for _, c := range []struct{ program, addr string }{{"nethttp", "127.0.0.1:8081"}, {"echo", "127.0.0.1:8082"}} {
		t.Run(c.program, func(t *testing.T) {
			program := start(t, c.program)
			url := "http://" + c.addr + "/"
			answers(t, url)
			served, last := 0, 0
			for ; served < 2000; served++ {
				if last = get(t, url); last != 200 {
					break
				}
			}
			if last != 429 || served < 19 { // one was spent on finding out that the program listens
				t.Errorf("%d served, then status %d; want 429 once the quota is used up", served, last)
			}
			if err := program.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := program.Wait(); err != nil {
				t.Errorf("after SIGTERM: %v, want a clean end", err)
			}
		})
	}
}

// start builds and runs a program; it ends with the test at the latest.
func start(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	binary := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("go", "build", "-o", binary, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program := exec.Command(binary)
	program.Stderr = os.Stderr
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Process.Kill() })
	return program
}

// answers waits until the program listens.
func answers(t *testing.T, url string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		res, err := http.Get(url)
		if err == nil {
			res.Body.Close()
			return
		}
		if !strings.Contains(err.Error(), "refused") || time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond) // a condition to wait for, not a time
	}
}

func get(t *testing.T, url string) int {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	io.Copy(io.Discard, res.Body)
	return res.StatusCode
}
