package shed

import "time"

// shortage is the time in which room is short: since somebody was turned away for want of it, until all that ran then has ended. The
// estimate learns from it what bursts of slow work show, of which the first to end finds nobody who wants more. The zero value is none.
type shortage struct {
	at   time.Duration // when it last began anew
	owed int           // how many of those that ran then still run
}

// begin notes that room is short while so many run.
func (s *shortage) begin(now time.Duration, inFlight int) { s.at, s.owed = now, inFlight }

func (s *shortage) lasts() bool { return s.owed > 0 }

// ended counts work that had started at a time, and reports whether the shortage is over with it.
func (s *shortage) ended(started time.Duration) bool {
	if s.owed == 0 || started > s.at {
		return false
	}
	s.owed--
	return s.owed == 0
}
