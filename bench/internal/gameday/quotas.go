package gameday

import (
	"fmt"
	"time"
)

// quota is a rule of the file, and the part of the service that it stands before.
type quota struct {
	name string
	bucket
	part string
}

// The quotas whose bounds acts look at.
var (
	perClient  = quota{"per-client", usual.Free, "items"}
	perNetwork = quota{"per-network", usual.Network, "items"}
	orderTurns = quota{"orders", usual.Orders, "orders"}
	payments   = quota{"payments (strict)", usual.Payments, "pay"}
)

// excess is what may arrive beyond a rule, as docs/redis.md says for an outage: so many capacities, what the shares of the
// instances bring in so many seconds, and so many decisions.
type excess struct{ capacities, seconds, decisions float64 }

// within asks of each of the clients that no more of what it asked for arrived at the service than a rule lets through, and what is
// documented to come beyond it. A gateway to which Redis answers too late decides by its share, on a late machine at any time:
// where nobody has taken Redis away, what was decided so is counted.
func (s *scene) within(q quota, e excess, c counts, clients ...*customer) {
	if e.seconds == 0 {
		e.decisions = s.localSinceBegin()
	}
	n, who := 0, ""
	for _, client := range clients {
		if arrived := c.arrived(q.part, client); arrived > n || who == "" {
			n, who = arrived, client.name
		}
	}
	s.atMost(q, e, n, "most of one", fmt.Sprintf("%d (%s)", n, who))
}

// withinForAll is within for a rule that all clients share.
func (s *scene) withinForAll(q quota, e excess, c counts, clients ...*customer) {
	n := c.arrived(q.part, clients...)
	s.atMost(q, e, n, "of all", fmt.Sprint(n))
}

// atMost asks that no more arrived than the rule lets through from before the first request to now, and the excess.
func (s *scene) atMost(q quota, e excess, n int, of, measured string) {
	seconds := time.Since(s.begin).Seconds()
	limit := q.bound(seconds) + e.capacities*float64(q.Capacity) + e.seconds*float64(q.Refill) + e.decisions
	bound := fmt.Sprintf("≤ %d + %d/s × %.1f s", q.Capacity, q.Refill, seconds)
	if e.capacities > 0 {
		bound += fmt.Sprintf(" + %.3g × %d", e.capacities, q.Capacity)
	}
	if e.seconds > 0 {
		bound += fmt.Sprintf(" + shares of %d/s × %.1f s", q.Refill, e.seconds)
	}
	if e.decisions > 0 {
		bound += fmt.Sprintf(" + %.0f decided without Redis, which was too late", e.decisions)
	}
	s.expects("rule "+q.name+": arrived at the service, "+of, float64(n) <= limit, measured, "%s = %.0f", bound, limit)
}

// charged is the share of what a rule brings that has to arrive at the service of a client that asks for more all the time. With
// every charge made twice it would be half.
const charged = .9

// gets asks that each client that asked for more than its rule for some time was let have it: that nobody was charged for what
// did not run, or twice. What was in the bucket at the beginning is not counted.
func (s *scene) gets(q quota, asking time.Duration, c counts, clients ...*customer) {
	least, who := 0, ""
	for _, client := range clients {
		if arrived := c.arrived(q.part, client); arrived < least || who == "" {
			least, who = arrived, client.name
		}
	}
	bound := charged * float64(q.Refill) * asking.Seconds()
	s.hopes("rule "+q.name+": arrived at the service, least of one", float64(least) >= bound, fmt.Sprintf("%d (%s)", least, who),
		"≥ %.3g × %d/s × %.1f s = %.0f", charged, q.Refill, asking.Seconds(), bound)
}

// localDecisions is how many decisions a gateway has made without its Redis in one life.
type localDecisions struct {
	life int // its process
	n    float64
}

// local asks all gateways.
func (s *stage) local() (all []localDecisions) {
	for _, g := range s.gateways {
		m, err := g.metrics()
		if err != nil { // it is being started
			m = nil
		}
		all = append(all, localDecisions{g.cmd.Process.Pid, m[`spillway_store_decisions_total{source="local"}`]})
	}
	return all
}

// localSinceBegin is how many there have been since the act began, as far as the gateways live to tell.
func (s *scene) localSinceBegin() (n float64) {
	if s.day == nil {
		return 0
	}
	for i, now := range s.day.local() {
		if n += now.n; now.life == s.local[i].life {
			n -= s.local[i].n
		}
	}
	return n
}
