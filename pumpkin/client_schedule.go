package pumpkin

import "time"

// Bounds of polling, the same for every client whatever language it is written in.
const (
	// shortestPoll and longestPoll bound the time between two polls, whatever a document says.
	shortestPoll, longestPoll = 5 * time.Second, 10 * time.Minute
	// unknownPoll stands for poll_after while no document has been read.
	unknownPoll = 15 * time.Second
	// longestBackoff caps what errors make of the wait, unless twice poll_after is longer: else clients of a slow pace would
	// poll more often while the server is down than while it is well.
	longestBackoff = 5 * time.Minute
)

// Schedule says when a client of the document polls. It is pure arithmetic: now is the time since any instant that the
// caller keeps to, u a random number from [0,1), a new one for each call. [Client] and the widget poll by it.
//
//	first poll           after u × min(5 s, poll_after)
//	after an answer      between 0.8 and 1.2 of poll_after, and between 5 s and 10 min
//	after the nth error  Retry-After, plus u × min(5 min, 2ⁿ × poll_after); at least u × 2 × poll_after
//
// The jitter comes after the caps, or all would meet there. So a million clients make a million polls in poll_after, give or
// take a quarter, and no more while the server is down or when it comes back. The zero value is a client that polls at once.
type Schedule struct {
	pollAfter time.Duration // as the last document said; 0 for none yet
	due       time.Duration
	quiet     time.Duration // when a Retry-After is over
	failures  int           // in a row
}

// Start sets the first poll.
func (s *Schedule) Start(now time.Duration, u float64) {
	s.due = now + partOf(min(5*time.Second, s.every()), u)
}

// Due is when the next poll should be made.
func (s *Schedule) Due() time.Duration { return s.due }

// Failures is how many polls have failed since the last answer.
func (s *Schedule) Failures() int { return s.failures }

// Answered sets the poll after one that was answered, with a document or with 304. pollAfter is that of the document in
// force, older answer or not.
func (s *Schedule) Answered(now, pollAfter time.Duration, u float64) {
	s.pollAfter, s.failures = pollAfter, 0
	p := s.every()
	// p has at most ten minutes, so that whole nanoseconds bear the products.
	least, most := max(shortestPoll, p*8/10), min(longestPoll, p*12/10)
	s.due = now + least + partOf(most-least, u)
}

// Failed sets the poll after one that failed: no answer, neither 200 nor 304, or no document. retryAfter is what the answer
// asked for, or 0; more than ten minutes are not believed.
func (s *Schedule) Failed(now, retryAfter time.Duration, u float64) {
	s.failures++
	p := s.every()
	backoff := longestBackoff
	if s.failures < 7 { // 2⁷ × 5 s is above the cap
		backoff = min(backoff, p<<s.failures)
	}
	s.quiet = now + min(max(retryAfter, 0), longestPoll)
	s.due = s.quiet + partOf(max(backoff, 2*p), u)
}

// Heard brings the poll forward because something newer was heard of: to within poll_after from now, spread over it.
// Call it once for each revision, however often that is heard of.
func (s *Schedule) Heard(now time.Duration, u float64) {
	s.due = max(s.quiet, min(s.due, now+partOf(s.every(), u)))
}

// every is poll_after within the bounds.
func (s *Schedule) every() time.Duration {
	if s.pollAfter <= 0 {
		return unknownPoll
	}
	return min(longestPoll, max(shortestPoll, s.pollAfter))
}

// partOf is the part u of d.
func partOf(d time.Duration, u float64) time.Duration { return time.Duration(u * float64(d)) }
