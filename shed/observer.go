package shed

import (
	"context"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// EventKind says what an Event reports.
type EventKind uint8

// The events of a request's life. Every Admit ends in exactly one Admitted or Refused; every Admitted is followed by one
// Finished.
const (
	Admitted EventKind = iota // a permit was given
	Refused                   // the request was turned away
	Finished                  // the permit came back
)

// String returns the word used in logs.
func (k EventKind) String() string {
	switch k {
	case Admitted:
		return "admitted"
	case Refused:
		return "refused"
	case Finished:
		return "finished"
	}
	return "unknown"
}

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
	// Store is how long the store took to decide. It is zero where no rule was asked about, and where the store is this
	// process's own memory, which is too quick to be worth the measuring.
	Store time.Duration
	// Source is who decided, where Store is not zero.
	Source limits.Source
	// Service is how long the permit was held, for Finished.
	Service time.Duration
	// WouldRefuse is why the request was Admitted only because its route is a shadow; empty if it was not.
	WouldRefuse Reason
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

// ContextObserver is an Observer that wants the context of the request as well, to find its trace for example. A Shedder
// whose Observer is one calls ObserveContext instead of Observe. The context is the one given to Admit, for Finished too; by
// then it may be done. An observer must not keep it.
type ContextObserver interface {
	Observer
	ObserveContext(ctx context.Context, e Event)
}

// Observers tells several observers about each event, one after the other; nil ones are left out.
func Observers(list ...Observer) Observer {
	var kept observers
	contextual := false
	for _, o := range list {
		if o == nil {
			continue
		}
		_, wants := o.(ContextObserver)
		contextual = contextual || wants
		kept = append(kept, o)
	}
	if contextual {
		return contextObservers{kept}
	}
	return kept
}

type observers []Observer

func (all observers) Observe(e Event) {
	for _, o := range all {
		o.Observe(e)
	}
}

// contextObservers are several of which at least one wants the context.
type contextObservers struct{ observers }

func (all contextObservers) ObserveContext(ctx context.Context, e Event) {
	for _, o := range all.observers {
		if c, ok := o.(ContextObserver); ok {
			c.ObserveContext(ctx, e)
		} else {
			o.Observe(e)
		}
	}
}

// tell reports an event to the observer, if there is one.
func (s *Shedder) tell(ctx context.Context, e Event) {
	switch {
	case s.contextual != nil:
		s.contextual.ObserveContext(ctx, e)
	case s.observer != nil:
		s.observer.Observe(e)
	}
}
