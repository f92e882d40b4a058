package queue

import "time"

// When refusals have come for surgeAfter, with gaps shorter than surgeGap, newest first begins; it ends when there has been
// none for calmAfter.
//
// It takes lasting refusals, not a line that merely is not empty: after a hiccup of 100 ms at 90 % load the line takes 900 ms
// to drain, in which newest-first would refuse many whom first come, first served serves late but in time.
const (
	surgeAfter = 300 * time.Millisecond
	surgeGap   = 200 * time.Millisecond
	calmAfter  = time.Second
)

// surge follows refusals and tells whether they last. The zero value has seen none.
type surge struct {
	first, last time.Duration // of the present run of refusals
	seen, on    bool
}

// refused notes that somebody was refused, displaced or has expired.
func (s *surge) refused(now time.Duration) {
	s.on = s.lasts(now)
	if !s.seen || now-s.last >= surgeGap {
		s.first = now
	}
	s.seen, s.last = true, now
	s.on = s.on || now-s.first >= surgeAfter
}

// lasts reports whether newest first holds at now.
func (s *surge) lasts(now time.Duration) bool { return s.on && now-s.last < calmAfter }
