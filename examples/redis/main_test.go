package main

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheStory plays all of it, and holds every number against the rule: 30 for each client, and a third of that from each
// instance that is alone.
func TestTheStory(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, 0); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	at := 0
	for _, want := range []string{
		"ann sends 40: 30 served (10 + 10 + 10), 10 refused with 429; decided by redis: 40, by the instances alone: 0",
		"Redis is killed",
		"bob sends 40: 30 served (10 + 10 + 10), 10 refused with 429; decided by redis: 0, by the instances alone: 40",
		"ann sends  9:  0 served (0 + 0 + 0),  9 refused with 429; decided by redis: 0, by the instances alone: 9",
		"Redis comes back",
		"ann sends  9:  0 served (0 + 0 + 0),  9 refused with 429; decided by redis: 9, by the instances alone: 0",
		"bob sends 40: 30 served (10 + 10 + 10), 10 refused with 429; decided by redis: 40, by the instances alone: 0",
	} {
		i := strings.Index(out.String()[at:], want)
		if i < 0 {
			t.Fatalf("the story does not go on with\n%s\nin\n%s", want, &out)
		}
		at += i
	}
}

// TestTheWays plays them all: none admits more than is said, and with sharing: exact Redis decides about everything.
func TestTheWays(t *testing.T) {
	var out bytes.Buffer
	if err := runWays(t.Context(), &out, 0); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	line := regexp.MustCompile(`sharing: (\w+) +(\d+) served, at most (\d+) may be; Redis decided (\d+) of (\d+)`)
	found := line.FindAllStringSubmatch(out.String(), -1)
	if len(found) != 3 || found[0][1] != "exact" || found[1][1] != "lease" || found[2][1] != "async" {
		t.Fatalf("not each way is played:\n%s", &out)
	}
	for _, f := range found {
		if f[2] == "0" {
			t.Errorf("nothing was served: %s", f[0])
		}
	}
	if f := found[0]; f[4] != f[5] {
		t.Errorf("%s of %s were decided by Redis, want all", f[4], f[5])
	}
}

// program builds the example.
func program(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "redis-example")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

func TestWithoutRedisItSaysWhatToInstall(t *testing.T) {
	c := exec.Command(program(t))
	c.Env = append(os.Environ(), "PATH="+t.TempDir())
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("%v, want exit status 2", err)
	}
	if text := string(out); strings.Count(text, "\n") != 1 || !strings.Contains(text, "apt-get install redis-server") {
		t.Errorf("it says %q, want one line that says what to install", text)
	}
}

// TestCtrlCLeavesNothingBehind interrupts it while it rests between two acts.
func TestCtrlCLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	c := exec.Command(program(t), "-pause", "10m")
	c.Env = append(os.Environ(), "TMPDIR="+dir)
	c.Stderr = os.Stderr
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill() })
	var addr string
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if m := regexp.MustCompile(`Redis on (\S+),`).FindStringSubmatch(lines.Text()); m != nil {
			addr = m[1]
		}
		if strings.Contains(lines.Text(), "ann sends") {
			break
		}
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	var exit *exec.ExitError
	if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("%v, want exit status 130", err)
	}
	if !strings.Contains(last, "everything is stopped") {
		t.Errorf("its last words are %q", last)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v behind, %v", left, err)
	}
	if answers(addr) {
		t.Errorf("Redis on %s is still there", addr)
	}
}

func answers(addr string) bool {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
