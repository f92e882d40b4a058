package shed

import "time"

// EventKind says what an Event reports.
type EventKind uint8

// The events of a request's life. Every Admit ends in exactly one Admitted or Refused; every Admitted is followed by one
// Finished.
const (
	Admitted EventKind = iota // a permit was given
	Refused                   // the request was turned away
	Finished                  // the permit came back
)

// Event is one thing that happened, as a plain value. Fields that do not apply are zero.
type Event struct {
	Kind     EventKind
	Route    string
	Priority Priority
	// Reason and Rule are those of the Rejection, for Refused.
	Reason Reason
	Rule   string
	// Wait is the time spent waiting, for a turn and in the line, before the decision.
	Wait time.Duration
	// Service is how long the permit was held, for Finished.
	Service time.Duration
	// Outcome is how the work ended, for Finished.
	Outcome Outcome
}

// Observer is told about events. It is called on the request's goroutine after all locks are released, so it may take
// its time only at the request's expense; it must be safe for concurrent use.
type Observer interface {
	Observe(Event)
}

// ObserverFunc makes an Observer of a function.
type ObserverFunc func(Event)

// Observe calls f(e).
func (f ObserverFunc) Observe(e Event) { f(e) }
