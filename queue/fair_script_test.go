package queue

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestFairFollowsTheScripts plays the scripts in testdata/fair; they, not this harness, say what a Fair does.
func TestFairFollowsTheScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/fair/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			playFair(t, path)
		})
	}
}

func playFair(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	line, waiters := NewFair(0), map[string]*Waiter{}
	for n, scan := 1, bufio.NewScanner(file); scan.Scan(); n++ {
		text := strings.TrimSpace(scan.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if capacity, ok := strings.CutPrefix(text, "capacity "); ok {
			c, err := strconv.Atoi(capacity)
			if err != nil {
				t.Fatalf("%s:%d: %v", path, n, err)
			}
			line, waiters = NewFair(c), map[string]*Waiter{}
			continue
		}
		step, expected, _ := strings.Cut(text, "=")
		answer, state, _ := strings.Cut(expected, "|")
		got, err := doFair(line, waiters, strings.Fields(step))
		if err != nil {
			t.Fatalf("%s:%d: %v", path, n, err)
		}
		got += " | " + dump(line)
		if want := strings.TrimSpace(answer) + " | " + strings.TrimSpace(state); strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Fatalf("%s:%d: %s\n got %s\nwant %s", path, n, strings.TrimSpace(step), got, want)
		}
	}
}

// doFair carries out one step. A waiter's name is its client's and a number: ann1. It has priority critical, cost 1 and an hour
// unless the step says otherwise.
func doFair(line *Fair, waiters map[string]*Waiter, words []string) (string, error) {
	if len(words) < 2 {
		return "", fmt.Errorf("no command in %q", words)
	}
	now, err := time.ParseDuration(words[0])
	if err != nil {
		return "", err
	}
	var w *Waiter
	if len(words) > 2 {
		if w, err = script(waiters, words[2:]); err != nil {
			return "", err
		}
	}
	switch words[1] {
	case "push":
		displaced, ok := line.Push(now, w)
		switch {
		case !ok:
			return "refused", nil
		case displaced != nil:
			return "displaces " + linked(displaced), nil
		}
		return "in", nil
	case "ahead":
		n, ok := line.Ahead(now, w)
		if !ok {
			return fmt.Sprint(n, " refused"), nil
		}
		return fmt.Sprint(n), nil
	case "pop":
		return linked(line.Pop(now)), nil
	case "remove":
		return strconv.FormatBool(line.Remove(w)), nil
	case "expire":
		return linked(line.Expire(now)), nil
	case "refused":
		if w == nil {
			w = &Waiter{}
		}
		line.Refused(now, w)
		return "-", nil
	}
	return "", fmt.Errorf("cannot read %q", words)
}

var priorities = map[string]int{"critical_plus": 1, "critical": 0, "sheddable_plus": -1, "sheddable": -2}

// script returns the named waiter, made anew when it does not stand in a line.
func script(waiters map[string]*Waiter, words []string) (*Waiter, error) {
	name := words[0]
	if w := waiters[name]; w != nil && (w.line != nil || len(words) == 1) {
		return w, nil
	}
	w := &Waiter{Owner: name, Client: strings.TrimRight(name, "0123456789"), Deadline: time.Hour}
	waiters[name] = w
	for i := 1; i < len(words); i++ {
		priority, known := priorities[words[i]]
		var err error
		switch {
		case known:
			w.Priority = priority
			continue
		case i+1 == len(words):
			return nil, fmt.Errorf("cannot read %q", words)
		case words[i] == "cost":
			w.Cost, err = strconv.ParseInt(words[i+1], 10, 64)
		case words[i] == "until":
			w.Deadline, err = time.ParseDuration(words[i+1])
		default:
			err = fmt.Errorf("cannot read %q", words)
		}
		if err != nil {
			return nil, err
		}
		i++
	}
	return w, nil
}

// dump writes the whole line, for each priority first the clients that have a claim in the order of their turns, then, after a
// semicolon, those beyond their share with how far; a client's waiters stand in order of arrival. It checks the structure on
// the way.
func dump(f *Fair) string {
	var all []string
	for i := len(f.tiers) - 1; i >= 0; i-- {
		t := &f.tiers[i]
		if t.len == 0 && t.later.len() == 0 && !t.newest {
			continue
		}
		s := [...]string{"sheddable", "sheddable_plus", "critical", "critical_plus"}[i]
		if t.newest {
			s += ", newest first"
		}
		s += ":"
		for _, c := range slices.SortedFunc(slices.Values(t.ready.all), order(&t.ready)) {
			s += " " + c.client + numbers(c)
		}
		if t.later.len() > 0 {
			s += ";"
		}
		for _, c := range slices.SortedFunc(slices.Values(t.later.all), order(&t.later)) {
			s += fmt.Sprintf(" %s+%.3g%s", c.client, float64(c.tag-t.clock)/scale, numbers(c))
		}
		all = append(all, s)
	}
	if f.overdue.head != nil {
		s := "overdue:"
		for w := f.overdue.head; w != nil; w = w.next {
			s += " " + fmt.Sprint(w.Owner)
		}
		all = append(all, s)
	}
	if broken := check(f); broken != "" {
		all = append(all, "BROKEN: "+broken)
	}
	return strings.Join(all, " / ")
}

func order(h *heap[*flow]) func(a, b *flow) int {
	return func(a, b *flow) int {
		if h.before(a, b) {
			return -1
		}
		return 1
	}
}

// numbers lists a client's waiters without repeating its name.
func numbers(c *flow) string {
	var all []string
	for w := c.oldest; w != nil; w = w.next {
		all = append(all, strings.TrimPrefix(fmt.Sprint(w.Owner), c.client))
	}
	return "[" + strings.Join(all, " ") + "]"
}

// check returns what is wrong with the structure, or "".
func check(f *Fair) string {
	live := 0
	for i := range f.tiers {
		t := &f.tiers[i]
		n, active, longest, cost := 0, 0, 0, int64(0)
		for l := range t.byLen {
			for c := t.byLen[l].head; c != nil; c = c.next {
				own := int64(0)
				var last *Waiter
				k := 0
				for w := c.oldest; w != nil; w = w.next {
					if w.flow != c || w.prev != last || w.line != Line(f) {
						return "a waiter's links"
					}
					own, last, k = own+weight(w), w, k+1
				}
				h := &t.later
				if c.ready {
					h = &t.ready
				}
				switch {
				case last != c.newest || k != c.len || k != l || own != c.cost:
					return "a client's count, cost or end"
				case c.at >= h.len() || h.all[c.at] != c:
					return "a client's place in its heap"
				case t.clients.find(c.client) != c:
					return "a client cannot be found"
				case c.ready != (c.tag-t.clock <= 0):
					return "a client is ready that is not due, or the other way round"
				}
				if k > 0 {
					active, longest = active+1, l
				}
				n, cost = n+k, cost+own
			}
		}
		live += n
		switch {
		case n != t.len || cost != t.cost || active != t.active || longest != t.longest:
			return "a priority's counts"
		case t.clients.len != t.ready.len()+t.later.len() || t.debtors != t.clients.len-active || t.debtors > t.bound:
			return "the number of clients or debtors"
		case t.depth.upTo(1) != active || t.depth.upTo(t.longest) != n:
			return "the depths"
		}
		for _, h := range []*heap[*flow]{&t.ready, &t.later} {
			for i := 1; i < h.len(); i++ {
				if h.before(h.all[i], h.all[(i-1)/2]) {
					return "the order of a heap"
				}
			}
		}
	}
	if live != f.live || f.deadline.len() != live || f.Len() > f.cap {
		return "the number of waiters"
	}
	return ""
}
