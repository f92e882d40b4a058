package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asBench makes the test program the command itself.
const asBench = "SPILLWAY_TEST_AS_BENCH"

func TestMain(m *testing.M) {
	if os.Getenv(asBench) != "" {
		main()
	}
	os.Exit(m.Run())
}

// At Ctrl-C everything that was started ends, the report of what was seen is written, and the exit code is 3: while programs
// start, and while all of them run, the browser too.
func TestCtrlCEndsTheWholeDay(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("there is no /proc to look for programs in; gameday.TestADayThatIsBrokenOff runs everywhere, and this on Linux")
	}
	for _, row := range []struct {
		when string
		seen func(line, dir string) bool
	}{
		{"programs start", func(line, dir string) bool { return strings.HasPrefix(line, "starting ") }},
		{"a browser runs", func(line, dir string) bool {
			if !strings.Contains(line, "switched off by hand") {
				return false
			}
			for begin := time.Now(); !strings.Contains(strings.Join(programs(t, dir), " "), "chrom"); time.Sleep(20 * time.Millisecond) {
				if time.Since(begin) > time.Minute {
					t.Error("no browser within a minute")
					break
				}
			}
			return true
		}},
	} {
		t.Run(row.when, func(t *testing.T) {
			dir, page := t.TempDir(), filepath.Join(t.TempDir(), "day.html")
			cmd := exec.CommandContext(t.Context(), os.Args[0], "gameday", "-quick", "-acts", "pumpkin", "-html", page)
			cmd.Env = append(os.Environ(), asBench+"=1", "TMPDIR="+dir)
			var log bytes.Buffer
			cmd.Stderr = &log
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			interrupted := false
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if !interrupted && row.seen(lines.Text(), dir) {
					interrupted = true
					if err := cmd.Process.Signal(os.Interrupt); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := cmd.Wait(); !interrupted || cmd.ProcessState.ExitCode() != exitInvalid {
				t.Errorf("interrupted %v, then %v: %s", interrupted, err, log.String())
			}
			if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "PARTIAL") {
				t.Errorf("the report: %v, %d bytes", err, len(text))
			}
			// The kernel may take a moment to bury what was killed.
			for begin := time.Now(); len(programs(t, dir)) > 0 && time.Since(begin) < 10*time.Second; {
				time.Sleep(20 * time.Millisecond)
			}
			if left := programs(t, dir); len(left) > 0 {
				t.Errorf("still running: %q", left)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left over: %v, %v", left, err)
			}
		})
	}
}

// programs are those that live with this temporary folder: everything that the day has started inherits it.
func programs(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		env, err := os.ReadFile(entry)
		if err != nil || !bytes.Contains(env, []byte("TMPDIR="+dir+"\x00")) {
			continue // it has ended, or is somebody else's
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(entry), "cmdline"))
		all = append(all, strings.ReplaceAll(string(line), "\x00", " "))
	}
	return all
}

// What is not installed is named in one line that says how to install it, and nothing is started.
func TestAMissingProgramIsOneLineAndTwo(t *testing.T) {
	needed := []string{"redis-server", "python3", "go", "chromium"}
	for _, missing := range needed {
		dir := t.TempDir()
		for _, name := range needed {
			if name != missing {
				if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil { // to be found, not to be run
					t.Fatal(err)
				}
			}
		}
		t.Setenv("PATH", dir)
		code, out, log := bench(t.Context(), "gameday", "-quick")
		if code != exitUsage || out != "" || strings.Count(log, "\n") != 1 || !strings.Contains(strings.ToLower(log), missing) || !strings.Contains(log, "install it with: ") {
			t.Errorf("without %s: exit %d, %q, %q", missing, code, out, log)
		}
	}
}

func TestASoakIsADayOfItsOwn(t *testing.T) {
	for _, args := range []string{"-soak 1s", "-soak 20s -quick", "-soak 20s -acts flood", "-soak -1m"} {
		code, _, log := bench(t.Context(), append([]string{"gameday"}, strings.Fields(args)...)...)
		if code != exitUsage || strings.Count(log, "\n") != 1 {
			t.Errorf("gameday %s: exit %d, %q", args, code, log)
		}
	}
}
