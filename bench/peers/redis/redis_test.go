package main

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

func testServer(t *testing.T) *server {
	t.Helper()
	s, end, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return s
}

func TestEveryContenderDoesWhatIsMeasured(t *testing.T) {
	s := testServer(t)
	for _, l := range limiters {
		if err := check(s, l); err != nil {
			t.Errorf("%s: %v", l.name, err)
		}
	}
}

// TestTheCheckSeesLiars is the control.
func TestTheCheckSeesLiars(t *testing.T) {
	s := testServer(t)
	calls := 0
	for what, ask := range map[string]take{
		"allows everything": func(string) (bool, error) { return true, nil },
		"denies everything": func(string) (bool, error) { return false, nil },
		"knows one key":     func(string) (bool, error) { calls++; return calls == 1, nil },
		"fails":             func(string) (bool, error) { return false, errors.New("no") },
	} {
		liar := limiter{name: what, open: func(*server, rule) (take, func(), error) { return ask, func() {}, nil }}
		if check(s, liar) == nil {
			t.Errorf("who %s passes", what)
		}
	}
}

func TestARunThatIsDeniedIsAnError(t *testing.T) {
	s := &subject{names: []string{"a"}, ask: func(string) (bool, error) { return false, nil }}
	if s.run(0, 1) == nil {
		t.Error("a refusal counts as a decision that was wanted")
	}
}

func TestOnlyTheLastRunsCount(t *testing.T) {
	s := &subject{names: []string{"a"}, ask: func(string) (bool, error) { return true, nil }}
	for _, n := range []int{500, 3, 4} {
		if err := s.run(0, n); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.measured(2).n; got != 7 {
		t.Errorf("%d waits, want the 7 of the last two runs", got)
	}
}

func TestWaitsAreToldToAThirtySecond(t *testing.T) {
	var w waits
	for i := 1; i <= 100_000; i++ {
		w.add(time.Duration(i) * time.Microsecond)
	}
	for share, want := range map[float64]time.Duration{0: time.Microsecond, 0.5: 50 * time.Millisecond, 0.99: 99 * time.Millisecond} {
		if got := w.at(share); math.Abs(float64(got-want)) > float64(want)/31 {
			t.Errorf("the wait at %v is %v, want about %v", share, got, want)
		}
	}
	last := -1
	for d := time.Duration(1); d < time.Minute; d += d/64 + 1 {
		c := class(d)
		if c < last || c > last+2 || least(c) > d || least(c+1) <= d {
			t.Fatalf("%v is in class %d, from %v, after class %d", d, c, least(c), last)
		}
		last = c
	}
}

func TestBytesPerKeySeesWhatIsNotKept(t *testing.T) {
	s := testServer(t)
	if _, err := s.bytesPerKey(100, func(int) error { return nil }); err == nil {
		t.Error("keys that nobody makes are measured")
	}
	if _, err := s.bytesPerKey(100, func(i int) error { return s.admin.Set(forever, name(i), "x", 0).Err() }); err == nil {
		t.Error("names of 8 bytes are measured as if they had 22")
	}
	b, err := s.bytesPerKey(20_000, func(i int) error {
		return s.admin.Set(forever, name(i)+"--------------", strings.Repeat("x", 1000), 0).Err()
	})
	if err != nil || b < 1000 || b > 1400 {
		t.Errorf("%.0f bytes and error %v for values of 1000", b, err)
	}
}

func TestMarksAreReachedAtTheMark(t *testing.T) {
	for _, c := range []struct {
		m    mark
		want string
	}{
		{mark{value: 30, want: 30}, "reached"}, {mark{value: 29.9, want: 30}, "missed"},
		{mark{value: 1, want: 1, atMost: true}, "reached"}, {mark{value: 1.1, want: 1, atMost: true}, "missed"},
	} {
		if got := c.m.verdict(); got != c.want {
			t.Errorf("%+v is %s, want %s", c.m, got, c.want)
		}
	}
}

// TestTheWholeReport runs everything once with runs that are far too short, to see that it runs.
func TestTheWholeReport(t *testing.T) {
	var out strings.Builder
	if err := run(&out, io.Discard, plan{rounds: 1, span: time.Millisecond, keys: 200, buckets: 200, logs: 2}); err != nil {
		t.Fatal(err)
	}
	for _, l := range limiters {
		if !strings.Contains(out.String(), "| "+l.name) {
			t.Errorf("no row for %s", l.name)
		}
	}
	for _, want := range []string{"QUICK", "Three rules", "Bytes of", "Marks:", "Noise:", "redis-server "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "unknown") || strings.Contains(out.String(), "NaN") {
		t.Errorf("something is unknown:\n%s", out.String())
	}
}
