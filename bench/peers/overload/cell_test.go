package main

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/bench/peers/gates"
)

func kind(t *testing.T, name string) gates.Kind {
	t.Helper()
	for _, k := range gates.Kinds() {
		if k.Name == name {
			return k
		}
	}
	t.Fatalf("no gate %q", name)
	return gates.Kind{}
}

// play runs a cell in virtual time, in which the generator is never late.
func play(t *testing.T, c cell) []result {
	t.Helper()
	var results []result
	synctest.Test(t, func(t *testing.T) {
		answers, limits, err := c.run()
		if err != nil {
			t.Fatal(err)
		}
		results = c.results(answers, limits)
	})
	return results
}

func TestTheBackendIsFirstComeFirstServed(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		slots := 1 + random.IntN(5)
		b := newBackend(slots, time.Hour)
		// The model: a line of work, of which in each millisecond as many as there are free slots are started.
		type work struct{ arrives, needs, ends int }
		var line []work
		now := 0
		for range 40 {
			now += random.IntN(3)
			w := work{arrives: now, needs: 1 + random.IntN(9)}
			end, ok := b.book(time.Duration(w.arrives)*time.Millisecond, time.Duration(w.needs)*time.Millisecond)
			if !ok {
				t.Fatal("refused within an hour of waiting")
			}
			w.ends = int(end / time.Millisecond)
			line = append(line, w)
		}
		var running []int // when each ends
		next := 0
		for ms := 0; next < len(line); ms++ {
			still := running[:0]
			for _, end := range running {
				if end > ms {
					still = append(still, end)
				}
			}
			running = still
			for next < len(line) && line[next].arrives <= ms && len(running) < slots {
				if want := ms + line[next].needs; line[next].ends != want {
					t.Fatalf("%d slots: work %d ends at %d ms, in the model at %d", slots, next, line[next].ends, want)
				}
				running = append(running, ms+line[next].needs)
				next++
			}
		}
	}
}

func TestTheBackendRefusesWhatWouldWaitLongerThanItsBound(t *testing.T) {
	b := newBackend(1, 30*time.Millisecond)
	for i := range 4 {
		if end, ok := b.book(0, 10*time.Millisecond); !ok || end != time.Duration(i+1)*10*time.Millisecond {
			t.Fatalf("work %d: %v, %v", i, end, ok)
		}
	}
	if _, ok := b.book(0, 10*time.Millisecond); ok {
		t.Error("work that would wait 40 ms was taken on")
	}
	if _, ok := b.book(10*time.Millisecond, 10*time.Millisecond); !ok {
		t.Error("a refusal took a place in the line")
	}
}

func TestTheScheduleDependsOnTheSeedAlone(t *testing.T) {
	c := cell{slots: 16, exponential: true, seed: 7, phases: []phase{{2, 4 * time.Second}, {0.5, time.Second}}}
	collect := func(c cell) (all []request) {
		for i, r := range c.schedule {
			if i != len(all) {
				t.Fatalf("request %d is number %d", len(all), i)
			}
			all = append(all, r)
		}
		return all
	}
	first, again := collect(c), collect(c)
	if len(first) != c.length() || len(first) != 2*800*4+400 {
		t.Fatalf("%d requests, length says %d", len(first), c.length())
	}
	sum := 0.0
	for i := range first {
		if first[i] != again[i] {
			t.Fatalf("request %d is %v and %v", i, first[i], again[i])
		}
		if i > 0 && first[i].due < first[i-1].due {
			t.Fatalf("request %d is due before the one ahead of it", i)
		}
		sum += first[i].service.Seconds()
	}
	if mean := sum / float64(len(first)); math.Abs(mean-0.020) > 0.001 {
		t.Errorf("services take %.4f s on average", mean)
	}
	if last := first[len(first)-1]; last.phase != 1 || last.due < 4990*time.Millisecond || last.due >= 5*time.Second {
		t.Errorf("the last request is %v", last)
	}
	c.seed++
	if other := collect(c); other[0].service == first[0].service {
		t.Error("another seed gives the same services")
	}
}

