package main

import (
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

// forEach runs a test on a new store of every limiter.
func forEach(t *testing.T, r rule, test func(*testing.T, take)) {
	for _, l := range limiters {
		t.Run(strings.ReplaceAll(l.name, "/", "-"), func(t *testing.T) {
			ask, closing, err := l.open(r)
			if err != nil {
				t.Fatal(err)
			}
			defer closing()
			test(t, ask)
		})
	}
}

func TestSingleAllowsEachKeyOnceAndKeysDoNotTouch(t *testing.T) {
	forEach(t, single, func(t *testing.T, ask take) {
		for i := range 2000 {
			if !ask(key(i)) {
				t.Fatalf("the first request of key %d was denied: does its key vary?", i)
			}
		}
		for i := range 2000 {
			if ask(key(i)) {
				t.Fatalf("the second request of key %d was allowed: is its balance kept?", i)
			}
		}
	})
}

func TestWideAndRefilledAllowEverything(t *testing.T) {
	for _, r := range []rule{wide, refilled} {
		forEach(t, r, func(t *testing.T, ask take) {
			for i := range 2000 {
				if !ask(uniform[i]) {
					t.Fatalf("request %d was denied", i)
				}
			}
		})
	}
}

func TestWorkloadsVaryAsTheyClaim(t *testing.T) {
	distinct := func(w workload) (n int, top float64) {
		counts := map[string]int{}
		most := 0
		for _, k := range w {
			counts[k]++
			most = max(most, counts[k])
		}
		return len(counts), float64(most) / float64(len(w))
	}
	if n, top := distinct(hot); n != 1 || top != 1 {
		t.Errorf("hot: %d keys", n)
	}
	// Of 2^18 draws from 100 000 keys about 100 000·(1-e^-2.62) = 92 700 differ.
	if n, top := distinct(uniform); math.Abs(float64(n)-92_700) > 500 || top > 0.001 {
		t.Errorf("uniform: %d keys, the most popular with a share of %.4f", n, top)
	}
	// The sum of k^-1.1 over 100 000 keys is about 7.42, so the first has a share of 0.135.
	if n, top := distinct(zipf); n < 15_000 || math.Abs(top-0.135) > 0.01 {
		t.Errorf("zipf: %d keys, the most popular with a share of %.4f", n, top)
	}
	if len(uniform)&(len(uniform)-1) != 0 || len(zipf)&(len(zipf)-1) != 0 {
		t.Error("an order is not a power of two long")
	}
}

func TestARunThatTimesAnotherCaseIsAnError(t *testing.T) {
	open := func(rule) (take, func(), error) { return func(string) bool { return true }, nothing, nil }
	for _, m := range cases {
		s, err := m.prepare(contender{open: open})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.run(1, 100); (err == nil) != m.allowed {
			t.Errorf("%s: error %v from a limiter that allows everything", m.name, err)
		}
	}
}

func TestAStoreThatForgetsKeysIsNotMeasured(t *testing.T) {
	forgetful := contender{open: func(rule) (take, func(), error) { return func(string) bool { return true }, nothing, nil }}
	if _, err := bytesPerKey(forgetful, 1000); err == nil || !strings.Contains(err.Error(), "forgotten") {
		t.Errorf("error %v", err)
	}
}

func TestBytesPerKeyCountsWhatAStoreKeeps(t *testing.T) {
	hoarder := contender{open: func(rule) (take, func(), error) {
		kept := map[string][]byte{}
		return func(k string) bool {
			_, known := kept[k]
			kept[k] = make([]byte, 1024)
			return !known
		}, nothing, nil
	}}
	if b, err := bytesPerKey(hoarder, 10_000); err != nil || b < 1024 || b > 1400 {
		t.Errorf("%.0f bytes and error %v for a store that keeps 1024 and a name", b, err)
	}
}

// TestTheWholeReport runs everything once with runs that are far too short, to see that it runs.
func TestTheWholeReport(t *testing.T) {
	var out strings.Builder
	p := plan{rounds: 1, span: 10 * time.Microsecond, keys: []int{1000, 1400}}
	if err := run(&out, io.Discard, p); err != nil {
		t.Fatal(err)
	}
	for _, l := range limiters {
		if !strings.Contains(out.String(), "| "+l.name) {
			t.Errorf("no row for %s", l.name)
		}
	}
	for _, want := range []string{"QUICK", "Three rules", "Marks:", "Noise:", " cores, go"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
