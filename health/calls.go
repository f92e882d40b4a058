package health

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Calls counts the calls to one dependency and how many of them failed. The zero value is ready; it must not be copied. It is
// safe for concurrent use, takes no lock and does not allocate.
type Calls struct {
	all, failed atomic.Uint64
}

// Done counts a call that has ended; failed tells whether the dependency let it down. An answer that the caller did not
// like (not found, bad input) and a call that the caller gave up are no failures of the dependency.
func (c *Calls) Done(failed bool) {
	// In this order, and read in the other one: nobody ever sees more failures than calls.
	c.all.Add(1)
	if failed {
		c.failed.Add(1)
	}
}

// Dependency is something that some routes call and whose calls are counted: another service, a cache, a queue.
type Dependency struct {
	// Name is the signal's name, such as "payments"; required.
	Name string
	// Calls is what the program counts its calls with; required.
	Calls *Calls
	// Failed bounds failed calls ÷ all calls of the last 10 s; required, since only you know what is normal.
	Failed Thresholds
	// Routes are the names of the routes that need it; at least one.
	Routes []string
}

func (d *Dependency) prepare() error {
	if d.Calls == nil {
		return fmt.Errorf("health: dependency %s has no Calls; set it to a *health.Calls and call its Done after each call", d.Name)
	}
	if d.Failed == (Thresholds{}) {
		return fmt.Errorf("health: dependency %s has no thresholds; set Failed, e.g. {low: 0.2, high: 0.6}", d.Name)
	}
	return d.Failed.check("dependency " + d.Name)
}

const (
	callsWindow = 10 * time.Second
	// fewestCalls is how many calls must have ended in the window for their share of failures to mean something: one failure
	// among two calls is no outage. A dependency that is hardly called any more, because its routes are capped, is unknown
	// again, and thereby gets another chance.
	fewestCalls = 20
)

// failures is the share of a dependency's calls that failed in the window.
type failures struct {
	label  string
	calls  *Calls
	window window[callCount]
}

type callCount struct{ all, failed uint64 }

func newFailures(d Dependency) *failures {
	return &failures{label: d.Name, calls: d.Calls, window: newWindow[callCount](callsWindow)}
}

func (f *failures) name() string { return f.label }

func (f *failures) source() string { return "failed calls of the last 10 s, of all calls" }

func (f *failures) measure(round time.Time) (float64, time.Duration, error) {
	now, err := f.window.add(round)
	if err != nil {
		return 0, 0, err
	}
	now.failed = f.calls.failed.Load()
	now.all = f.calls.all.Load()
	old := f.window.oldest().value
	all, failed := now.all-old.all, now.failed-old.failed
	if all < fewestCalls {
		return 0, 0, errFewCalls
	}
	// A failure may be counted in this window and its call, an instant earlier, in the one before.
	return min(1, float64(failed)/float64(all)), f.window.covers(), nil
}

var errFewCalls = fmt.Errorf("%w: fewer than %d calls ended in the last %v, too few to tell", errAbsent, fewestCalls, callsWindow)
