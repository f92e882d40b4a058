package shed

import (
	"context"

	"github.com/spillway-go/spillway/limits"
)

// Result says how a request ended, for limits that count only some ends. The zero value is in neither of the two kinds.
type Result uint8

// The results.
const (
	NoResult  Result = iota // the service's own failure, or nobody knows
	Succeeded               // the client got what it asked for
	Failed                  // the client was told that it cannot have that: a wrong password, say
)

// Count says which requests a limit counts in the end. The zero value is CountAll.
type Count uint8

// What can be counted. All requests are charged when they are admitted, so that many at once cannot slip through; those that turn
// out not to count are given back.
const (
	CountAll       Count = iota
	CountSuccesses       // for prizes that can be had so many times
	CountFailures        // for logins: who knows the password is not slowed down, who guesses is
)

// keeps reports whether a request with that result counts.
func (c Count) keeps(r Result) bool {
	switch c {
	case CountSuccesses:
		return r == Succeeded
	case CountFailures:
		return r == Failed
	}
	return true
}

// Free is the Ending.Cost of what costs nothing after all.
const Free = -1

// Ending says what admitted work came to. The zero value says that nothing is known but that it is over: limits that count only
// successes or only failures give it back, all others stay as charged.
type Ending struct {
	// Cost is what the request weighed after all, for limits that count requests; 0 means as charged, Free nothing. What was
	// charged too much is given back. What was charged too little is charged now, as far as it fits.
	Cost int64
	// Amounts are what the request weighed in other units, of those that were charged when it was admitted. A unit that is not
	// listed stays as charged.
	Amounts []Amount
	// Result is how it ended.
	Result Result
}

// Settle brings what the request was charged in line with how it ended. Call it once, before Done; later calls, and permits that
// have ended, change nothing. A turn that a delaying rule gave is used up whatever the work came to. Without Settle all stays
// as charged.
func (p Permit) Settle(end Ending) {
	if p.slot == nil {
		return
	}
	s := p.s
	s.mu.Lock()
	h := &p.slot.held
	if p.slot.generation != p.generation || h.settled {
		s.mu.Unlock()
		return
	}
	h.settled = true
	back, more := h.settle(&end)
	route := h.route
	s.mu.Unlock()
	store := ledger{s.store, route}
	if back.Len() > 0 {
		if err := store.Refund(context.Background(), s.clock.wall(), back); err != nil {
			s.counts.refundErrors.Add(1)
		}
	}
	for _, c := range more {
		store.takeUpTo(s, c)
	}
}

// settle returns what is given back and what is still to be charged.
func (h *held) settle(end *Ending) (back limits.Decision, more []limits.Charge) {
	back.Allowed = true
	for i := range h.charged {
		v := h.charged[i]
		r := h.route.rule(v.Policy)
		if r.Excess == Delay || v.Reason != limits.Allowed {
			continue
		}
		cost := r.weighs(&v, end)
		if cost > v.Cost {
			more = append(more, limits.Charge{Policy: v.Policy, Key: v.Key, Cost: cost - v.Cost, Shadow: v.Shadow})
		} else if cost < v.Cost && v.Taken != limits.NotTaken {
			v.Cost -= cost
			back.Append(v)
		}
	}
	return back, more
}

// weighs returns what a request that was charged v weighs in the end.
func (r *rule) weighs(v *limits.Verdict, end *Ending) int64 {
	cost := v.Cost
	switch {
	case !r.Count.keeps(end.Result):
		return 0
	case !r.countsRequests():
		for _, a := range end.Amounts {
			if a.Unit == r.Unit {
				cost = a.N
			}
		}
	case end.Cost != 0:
		cost = end.Cost
	}
	return max(cost, 0)
}

// takeUpTo charges c, or what is left where that is less: what has been done cannot be refused any more.
func (l *ledger) takeUpTo(s *Shedder, c limits.Charge) {
	for range 2 {
		d, err := l.Take(context.Background(), s.clock.wall(), []limits.Charge{c})
		if err != nil || d.Len() == 0 || d.At(0).Reason == limits.Allowed || d.At(0).Remaining <= 0 {
			return
		}
		c.Cost = min(c.Cost, d.At(0).Remaining)
	}
}
