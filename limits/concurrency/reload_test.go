package concurrency

import (
	"testing"
	"time"
)

func TestReconfigureKeepsTheLimitWithinTheNewBounds(t *testing.T) {
	for _, row := range []struct {
		what     string
		from, to Config
		want     int
	}{
		{"the same", Config{Initial: 30}, Config{Initial: 30}, 30},
		{"another initial alone", Config{Initial: 30}, Config{Initial: 60}, 30},
		{"a lower max", Config{Initial: 30}, Config{Max: 12}, 12},
		{"a higher min", Config{Initial: 30}, Config{Min: 50}, 50},
		{"another algorithm", Config{Initial: 30}, Config{Algorithm: Gradient2}, 30},
		{"another algorithm", Config{Initial: 30}, Config{Algorithm: Vegas, Max: 20}, 20},
		{"another algorithm", Config{Algorithm: Gradient2, Initial: 30}, Config{Algorithm: AIMD}, 30},
		{"fixed", Config{Initial: 30}, Config{Algorithm: Fixed, Initial: 7}, 7},
		{"fixed, larger than the default bounds", Config{Initial: 30}, Config{Algorithm: Fixed, Initial: 1000}, 1000},
		{"another fixed one", Config{Algorithm: Fixed, Initial: 7}, Config{Algorithm: Fixed, Initial: 9}, 9},
		{"free again", Config{Algorithm: Fixed, Initial: 7}, Config{}, 7},
	} {
		e, err := New(row.from)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Reconfigure(row.to); err != nil || e.Limit() != row.want {
			t.Errorf("%s: limit %d, error %v; want %d", row.what, e.Limit(), err, row.want)
		}
		low, high := e.Bounds()
		now := time.Duration(0)
		for range 2000 { // whatever was changed to goes on within its bounds
			now += 5 * time.Millisecond
			e.Observe(now, Sample{Latency: 20 * time.Millisecond, InFlight: e.Limit()})
			if l := e.Limit(); l < low || l > high {
				t.Fatalf("%s: limit %d is out of [%d, %d]", row.what, l, low, high)
			}
		}
	}
}

func TestReconfigureThatIsRefusedChangesNothing(t *testing.T) {
	e, err := New(Config{Initial: 30})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Reconfigure(Config{Min: 50, Max: 40}); err == nil || e.Limit() != 30 {
		t.Errorf("limit %d, error %v", e.Limit(), err)
	}
	if low, high := e.Bounds(); low != DefaultMin || high != DefaultMax {
		t.Errorf("bounds %d, %d", low, high)
	}
}

// What was learnt about the service is not learnt anew.
func TestReconfigureKeepsTheBaseline(t *testing.T) {
	e, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0)
	for range 400 {
		now += 5 * time.Millisecond
		e.Observe(now, Sample{Latency: 20 * time.Millisecond, InFlight: 2})
	}
	before := e.Status().Baseline
	if err := e.Reconfigure(Config{Max: 100}); err != nil || before == 0 || e.Status().Baseline != before {
		t.Errorf("baseline %v, was %v, error %v", e.Status().Baseline, before, err)
	}
}
