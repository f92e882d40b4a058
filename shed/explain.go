package shed

import (
	"fmt"
	"strings"
	"time"

	"github.com/spillway-go/spillway/limits/concurrency"
)

// Explanation says why things are as they are, for the person on call. What it rests on is in the Status it is part of.
type Explanation struct {
	// Text is one or more sentences.
	Text string `json:"text"`
	// Change is the last change of the limit in effect; its zero value means that there was none.
	Change LimitChange `json:"change,omitzero"`
	// Signal is the signal of health that presses most, of those that count; empty if none does.
	Signal string `json:"signal,omitempty"`
}

// LimitChange is one change of the limit in effect.
type LimitChange struct {
	From int `json:"from"`
	To   int `json:"to"`
	// Reason is "health", when the cap that follows the pressure has moved it, "reload", or what the algorithm says: one of
	// concurrency.Change.
	Reason string `json:"reason"`
	// Ago is how long ago that was, to a tenth of a second.
	Ago Duration `json:"ago"`
}

// limitChange remembers how the limit in effect last moved.
type limitChange struct {
	limit  int // as it was last seen; 0 before that
	from   int
	reason string
	at     time.Duration
	reload bool // there was one since the limit was last seen
}

// note looks at the limit; capped tells whether health holds it below the estimate.
func (c *limitChange) note(now time.Duration, limit int, capped, wasCapped bool, why concurrency.Change) {
	if c.limit == 0 {
		c.limit = limit
	}
	reload := c.reload
	c.reload = false
	if limit == c.limit {
		return
	}
	c.from, c.limit, c.at = c.limit, limit, now
	switch {
	case reload:
		c.reason = "reload"
	case capped || wasCapped:
		c.reason = "health"
	default:
		c.reason = string(why)
	}
}

// noteLimit is called at each tick.
func (g *gate) noteLimit(now time.Duration) {
	limit := g.limit()
	capped := limit < g.estimate.Limit()
	g.change.note(now, limit, capped, g.capped, g.estimate.Status().Change)
	g.capped = capped
}

func (c *limitChange) status(now time.Duration) LimitChange {
	if c.reason == "" {
		return LimitChange{}
	}
	return LimitChange{From: c.from, To: c.limit, Reason: c.reason, Ago: Duration((now - c.at).Round(TickEvery))}
}

// explain puts a Status into words.
func (st *Status) explain() {
	e := &st.Explain
	for _, r := range st.Health.Signals {
		if r.Counts && r.Pressure > 0 && (e.Signal == "" || r.Pressure > st.pressureOf(e.Signal)) {
			e.Signal = r.Signal
		}
	}
	var b strings.Builder
	if st.Shadow {
		b.WriteString("Nothing is refused, for this is a shadow. ")
	}
	fmt.Fprintf(&b, "%d of %d places are in use", st.InFlight, st.Limit)
	switch {
	case st.Waiting > 0:
		fmt.Fprintf(&b, ", and %d wait for one", st.Waiting)
		if len(st.Line.Clients) > 0 {
			c := st.Line.Clients[0]
			fmt.Fprintf(&b, ", %d of them from client %s", c.Waiting, c.Client)
		}
	case st.InFlight < st.Limit:
		b.WriteString(", so nobody waits")
	}
	b.WriteString(".")
	if st.Limit < st.Concurrency.Limit {
		fmt.Fprintf(&b, " Health holds the limit below the %d that the backend could take", st.Concurrency.Limit)
		if e.Signal != "" {
			fmt.Fprintf(&b, ": %s is at a pressure of %.2f", e.Signal, st.pressureOf(e.Signal))
		}
		b.WriteString(".")
	} else if st.Concurrency.Dipping {
		fmt.Fprintf(&b, " The limit is lowered for a moment from %d, to see how long work takes without a queue.", st.Concurrency.Estimate)
	}
	if c := e.Change; c.Reason != "" {
		fmt.Fprintf(&b, " It last changed from %d to %d, %v ago (%s).", c.From, c.To, time.Duration(c.Ago), c.Reason)
	}
	for _, r := range st.Routes {
		if r.Bound == 0 {
			continue
		}
		name := r.Route
		if name == "" {
			name = "of no name"
		}
		why := "what it needs is under pressure"
		if r.Slow {
			why = fmt.Sprintf("its work takes far longer than the usual %v", time.Duration(r.UsualLatency).Round(time.Microsecond))
		}
		fmt.Fprintf(&b, " Route %s is held to %d places: %s.", name, r.Bound, why)
	}
	st.explainStore(&b)
	e.Text = b.String()
}

// explainStore says that quotas cannot be looked up, if that is so.
func (st *Status) explainStore(b *strings.Builder) {
	if st.Store == nil || st.Store.State == "up" {
		return
	}
	how := "is not asked"
	if st.Store.State == "faulty" {
		how = "answers with errors that somebody has to mend"
	}
	fmt.Fprintf(b, " The store of the quotas %s, since %s", how, st.Store.Since.UTC().Format(time.TimeOnly+" MST"))
	if st.Store.Error != "" {
		fmt.Fprintf(b, " (%s)", st.Store.Error)
	}
	b.WriteString(": each limit does what its on_failure says.")
}

func (st *Status) pressureOf(signal string) float64 {
	for _, r := range st.Health.Signals {
		if r.Signal == signal {
			return r.Pressure
		}
	}
	return 0
}
