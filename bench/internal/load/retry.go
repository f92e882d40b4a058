package load

import (
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway/bench/scenarios"
)

// backoffBase is the first step of the backoff that well-behaved clients use.
const backoffBase = 100 * time.Millisecond

// RetryDelay returns how long after a failure the client tries again, and whether it does. tries is how often it has tried,
// at least 1; retryAfter is what the answer asked for; draw draws from [0, n).
func RetryDelay(r *scenarios.Retry, tries int, retryAfter time.Duration, draw func(n int64) int64) (time.Duration, bool) {
	if r == nil || tries > r.Max {
		return 0, false
	}
	if r.Policy == "immediate" {
		return 0, true
	}
	step := backoffBase << min(tries-1, 10)
	return max(retryAfter, time.Duration(draw(int64(step)+1))), true
}

// anywhere draws for real runs, whose retries no seed can repeat anyway.
func anywhere(n int64) int64 { return rand.Int64N(n) }