func TestEveryRequestEndsInOneWay(t *testing.T) {
	for _, k := range gates.Kinds() {
		c := cell{kind: k, slots: 4, exponential: true, seed: 1, phases: []phase{{5, 2 * time.Second}, {0.5, time.Second}}}
		total := 0
		for _, r := range play(t, c) {
			sum := 0
			for o, n := range r.counts {
				if o < good || o > unsent {
					t.Errorf("%s: %d requests have no outcome", k.Name, n)
				}
				sum += n
			}
			if sum != r.asked || !r.valid() {
				t.Errorf("%s: %d of %d requests accounted for, valid %v", k.Name, sum, r.asked, r.valid())
			}
			total += r.asked
		}
		if total != c.length() {
			t.Errorf("%s: %d requests of %d", k.Name, total, c.length())
		}
	}
}

func TestEveryPermitComesBackOnceWithTheEndThatItHad(t *testing.T) {
	var entered int
	ends := map[gates.End]int{}
	var mu sync.Mutex
	counting := gates.Kind{Name: "counting", Open: func(int) (*gates.Gate, error) {
		return &gates.Gate{
			Enter: func(context.Context) (gates.Leave, bool) {
				mu.Lock()
				defer mu.Unlock()
				entered++
				return func(e gates.End) { mu.Lock(); ends[e]++; mu.Unlock() }, entered%5 != 0
			},
			Limit: func() int { return 0 }, Close: func() {},
		}, nil
	}}
	r := play(t, cell{kind: counting, slots: 4, seed: 1, phases: []phase{{10, 2 * time.Second}}})[0]
	want := map[gates.End]int{gates.Good: r.counts[good], gates.Late: r.counts[late], gates.Failed: r.counts[failed]}
	if !maps.Equal(ends, want) || len(ends) != 3 {
		t.Errorf("permits ended as %v, requests as %v", ends, r.counts)
	}
	if r.counts[rejected] != entered/5 || entered != r.asked {
		t.Errorf("%d rejected of %d, want every fifth of %d", r.counts[rejected], r.asked, entered)
	}
}

// TestOverloadCollapsesWithoutAGateAndNotBehindOne is the control of the comparison: if no gate at all did well, the others
// would prove nothing.
func TestOverloadCollapsesWithoutAGateAndNotBehindOne(t *testing.T) {
	phases := []phase{{5, 8 * time.Second}, {0.5, 6 * time.Second}}
	for _, exponential := range []bool{false, true} {
		c := cell{kind: kind(t, "none"), slots: 16, exponential: exponential, seed: 1, phases: phases}
		none := play(t, c)
		if g := none[0].goodput; g > 0.1 {
			t.Errorf("no gate, exponential %v: goodput %.2f at five times the capacity", exponential, g)
		}
		if none[0].counts[failed] == 0 || none[0].admitted.p99 < time.Second {
			t.Errorf("no gate: %v, admitted %v; the line of the backend never filled", none[0].counts, none[0].admitted)
		}
		if r := none[1].recovery; r >= 0 && r < 2*time.Second {
			t.Errorf("no gate, exponential %v: recovered after %v from a line of %v", exponential, r, backlog)
		}
		for _, name := range []string{"semaphore of the slots", "Spillway"} {
			c.kind = kind(t, name)
			r := play(t, c)
			if g := r[0].goodput; g < 0.9 || g > 1.1 {
				t.Errorf("%s, exponential %v: goodput %.2f at five times the capacity", name, exponential, g)
			}
			if r[1].recovery < 0 || r[1].recovery > 2*time.Second {
				t.Errorf("%s, exponential %v: recovery %v", name, exponential, r[1].recovery)
			}
		}
	}
}
