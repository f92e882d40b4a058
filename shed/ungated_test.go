package shed_test

import (
	"context"
	"testing"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/concurrency"
	"github.com/spillway-go/spillway/shed"
)

// TestUngated: without the gate everybody runs at once, and the limits hold all the same.
func TestUngated(t *testing.T) {
	gated := shed.Config{
		Concurrency: concurrency.Config{Algorithm: "fixed", Min: 1, Max: 1, Initial: 1},
		Queue:       shed.Queue{Capacity: -1},
		Limits:      []shed.Limit{{Name: "per-client", Rule: limits.TokenBucket{Capacity: 50, Refill: limits.PerDay(1)}}},
	}
	for _, c := range []struct {
		config shed.Config
		runs   int
		reason shed.Reason
	}{
		{gated, 1, shed.Overloaded},
		{gated.Ungated(), 50, shed.OverLimit},
	} {
		s, err := shed.New(c.config)
		if err != nil {
			t.Fatal(err)
		}
		runs := 0
		for {
			if _, err = s.Admit(context.Background(), shed.Request{Client: "a"}); err != nil {
				break
			}
			runs++
		}
		if r, ok := err.(*shed.Rejection); runs != c.runs || !ok || r.Reason != c.reason {
			t.Errorf("%d ran and then %v, want %d and then %s", runs, err, c.runs, c.reason)
		}
		s.Close()
	}
}
