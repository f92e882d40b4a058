package queue

import "time"

// When refusals have come for surgeAfter, with gaps shorter than surgeGap, a surge begins; it ends when there has been none for
// calmAfter. In a surge the newest goes first, and a priority holds surgePlaces only.
//
// It takes lasting refusals, not a line that merely is not empty: after a hiccup of 100 ms at 90 % load the line takes 900 ms
// to drain, in which newest-first would refuse many whom first come, first served serves late but in time.
//
// With the newest first a long line serves nobody: whoever is not among the next few is overtaken until its time is up. Few
// places let most be refused at once, without having waited and before any quota was taken for them. As somebody leaves at
// each turn, one newcomer for each turn finds a place, and is served next. 32 are enough that a client or a priority which
// asks for 85 % of what can be served finds them taken in 1 of 180 cases (an M/M/1 queue is as long with .85^32).
const (
	surgeAfter  = 300 * time.Millisecond
	surgeGap    = 200 * time.Millisecond
	calmAfter   = time.Second
	surgePlaces = 32
)

// surge follows the refusals of one priority and tells whether they last. The zero value has seen none.
type surge struct {
	first, last time.Duration // of the present run of refusals
	began       time.Duration // when the run began that made the surge
	turns, away float64       // how many had their turn and how many were refused; see count
	seen, on    bool
}

// refused notes that somebody was refused, displaced or has expired.
func (s *surge) refused(now time.Duration) {
	s.on = s.lasts(now)
	if !s.seen || now-s.last >= surgeGap {
		s.first = now
	}
	s.seen, s.last = true, now
	if !s.on && now-s.first >= surgeAfter {
		s.on, s.began = true, s.first
	}
}

// lasts reports whether newest first holds at now.
func (s *surge) lasts(now time.Duration) bool { return s.on && now-s.last < calmAfter }
