package main

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
)

// TestAShortSoakLeavesNothingBehind is the short form of bench soak, with the real goroutines, locks and timers in virtual time.
func TestAShortSoakLeavesNothingBehind(t *testing.T) {
	s, err := soakScenario(20 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		run, err := soak(t.Context(), s, "handler", io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range judge.Judge(s, "handler", []*measure.Run{run}) {
			// The heap is of the whole process, and so few seconds are too short for the collector to say anything of it.
			if v.Metric != "heap_growth" && v.Metric != "slope" && v.Status != judge.Pass {
				t.Errorf("%s: %s %v %s", v.Name, v.Status, v.Value, v.Note)
			}
		}
	})
}

func TestGrowthComparesTheLastQuarterWithTheFirst(t *testing.T) {
	var v vitals
	for i := range 110 { // 10 of warm-up, which count for nothing
		n := 100.0
		if i < 10 {
			n = 1e9
		} else if i >= 85 {
			n = 200
		}
		v.all = append(v.all, [3]float64{n, 100, 0})
	}
	if g := v.growth(heap, 10); g != 2 {
		t.Errorf("heap: %v, want 2", g)
	}
	if g := v.growth(goroutines, 10); g != 1 {
		t.Errorf("goroutines: %v, want 1", g)
	}
	if g := v.growth(descriptors, 10); g != 1 {
		t.Errorf("descriptors that nobody counts: %v, want 1", g)
	}
	if g := new(vitals).growth(heap, 10); g != 1 {
		t.Errorf("nothing seen: %v, want 1", g)
	}
}
