package gameday

import (
	"context"
	"fmt"
	"time"
)

// excess is what may arrive beyond a rule, as docs/redis.md says for an outage: so many capacities, what the shares of the
// instances bring in so many seconds, and so many decisions.
type excess struct{ capacities, seconds, decisions float64 }

// within asks that no more of what members of a group asked for arrived at the service than a rule lets through, and what is
// documented to come beyond it. A gateway to which Redis answers too late decides by its share, on a late machine at any time:
// where nobody has taken Redis away, what was decided so is counted.
func (s *scene) within(rule string, b bucket, e excess, c counts, part string, clients ...string) {
	if e.seconds == 0 {
		e.decisions = s.aloneSince()
	}
	s.arrived(rule, b, e, c, part, clients...)
}

// withinStrict is within for a rule that lets nothing through while Redis cannot decide.
func (s *scene) withinStrict(rule string, b bucket, losses float64, c counts, part string, clients ...string) {
	s.arrived(rule+" (strict)", b, excess{capacities: losses}, c, part, clients...)
}

// arrived asks that no more arrived than the rule lets through from before the first request to now, and the excess.
func (s *scene) arrived(rule string, b bucket, e excess, c counts, part string, clients ...string) {
	seconds := time.Since(s.begin).Seconds()
	n, who := fullest(c, part, clients)
	limit := b.bound(seconds) + e.capacities*float64(b.Capacity) + e.seconds*float64(b.Refill) + e.decisions
	bound := fmt.Sprintf("≤ %d + %d/s × %.1f s", b.Capacity, b.Refill, seconds)
	if e.capacities > 0 {
		bound += fmt.Sprintf(" + %.3g × %d", e.capacities, b.Capacity)
	}
	if e.seconds > 0 {
		bound += fmt.Sprintf(" + shares of %d/s × %.1f s", b.Refill, e.seconds)
	}
	if e.decisions > 0 {
		bound += fmt.Sprintf(" + %.0f decided without Redis, which was too late", e.decisions)
	}
	s.expects("rule "+rule+": arrived at the service, most of one", float64(n) <= limit, fmt.Sprintf("%d (%s)", n, who), "%s = %.0f", bound, limit)
}

// fullest is the client of whom most arrived.
func fullest(c counts, part string, clients []string) (n int, who string) {
	for _, name := range clients {
		if arrived := c.Arrived[name+" "+part]; arrived > n || who == "" {
			n, who = arrived, name
		}
	}
	return n, who
}

// charged is the share of what a rule brings that has to arrive at the service of a client that asks for more all the time. With
// every charge made twice it would be half.
const charged = .9

// gets asks that each client that asked for more than its rule for some time was let have it: that nobody was charged for what
// did not run, or twice. What was in the bucket at the beginning is not counted.
func (s *scene) gets(rule string, b bucket, asking time.Duration, c counts, part string, clients ...string) {
	least, who := 0, ""
	for _, name := range clients {
		if arrived := c.Arrived[name+" "+part]; arrived < least || who == "" {
			least, who = arrived, name
		}
	}
	bound := charged * float64(b.Refill) * asking.Seconds()
	s.hopes("rule "+rule+": arrived at the service, least of one", float64(least) >= bound, fmt.Sprintf("%d (%s)", least, who),
		"≥ %.3g × %d/s × %.1f s = %.0f", charged, b.Refill, asking.Seconds(), bound)
}

// alone is how many decisions a gateway has made without its Redis in one life.
type alone struct {
	life int // its process
	n    float64
}

func (s *stage) alone() (all []alone) {
	for _, g := range s.gateways {
		m, err := g.metrics()
		if err != nil { // it is being started
			m = nil
		}
		all = append(all, alone{g.cmd.Process.Pid, m[`spillway_store_decisions_total{source="local"}`]})
	}
	return all
}

// aloneSince is how many there have been since the act began, as far as the gateways live to tell.
func (s *scene) aloneSince() (n float64) {
	if s.day == nil {
		return 0
	}
	for i, now := range s.day.alone() {
		if n += now.n; now.life == s.alone[i].life {
			n -= s.alone[i].n
		}
	}
	return n
}

// Everything has to be as before at most recovery after an end of trouble: calm begins, a time in which 99 of 100 are served.
const (
	recovery = 5 * time.Second
	calm     = 3 * time.Second
)

// recovers plays what customers ask for from the end of trouble on until everything is as before, or it is clear that it takes
// too long, and says how long it took for the named groups.
func (s *scene) recovers(ctx context.Context, from time.Time, groups []*group, names ...string) {
	for {
		s.play(ctx, 2*time.Second, groups...) // a multiple of every pace in a day, so that parts follow each other without a seam
		s.end = time.Now()
		_, calmed := s.calmed(from, names)
		if calmed || s.end.Sub(from) >= recovery+calm || ctx.Err() != nil {
			break
		}
	}
	s.recovered(from, names...)
}

// recovered says how long it took after an end of trouble until everything was as before.
func (s *scene) recovered(from time.Time, groups ...string) {
	took, calmed := s.calmed(from, groups)
	text := fmt.Sprintf("%.1f s", took.Seconds())
	if !calmed {
		text = "not while it was watched"
	}
	s.hopes("recovered after", calmed && took <= recovery, text, "≤ %v", recovery)
}

// calmed is how long after a moment calm began.
func (s *scene) calmed(from time.Time, groups []string) (took time.Duration, calmed bool) {
	shots := s.since(from, groups...)
	for t := from; !t.Add(calm).After(s.end); t = t.Add(200 * time.Millisecond) {
		n, all := 0, 0
		for i := range shots {
			if one := &shots[i]; !one.at.Before(t) && one.at.Before(t.Add(calm)) && one.status != notCalled {
				all++
				if one.ok() {
					n++
				}
			}
		}
		if all > 0 && float64(n) >= .99*float64(all) {
			return t.Sub(from), true
		}
	}
	return 0, false
}
