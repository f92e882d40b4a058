package pumpkin

import (
	"slices"
	"time"
)

// Automation that goes up and down this often within this time is not mending anything: it stays up, and a person is called.
const (
	flapLimit  = 3
	flapWindow = 30 * time.Minute
)

// maxHold is how long an item stays at least after having come back again and again.
const maxHold = 30 * time.Minute

// A pumpkin that is up takes away the load that raised it, so "the load is low" does not mean "it is mended": the two levels and
// their times keep one instance from changing its mind too often (sensor), and what was up comes down in steps, each of which lets
// some of the load come back and is taken back if that is too much (stair).

// sensor is what one instance makes of its levels: whether it wants the item up.
type sensor struct {
	enterFor, exitFor time.Duration

	up    bool
	blind bool // some level is missing, and none is high
	calm  bool // all levels are low
	since time.Time
}

// sense takes the levels of now. A level that is missing is not a low one.
func (s *sensor) sense(now time.Time, high, calm, missing bool) {
	s.calm, s.blind = calm && !high && !missing, missing && !high
	against := high // whether this speaks for a change
	wait := s.enterFor
	if s.up {
		against, wait = s.calm, s.exitFor
	}
	if !against {
		s.since = time.Time{}
		return
	}
	if s.since.IsZero() {
		s.since = now
	}
	if now.Sub(s.since) >= wait {
		s.up, s.since = !s.up, time.Time{}
	}
}

// The votes of an instance.
const (
	voteUp      = '+'
	voteUpBlind = '!' // was for up, and sees nothing now
	voteBlind   = '?'
	voteCalm    = '-'
	voteNeither = '~'
)

func (s *sensor) vote() byte {
	switch {
	case s.up && s.blind:
		return voteUpBlind
	case s.up:
		return voteUp
	case s.blind:
		return voteBlind
	case s.calm:
		return voteCalm
	}
	return voteNeither
}

// tally is what the instances that live want together.
type tally struct {
	live, need, up int
	raise          bool // enough of them see the reason to put it up
	want           bool // enough of them want it up, those included that were for it and see nothing now
	calm           bool // too few of them to want it up are not calm
	seen           bool // somebody knows how things are
}

// count counts. Two or three tenths of the instances are needed, whichever is more; one that is alone decides.
func count(votes []byte) tally {
	t := tally{live: len(votes), need: max(2, (3*len(votes)+9)/10)}
	if t.live <= 1 {
		t.need = 1
	}
	sure, restless := 0, 0
	for _, v := range votes {
		if v == voteUp || v == voteUpBlind {
			t.up++
		}
		if v == voteUp {
			sure++
		}
		if v != voteCalm {
			restless++
		}
		if v != voteBlind && v != voteUpBlind {
			t.seen = true
		}
	}
	t.raise, t.want, t.calm = sure >= t.need, t.up >= t.need, restless < t.need
	return t
}

// phase is where the item of a rule stands. The zero value is down.
type phase uint8

const (
	down phase = iota
	up
	recovering
)

// stair is the item of a rule over time: up, down in steps, and up again.
type stair struct {
	minHold, step time.Duration

	phase   phase
	share   float64 // of what the text switches off
	since   time.Time
	hold    time.Duration // from since, while up
	raises  []time.Time   // those within flapWindow
	latched bool          // until a person does something
}

// move takes one moment, and reports whether the item went up, or up again.
func (s *stair) move(now time.Time, t tally) (raised bool) {
	switch {
	case t.raise && s.phase != up:
		s.raise(now)
		return true
	case s.phase == up:
		if !t.want && !s.latched && now.Sub(s.since) >= s.hold {
			s.phase, s.share, s.since = recovering, 0.5, now
		}
	case s.phase == recovering && !t.calm:
		s.since = now
	case s.phase == recovering && now.Sub(s.since) >= s.step:
		if s.share /= 2; s.share < 0.25 {
			s.phase, s.share = down, 0
		}
		s.since = now
	}
	return false
}

// raise puts it up. Each time within flapWindow doubles how long it stays.
func (s *stair) raise(now time.Time) {
	s.raises = slices.DeleteFunc(s.raises, func(t time.Time) bool { return now.Sub(t) >= flapWindow })
	s.raises = append(s.raises, now)
	s.latched = s.latched || len(s.raises) > flapLimit
	s.hold = s.minHold
	for range len(s.raises) - 1 {
		s.hold = min(2*s.hold, max(maxHold, s.minHold))
	}
	s.phase, s.share, s.since = up, 1, now
}

// follow takes over what another instance has done: there says whether the item is, and share how much of it.
func (s *stair) follow(now time.Time, there bool, share float64) {
	switch {
	case !there && s.phase != down:
		s.phase, s.share, s.since = down, 0, now
	case there && (s.phase == down || share > s.share):
		if s.raise(now); share < 1 {
			s.phase, s.share = recovering, share
		}
	case there && share < s.share:
		s.phase, s.share, s.since = recovering, share, now
	}
}

// reset forgets everything: a person has decided.
func (s *stair) reset() { *s = stair{minHold: s.minHold, step: s.step} }
