package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/bench/peers/gates"
)

func TestEveryExperimentIsInOneBatchThatIsNotTooLarge(t *testing.T) {
	_, list := full.cells()
	if want := len(full.kinds) * len(full.slots) * 2 * len(full.loads); len(list) != want {
		t.Fatalf("%d experiments, want %d", len(list), want)
	}
	n := 0
	for _, batch := range full.batches(list) {
		sum := 0.0
		for _, e := range batch {
			if e.row != list[n].row || e.load != list[n].load {
				t.Fatalf("experiment %d is out of order", n)
			}
			sum += e.peak()
			n++
		}
		if sum > full.together {
			t.Errorf("a batch of %d experiments has %.0f arrivals per second", len(batch), sum)
		}
	}
	if n != len(list) {
		t.Errorf("%d experiments in batches, of %d", n, len(list))
	}
}

func TestARunWhoseGeneratorWasLateIsInvalid(t *testing.T) {
	c := cell{slots: 4, phases: []phase{{1, time.Second}}}
	answers := make([]answer, 200)
	for i := range answers {
		answers[i] = answer{outcome: good, due: time.Duration(i) * 5 * time.Millisecond, took: 20_000, lag: 1000}
	}
	sum := func() result { return c.results(answers, []int{0})[0] }
	if r := sum(); !r.valid() || r.goodput != 1 || share(r) != "1.00" || r.recovery != 0 {
		t.Errorf("%+v is not a perfect run", r)
	}
	answers[7].outcome = unsent
	if r := sum(); r.valid() || share(r) != "INVALID" || recovered(r) != "INVALID" {
		t.Errorf("valid with a request that was never sent")
	}
	answers[7].outcome = good
	for i := range 4 {
		answers[i].lag = 26_000
	}
	if r := sum(); r.valid() {
		t.Errorf("valid although 2 %% of the requests were sent 26 ms too late")
	}
}

func TestGoodputIsAShareOfWhatWasPossible(t *testing.T) {
	answers := make([]answer, 400) // twice the capacity of 200 for one second
	for i := range answers {
		answers[i] = answer{outcome: rejected, due: time.Duration(i) * 2500 * time.Microsecond}
		if i%4 == 0 {
			answers[i].outcome = good
		}
	}
	c := cell{slots: 4, phases: []phase{{2, time.Second}}}
	if r := c.results(answers, []int{0})[0]; r.goodput != 0.5 {
		t.Errorf("goodput %.2f of 100 good answers where 200 were possible", r.goodput)
	}
	c.phases[0].load = 0.5 // as if all had been asked for at half the capacity
	if r := c.results(answers, []int{0})[0]; r.goodput != 1 {
		t.Errorf("goodput %.2f of 100 good answers where 100 were asked for", r.goodput)
	}
}

func TestRecoveryNeedsThreeFineWindowsInARow(t *testing.T) {
	fine, bad, empty := window{100, 99}, window{100, 98}, window{}
	for _, c := range []struct {
		windows []window
		want    time.Duration
	}{
		{[]window{fine, fine, fine, bad}, 0},
		{[]window{bad, fine, fine, bad, fine, fine, fine}, time.Second},
		{[]window{fine, fine, bad, fine, fine}, -1},
		{[]window{empty, empty, empty}, -1},
		{nil, -1},
	} {
		if got := recovery(c.windows); got != c.want {
			t.Errorf("%v: recovered after %v, want %v", c.windows, got, c.want)
		}
	}
}

func TestQuantiles(t *testing.T) {
	var micros []uint32
	for i := range 100 {
		micros = append(micros, uint32(100-i)*1000)
	}
	if q := newQuantiles(micros); q.n != 100 || q.p50 != 51*time.Millisecond || q.p99 != 100*time.Millisecond || q.String() != "51/100" {
		t.Errorf("%+v %s", q, q)
	}
	if q := newQuantiles(nil); q.String() != "-" {
		t.Errorf("no times at all print as %s", q)
	}
}

// TestTheMatrixRuns plays a corner of it in real time to see that it runs and prints; how fast says nothing here.
func TestTheMatrixRuns(t *testing.T) {
	m := matrix{
		kinds: gates.Kinds(), slots: []int{4}, loads: []float64{0.5, 2},
		span: 300 * time.Millisecond, calm: 300 * time.Millisecond, together: 10_000,
	}
	rows, err := m.run(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := m.print(&out, rows, "0"); err != nil {
		t.Fatal(err)
	}
	for _, k := range m.kinds {
		if n := strings.Count(out.String(), "| "+k.Name+" "); n < 2 {
			t.Errorf("%d rows for %s, want 2", n, k.Name)
		}
	}
	for _, r := range rows {
		for _, l := range append(r.loads, r.recovery) {
			if l.asked == 0 {
				t.Errorf("%s: a phase without requests", r.kind.Name)
			}
		}
	}
	if !strings.Contains(out.String(), "QUICK") {
		t.Error("figures of a third of a second are not marked")
	}
}
