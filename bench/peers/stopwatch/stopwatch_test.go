package stopwatch

import (
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var sink [][]byte

func TestEveryContenderRunsInEveryRoundAndOnEveryWorker(t *testing.T) {
	for _, cores := range []int{1, 2} {
		var workers [2]atomic.Int64
		var order []string
		contender := func(name string) Contender {
			return Contender{name, func(worker, n int) error {
				workers[worker].Add(1)
				if worker == 0 {
					order = append(order, name)
				}
				return nil
			}}
		}
		was := runtime.GOMAXPROCS(0)
		figures, err := Compare(Plan{Cores: cores, Rounds: 3, Span: 1}, []Contender{contender("a"), contender("b")})
		if err != nil {
			t.Fatal(err)
		}
		if len(figures) != 2 || figures[0].Name != "a" || figures[1].Name != "b" {
			t.Errorf("figures %v", figures)
		}
		if got, want := strings.Join(order[len(order)-6:], " "), "a b b a a b"; got != want {
			t.Errorf("on %d cores the last runs were %q, want %q: interleaved, in an order that rotates", cores, got, want)
		}
		if cores == 2 && workers[1].Load() != workers[0].Load() {
			t.Errorf("workers ran %d and %d times", workers[0].Load(), workers[1].Load())
		}
		if cores == 1 && workers[1].Load() != 0 {
			t.Errorf("a second worker ran on one core")
		}
		if runtime.GOMAXPROCS(0) != was {
			t.Errorf("GOMAXPROCS was %d and is %d", was, runtime.GOMAXPROCS(0))
		}
	}
}

func TestCallersShareTheCoresAndTheirWaitingCounts(t *testing.T) {
	var calls [5]atomic.Int64
	figures, err := Compare(Plan{Cores: 1, Rounds: 3, Span: time.Millisecond, Callers: 5}, []Contender{{"waits", func(worker, n int) error {
		calls[worker].Add(1)
		time.Sleep(time.Duration(n) * time.Millisecond)
		return nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		if calls[i].Load() != calls[0].Load() {
			t.Errorf("caller %d was called %d times, the first %d times", i, calls[i].Load(), calls[0].Load())
		}
	}
	if ns := figures[0].Nanos; ns < 200_000 {
		t.Errorf("%.0f ns for an operation; five callers that wait for a millisecond each come to 200 000 at least", ns)
	}
}

func TestAllocationsAreCountedPerOperation(t *testing.T) {
	figures, err := Compare(Plan{Cores: 1, Rounds: 3, Span: time.Millisecond}, []Contender{
		{"three", func(_, n int) error {
			for range n {
				sink = [][]byte{make([]byte, 64), make([]byte, 64)} // the slice and its two elements
			}
			return nil
		}},
		{"none", func(_, n int) error { return nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := figures[0].Allocs; got < 2.99 || got > 3.5 {
		t.Errorf("%.2f allocations counted for three", got)
	}
	if got := figures[1].Allocs; got > 0.1 {
		t.Errorf("%.2f allocations counted for none", got)
	}
}

func TestAContenderThatDoesSomethingElseIsAnError(t *testing.T) {
	wrong := errors.New("denied")
	_, err := Compare(Plan{Cores: 2, Rounds: 1, Span: 1}, []Contender{{"liar", func(worker, n int) error {
		if worker == 1 {
			return wrong
		}
		return nil
	}}})
	if !errors.Is(err, wrong) || !strings.Contains(err.Error(), "liar") {
		t.Errorf("error %v", err)
	}
}

func TestTheFigureIsTheMedianAndItsSpread(t *testing.T) {
	var runs []run
	for _, ns := range []float64{100, 900, 110, 90, 105, 95, 100, 100} {
		runs = append(runs, run{nanos: ns})
	}
	f := summarise("x", runs)
	if f.Nanos != 100 || f.Spread != 0.05 {
		t.Errorf("median %v and spread %v, want 100 and 0.05: one run that was disturbed must not count", f.Nanos, f.Spread)
	}
}
