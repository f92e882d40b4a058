package middleware

import "time"

// Settings of the throttle. They are those of "Site Reliability Engineering" (Beyer et al., 2016, chapter 21, client-side
// throttling) but for the window: two minutes there, ten seconds here, because a service that is back should be used again
// after about a window.
const (
	throttleK       = 2                // calls for each one that was accepted, before calls are held back
	throttleWindow  = 10 * time.Second // what is remembered
	throttleSlices  = 10               // in which it is forgotten
	throttleAtLeast = 10               // calls in the window, before anything is concluded from them
	throttleMost    = 0.95             // share that is held back at most, so that a recovery is noticed
)

// throttle decides how many calls to a service that refuses are not even sent. With requests calls made in the window, of which
// the service accepted accepts, a call is held back with the probability
//
//	max(0, (requests − K·accepts) / (requests + 1))
//
// so that a service that accepts half of what it gets is sent all of it, and one that accepts nothing next to nothing. Calls
// that are held back count as requests. The zero value is ready for use; it has no lock.
type throttle struct {
	slices [throttleSlices]struct{ requests, accepts int64 }
	at     int64 // the number of the newest slice, counted from the start
}

// move forgets what is older than the window. now counts from any fixed moment.
func (t *throttle) move(now time.Duration) {
	at := int64(now / (throttleWindow / throttleSlices))
	for n := min(at-t.at, throttleSlices); n > 0; n-- {
		t.at++
		t.slices[t.at%throttleSlices] = struct{ requests, accepts int64 }{}
	}
	if at > t.at { // everything is forgotten
		t.at = at
	}
}

// count notes a call that has ended, or was held back.
func (t *throttle) count(now time.Duration, accepted bool) {
	t.move(now)
	s := &t.slices[t.at%throttleSlices]
	s.requests++
	if accepted {
		s.accepts++
	}
}

// share returns the probability to hold a call back, 0 to throttleMost.
func (t *throttle) share(now time.Duration) float64 {
	t.move(now)
	var requests, accepts int64
	for _, s := range t.slices {
		requests += s.requests
		accepts += s.accepts
	}
	if requests < throttleAtLeast {
		return 0
	}
	return min(max(0, float64(requests-throttleK*accepts)/float64(requests+1)), throttleMost)
}

// idle reports whether there is nothing to remember.
func (t *throttle) idle(now time.Duration) bool {
	t.move(now)
	for _, s := range t.slices {
		if s.requests > 0 {
			return false
		}
	}
	return true
}
