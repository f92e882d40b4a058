package sim

import (
	"slices"
	"time"

	"github.com/spillway-go/spillway/bench/internal/app"
	"github.com/spillway-go/spillway/bench/scenarios"
	"github.com/spillway-go/spillway/shed"
)

// oracle is the best there can be: it knows how long each request takes and when the app has a slot, serves the client that
// has had the least, and nobody whom it cannot serve in time. It is the other control of the metrics: what the oracle does
// not pass, nothing can.
type oracle struct {
	s        *scenarios.Scenario
	app      *app.App
	slots    int
	inFlight int
	queues   map[string]*queue
	order    []*queue // in the order in which clients first came
	ended    []*attempt
}

// queue is one client's: those that wait, and the work it has had.
type queue struct {
	waiting []*attempt
	served  time.Duration
}

func newOracle(s *scenarios.Scenario, app *app.App) *oracle {
	return &oracle{s: s, app: app, slots: s.App.Slots, queues: make(map[string]*queue)}
}

func (g *oracle) admit(now time.Duration, a *attempt) {
	q := g.queues[a.client]
	if q == nil {
		q = new(queue)
		g.queues[a.client] = q
		g.order = append(g.order, q)
	}
	q.waiting = append(q.waiting, a)
	a.place, a.until = waiting, never
	g.dispatch(now)
	// Whoever called looks at a itself; woken is for the others.
	g.ended = slices.DeleteFunc(g.ended, func(e *attempt) bool { return e == a })
}

// dispatch starts work while there are slots, and refuses whom it is too late for.
func (g *oracle) dispatch(now time.Duration) {
	if g.inFlight < g.slots && g.app.Next() <= now {
		var least *queue
		for _, q := range g.order {
			for len(q.waiting) > 0 && now+q.waiting[0].Work > q.waiting[0].At+g.s.Populations[q.waiting[0].Population].Deadline {
				late := q.waiting[0]
				q.waiting = q.waiting[1:]
				late.place, late.why, late.after = outside, "late", 0
				g.ended = append(g.ended, late)
			}
			if len(q.waiting) > 0 && (least == nil || q.served < least.served) {
				least = q
			}
		}
		if least == nil {
			return
		}
		a := least.waiting[0]
		least.waiting = least.waiting[1:]
		least.served += a.Work
		g.inFlight++
		a.place = working
		g.ended = append(g.ended, a) // the app's next slot is known only when this one is taken: one at a time
	}
}

func (g *oracle) timeUp(time.Duration, *attempt) {}

func (g *oracle) leave(_ time.Duration, a *attempt) {
	q := g.queues[a.client]
	for i, w := range q.waiting {
		if w == a {
			q.waiting = append(q.waiting[:i:i], q.waiting[i+1:]...)
			break
		}
	}
	a.place = outside
}

func (g *oracle) done(now time.Duration, _ *attempt, _ shed.Outcome) {
	g.inFlight--
	g.dispatch(now)
}

func (g *oracle) tick(now time.Duration) { g.dispatch(now) }

func (g *oracle) woken() *attempt {
	if len(g.ended) == 0 {
		return nil
	}
	a := g.ended[0]
	g.ended = g.ended[1:]
	return a
}

func (g *oracle) gauge() (limit, waiting, inFlight int) { return g.slots, 0, g.inFlight }
