package health

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestHostTimesThatCanNotBeRatedAreDiscarded(t *testing.T) {
	now, times, fail := noon, hostTimes{busy: 50, total: 100}, error(nil)
	h := &hostCPU{read: func() (hostTimes, error) { return times, fail }}
	look := func(passed time.Duration, busy, total float64) (float64, error) {
		now = now.Add(passed)
		times.busy, times.total = times.busy+busy, times.total+total
		x, _, err := h.measure(now)
		return x, err
	}
	for _, tc := range []struct {
		why         string
		passed      time.Duration
		busy, total float64
		want        float64
		err         error
	}{
		{"the first look", 0, 0, 0, 0, errNoNews},
		{"a quarter", interval, 5, 20, 0.25, nil},
		{"at the same moment", 0, 5, 5, 0, errClockStood},
		{"within a tick", 9 * time.Millisecond, 0, 1, 0, errTooSoon},
		{"what the discarded looks saw is not lost", interval, 0, 14, 0.25, nil},
		{"the counters stand", interval, 0, 0, 0, errTooSoon},
		{"a CPU is taken away", interval, -50, -100, 0, errHostFell},
		{"and counting goes on", interval, 10, 20, 0.5, nil},
		{"busy falls by a rounding", interval, -1, 20, 0, errHostFell},
		{"more busy than there was time", interval, 30, 20, 1, nil},
		{"asleep for a minute", time.Minute, 5, 10, 0, errTooLong},
	} {
		if x, err := look(tc.passed, tc.busy, tc.total); !near(x, tc.want, 1e-9) || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
			t.Errorf("%s: %v, %v, want %v, %v", tc.why, x, err, tc.want, tc.err)
		}
	}
	times.busy = math.NaN()
	if _, err := look(interval, 0, 0); reasonOf(err) != NotANumber {
		t.Errorf("NaN: %v", err)
	}
	fail = errors.New("gone")
	if _, err := look(interval, 0, 0); !errors.Is(err, fail) {
		t.Errorf("a failing source: %v", err)
	}
}

// Whoever else reads the same counters, at whatever times, changes nothing: the differences are our own.
func TestOtherReadersOfTheHostsCountersChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := hostTimes{}
		source := func() (hostTimes, error) { return times, nil }
		alone, shared, other := &hostCPU{read: source}, &hostCPU{read: source}, &hostCPU{read: source}
		now := noon
		for range 20 {
			step := time.Duration(rapid.IntRange(100, 400).Draw(t, "ms")) * time.Millisecond
			busy := rapid.Float64Range(0, 1).Draw(t, "busy")
			times.total += step.Seconds()
			times.busy += busy * step.Seconds()
			now = now.Add(step)
			other.measure(now.Add(-2 * time.Millisecond))
			a, _, errA := alone.measure(now)
			b, _, errB := shared.measure(now)
			other.measure(now)
			if a != b || errA != errB || errA == nil && !near(a, busy, 1e-6) {
				t.Fatalf("alone %v (%v), beside others %v (%v), truth %v", a, errA, b, errB, busy)
			}
		}
	})
}
