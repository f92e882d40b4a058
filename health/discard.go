package health

import (
	"errors"
	"fmt"
)

// Reason is the word for why a sample was not used; it is the label of the metric and the key in Reading.Discarded.
type Reason string

// The reasons.
const (
	// CounterFell: a cumulative counter went back, because it was reset or the process moved to another cgroup.
	CounterFell Reason = "counter_fell"
	// ClockStood: no time passed since the sample before, or it ran backwards.
	ClockStood Reason = "clock_stood"
	// TooSoon: so little time passed that the counter's own tick would decide the answer.
	TooSoon Reason = "too_soon"
	// TooLong: so much time passed, more than 5 s, that an average over it says nothing about now.
	TooLong Reason = "too_long"
	// NotANumber: the value was NaN or infinite; an average would carry it for ever.
	NotANumber Reason = "not_a_number"
	// Malformed: the source answered with something else than its documented form: empty, garbage, too long, a key missing.
	Malformed Reason = "malformed"
	// Unreadable: the source could not be read.
	Unreadable Reason = "unreadable"
	// Overdue: a check did not return within its timeout.
	Overdue Reason = "overdue"
)

// reasons lists them all; its order is that of tally.
var reasons = [...]Reason{CounterFell, ClockStood, TooSoon, TooLong, NotANumber, Malformed, Unreadable, Overdue}

// tally counts discards by reason, indexed like reasons.
type tally [len(reasons)]uint64

func (t *tally) add(r Reason) {
	for i := range reasons {
		if reasons[i] == r {
			t[i]++
		}
	}
}

// byReason is the tally as a map without zero entries, owned by the caller; nil if there are none.
func (t *tally) byReason() map[Reason]uint64 {
	var m map[Reason]uint64
	for i, n := range t {
		if n == 0 {
			continue
		}
		if m == nil {
			m = make(map[Reason]uint64, len(reasons))
		}
		m[reasons[i]] = n
	}
	return m
}

// discard is the error of a sample that must not be used.
type discard struct {
	reason Reason
	what   string
	err    error // the cause, where there is one
}

func (d *discard) Error() string {
	if d.err != nil {
		return d.what + ": " + d.err.Error()
	}
	return d.what
}

func (d *discard) Unwrap() error { return d.err }

func malformed(format string, args ...any) error {
	return &discard{reason: Malformed, what: fmt.Sprintf(format, args...)}
}

// reasonOf is the word for err; an error without one came from reading.
func reasonOf(err error) Reason {
	if d, ok := errors.AsType[*discard](err); ok {
		return d.reason
	}
	return Unreadable
}

var (
	// errAbsent: there is nothing of this kind here to measure, and that is certain. It is an answer, not a failure: the
	// signal has no opinion from now on until there is.
	errAbsent = errors.New("absent")
	// errNoNews: the source is fine, but a value needs more than has been seen so far.
	errNoNews = errors.New("nothing to measure yet")
)
