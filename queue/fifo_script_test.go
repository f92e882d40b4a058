package queue

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestFIFOFollowsTheScripts plays the scripts in testdata; they, not this harness, say what a FIFO does.
func TestFIFOFollowsTheScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			if failure := play(t, path, func(capacity int) Line { return NewFIFO(capacity) }); failure != "" {
				t.Error(failure)
			}
		})
	}
}

// TestTheScriptsCatchALineThatIsNotFIFO is the negative control: last in, first out must fail.
func TestTheScriptsCatchALineThatIsNotFIFO(t *testing.T) {
	if failure := play(t, "testdata/order.txt", func(capacity int) Line { return &newestFirst{*NewFIFO(capacity)} }); failure == "" {
		t.Error("the script did not notice that the newest goes first")
	}
	if failure := play(t, "testdata/deadlines.txt", func(capacity int) Line { return &deaf{*NewFIFO(capacity)} }); failure == "" {
		t.Error("the script did not notice that deadlines are ignored")
	}
}

// newestFirst is a broken FIFO: it hands out the newest.
type newestFirst struct{ FIFO }

func (l *newestFirst) Pop(time.Duration) *Waiter {
	w := l.tail
	if w != nil {
		l.unlink(w)
	}
	return w
}

// deaf is a broken FIFO: it hands out whom it should have expired.
type deaf struct{ FIFO }

func (l *deaf) Pop(time.Duration) *Waiter { return l.FIFO.Pop(-1) }

// play runs a script against a line and returns what went wrong first, or "".
func play(t *testing.T, path string, build func(capacity int) Line) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var line Line
	waiters := map[string]*Waiter{}
	for n, scan := 1, bufio.NewScanner(f); scan.Scan(); n++ {
		text := strings.TrimSpace(scan.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if capacity, ok := strings.CutPrefix(text, "capacity "); ok {
			c, err := strconv.Atoi(capacity)
			if err != nil {
				t.Fatalf("%s:%d: %v", path, n, err)
			}
			line = build(c)
			continue
		}
		step, expected, _ := strings.Cut(text, "=")
		answer, state, _ := strings.Cut(expected, "|")
		got, err := do(line, waiters, strings.Fields(step))
		if err != nil {
			t.Fatalf("%s:%d: %v", path, n, err)
		}
		if want := strings.TrimSpace(answer); got != want {
			return fmt.Sprintf("%s:%d: answered %q, want %q", path, n, got, want)
		}
		if got, want := names(line), strings.TrimSpace(state); got != want {
			return fmt.Sprintf("%s:%d: the line is %q, want %q", path, n, got, want)
		}
	}
	return ""
}

func do(line Line, waiters map[string]*Waiter, words []string) (string, error) {
	if len(words) < 2 {
		return "", fmt.Errorf("no command in %q", words)
	}
	now, err := time.ParseDuration(words[0])
	if err != nil {
		return "", err
	}
	switch command := words[1]; {
	case command == "push" && len(words) == 5:
		w := waiters[words[2]]
		if w == nil {
			w = &Waiter{Owner: words[2]}
			waiters[words[2]] = w
		}
		if w.Deadline, err = time.ParseDuration(words[4]); err != nil {
			return "", err
		}
		if _, ok := line.Push(now, w); !ok {
			return "refused", nil
		}
		return "in", nil
	case command == "pop":
		return linked(line.Pop(now)), nil
	case command == "remove" && len(words) == 3:
		return strconv.FormatBool(line.Remove(waiters[words[2]])), nil
	case command == "expire":
		return linked(line.Expire(now)), nil
	}
	return "", fmt.Errorf("cannot read %q", words)
}

// linked names those that were handed over together.
func linked(w *Waiter) string {
	if w == nil {
		return "-"
	}
	var all []string
	for ; w != nil; w = w.Next {
		all = append(all, fmt.Sprint(w.Owner))
	}
	return strings.Join(all, " ")
}

// names lists the whole line, first to last, and checks that both directions and the count agree.
func names(line Line) string {
	var f *FIFO
	switch l := line.(type) {
	case *FIFO:
		f = l
	case *newestFirst:
		f = &l.FIFO
	case *deaf:
		f = &l.FIFO
	}
	var all []string
	var last *Waiter
	for w := f.head; w != nil; w = w.next {
		if w.prev != last {
			return "broken links"
		}
		all, last = append(all, fmt.Sprint(w.Owner)), w
	}
	if last != f.tail || len(all) != f.Len() {
		return "broken ends or count"
	}
	return strings.Join(all, " ")
}
