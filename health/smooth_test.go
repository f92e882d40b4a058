package health

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// settled is an average that has long been at v.
func settled(v float64) average { return average{seen: seedSamples, value: v} }

func TestTheAverageStartsFromTheMeanOfItsFirstSamples(t *testing.T) {
	var a average
	for i, x := range []float64{0.9, 0.1, 0.2} {
		if a.known() {
			t.Fatalf("it claims to know after %d samples", i)
		}
		a.add(x, interval)
	}
	if !a.known() || !near(a.value, 0.4, 1e-12) {
		t.Errorf("after three samples known is %v and the value %v, want 0.4", a.known(), a.value)
	}
}

// The law of an exponential average: how a stretch of time is cut into samples does not matter, only what happened in it.
func TestTheAverageDoesNotDependOnHowOftenWeLook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, from := rapid.Float64Range(0, 1).Draw(t, "x"), rapid.Float64Range(0, 1).Draw(t, "from")
		cuts := rapid.SliceOfN(rapid.Int64Range(1, 10_000), 1, 20).Draw(t, "cuts")
		pieces, whole := settled(from), settled(from)
		var sum time.Duration
		for _, ms := range cuts {
			pieces.add(x, time.Duration(ms)*time.Millisecond)
			sum += time.Duration(ms) * time.Millisecond
		}
		whole.add(x, sum)
		exact := x + (from-x)*math.Pow(math.E, -sum.Seconds()/0.7)
		if !near(pieces.value, exact, 1e-9) || !near(whole.value, exact, 1e-9) {
			t.Fatalf("in %d pieces %v, at once %v, exactly %v", len(cuts), pieces.value, whole.value, exact)
		}
	})
}

func TestAStepIsSeenInTimeAndSingleSamplesAreNot(t *testing.T) {
	step, low := settled(0.3), defaultCPU.Low
	var took time.Duration
	for step.value <= low {
		step.add(1, interval)
		took += interval
	}
	if took > 1500*time.Millisecond {
		t.Errorf("a step from 0.3 to 1.0 passed %v after %v", low, took)
	}
	flap := settled(0.5)
	for i := range 1000 {
		flap.add([]float64{0.1, 0.9}[i%2], interval)
		if flap.value > low {
			t.Fatalf("sample %d of 10 %% and 90 %% by turns reads %v", i, flap.value)
		}
	}
}
