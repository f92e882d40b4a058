package shed

import (
	"sync/atomic"
	"time"
)

// longestRetry bounds the Retry-After of a shed request: an estimate from the present line is worth nothing beyond it.
const longestRetry = 30 * time.Second

// shedReasons are the reasons that a request is shed for, for which refusals are kept ready.
var shedReasons = [...]Reason{Overloaded, QueueFull, WaitExpired, Displaced, Deadline}

// refusals keeps the Rejections that shed requests of one route get, one for each reason and number of seconds, so that
// shedding allocates nothing once they have been seen.
type refusals [len(shedReasons)][2*longestRetry/time.Second + 1]atomic.Pointer[Rejection]

// get returns the Rejection for reason. Its RetryAfter is the time the line needs to drain, in whole seconds rounded up,
// plus as much again at random: who was refused together shall not come back together. jitter draws from [0, n).
func (t *refusals) get(route string, reason Reason, drain time.Duration, jitter func(n int64) int64) *Rejection {
	base := (min(max(drain, 1), longestRetry) + time.Second - 1) / time.Second
	seconds := base + time.Duration(jitter(int64(base)+1))
	for i, r := range shedReasons {
		if r != reason {
			continue
		}
		ready := t[i][seconds].Load()
		if ready == nil {
			ready = &Rejection{Reason: reason, Route: route, RetryAfter: seconds * time.Second}
			t[i][seconds].Store(ready)
		}
		return ready
	}
	return &Rejection{Reason: reason, Route: route, RetryAfter: seconds * time.Second}
}
