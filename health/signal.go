package health

import (
	"errors"
	"io/fs"
	"math"
	"slices"
	"time"
)

const (
	// interval is the time between samples. Below 100 ms a counter that moves in ticks of 10 ms would be too coarse.
	interval = 250 * time.Millisecond
	// freshFor is how old a value may be and still count as new: three intervals.
	freshFor = 3 * interval
	// heldFor is how long the last value of a silent source holds before the signal leaves the maximum.
	heldFor = 10 * time.Second
)

// signal is one way of asking how we are. One goroutine uses it. A new signal is one file with one implementation, a
// line in newSampler and its Thresholds in Config. One that works between samples has a method run(context.Context) as well,
// which gets a goroutine of its own.
type signal interface {
	// name is the word in metrics, configuration and Reading.Signal.
	name() string
	// measure looks once; round is the time of this round of sampling, the same for all signals. The value describes the
	// dt before its own moment. errAbsent and errNoNews are answers, see there; any other error is a failed sample.
	measure(round time.Time) (value float64, dt time.Duration, err error)
	// source says in words what is measured; it changes rarely and is cheap to ask.
	source() string
}

// track follows one signal: it smooths the values, remembers how old they are and counts what went wrong. It is pure:
// time comes in. The zero value is a signal that has not been asked. It is copied into the published snapshot, so its
// fields are values.
type track struct {
	name       string
	thresholds Thresholds
	role       Role
	routes     []string // never changed
	own        bool

	avg         average
	since       time.Time // when the source was first asked, or last found absent
	at          time.Time // when it last answered usably; zero: not since then
	err         error     // of the last sample; nil: fine
	absent      bool      // the last answer was that there is nothing here
	discarded   tally
	last        State // at the end of the last add, to see transitions
	transitions uint64
	source      string
}

// add takes the result of one measurement at now.
func (t *track) add(now time.Time, value float64, dt time.Duration, err error) {
	if err == nil && (math.IsNaN(value) || math.IsInf(value, 0)) {
		err = &discard{reason: NotANumber, what: "the value is not a finite number"}
	}
	if t.since.IsZero() {
		t.since = now
	}
	t.err, t.absent = nil, false
	switch {
	case err == nil:
		switch gap := now.Sub(t.at); {
		case t.at.IsZero():
		case gap >= heldFor:
			t.avg = average{} // what was known before the silence says nothing about today
		case gap > carriedFor:
			dt = max(dt, gap) // and little about a few seconds later: the new value all but stands alone
		}
		t.avg.add(value, dt)
		t.at = now
	case errors.Is(err, errNoNews):
		// The source answers and nothing contradicts the last value.
		if !t.at.IsZero() {
			t.at = now
		}
	case errors.Is(err, errAbsent):
		t.err, t.absent = err, true
		t.avg, t.at, t.since = average{}, time.Time{}, now
	case t.at.IsZero() && missing(err):
		t.err, t.absent = err, true
	default:
		t.err = err
		t.discarded.add(reasonOf(err))
	}
	if s := t.state(now); s != t.last {
		t.last = s
		t.transitions++
	}
}

// missing reports whether err means that the system does not have the source: no such file, or a kernel feature that is
// not built in or switched off. Only a source that has never worked is absent by that; one that did has vanished.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errors.ErrUnsupported)
}

// state is how far the signal can be trusted at now.
func (t *track) state(now time.Time) State {
	last := t.at
	if last.IsZero() {
		last = t.since
	}
	age := now.Sub(last)
	switch {
	case t.absent:
		return Absent
	case age >= heldFor:
		return Failed
	case !t.avg.known():
		return Warming
	case age <= freshFor:
		return OK
	}
	return Stale
}

// pressure is what the last value means; it counts only while the state is known.
func (t *track) pressure() float64 {
	if !t.avg.known() {
		return 0
	}
	return t.thresholds.Pressure(t.avg.value)
}

// reading is the track in the form for people.
func (t *track) reading(now time.Time) Reading {
	r := Reading{
		Signal:      t.name,
		Role:        t.role,
		Routes:      slices.Clone(t.routes),
		State:       t.state(now),
		Source:      t.source,
		Discarded:   t.discarded.byReason(),
		Transitions: t.transitions,
	}
	if t.err != nil {
		r.Error = t.err.Error()
	}
	if t.avg.known() {
		r.Measured, r.Value, r.Pressure, r.Age = true, t.avg.value, t.pressure(), now.Sub(t.at)
	}
	return r
}
