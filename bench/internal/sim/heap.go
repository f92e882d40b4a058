package sim

import "time"

// event is something that happens to an attempt at a time. Events at the same time happen in the order in which they were
// planned.
type event struct {
	at   time.Duration
	seq  uint64
	kind kind
	a    *attempt
}

type kind uint8

const (
	workEnds kind = iota // the app has done the work
	waitEnds             // the gate said that it waits until now
	retries              // the client tries again
)

// agenda is a heap of events with four children for each: flatter than a binary one, and without interfaces.
type agenda struct {
	events []event
	seq    uint64
}

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

func (g *agenda) plan(at time.Duration, k kind, a *attempt) {
	g.seq++
	a.refs++
	g.events = append(g.events, event{})
	i, e := len(g.events)-1, event{at, g.seq, k, a}
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&g.events[parent]) {
			break
		}
		g.events[i] = g.events[parent]
		i = parent
	}
	g.events[i] = e
}

// next takes out the first event. There must be one.
func (g *agenda) next() event {
	first, n := g.events[0], len(g.events)-1
	e := g.events[n]
	g.events[n].a = nil
	g.events = g.events[:n]
	if n == 0 {
		return first
	}
	i := 0
	for {
		least := 4*i + 1
		if least >= n {
			break
		}
		for c := least + 1; c < min(4*i+5, n); c++ {
			if g.events[c].before(&g.events[least]) {
				least = c
			}
		}
		if !g.events[least].before(&e) {
			break
		}
		g.events[i] = g.events[least]
		i = least
	}
	g.events[i] = e
	return first
}
