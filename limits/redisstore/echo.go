package redisstore

import (
	"time"

	"github.com/spillway-go/spillway/limits"
)

// beginning is a time in µs that is a whole number of ticks of every rule: where echoes begin.
const beginning = 1 << 20 * 1000

// echo works out what a verdict of some time ago would be now, had nobody taken anything since: for the charge that it was
// about, or for another cost where the rule is a draining debt. Nothing is taken. It reports whether that is known.
//
// Of a debt a verdict tells when it will be gone, so that it is known to a tick, rounded up: no time that is told is early.
func echo(v *limits.Verdict, since time.Duration, cost int64) (limits.Verdict, bool) {
	if m, drains := v.Policy.Meter(); drains {
		d := lookAt(indebted(v.Policy, &m, v.ResetAfter), since,
			limits.Charge{Policy: v.Policy, Key: v.Key, Cost: cost, Shadow: v.Shadow})
		return *d.At(0), true
	}
	aged := *v
	for _, left := range []*time.Duration{&aged.RetryAfter, &aged.NextAfter, &aged.ResetAfter} {
		switch {
		case *left == 0:
		case *left <= since:
			return aged, false // something has changed, and a verdict does not tell to what
		default:
			*left -= since.Truncate(time.Microsecond)
		}
	}
	return aged, cost == v.Cost
}

// indebted is an account that at the beginning owes what is gone after a time, or a little more. Where that is longer than any
// debt takes, the balance's own time is ahead of everybody's.
func indebted(p *limits.Policy, m *limits.Meter, gone time.Duration) limits.Account {
	most := m.Bound
	if m.Queue {
		most += m.Capacity * m.Unit
	}
	ticks, longest := int64((gone+m.Tick-1)/m.Tick), ceil(most, m.Drain)
	if ticks < longest {
		return p.Account(ticks*m.Drain, beginning, beginning, nil)
	}
	return p.Account(most, beginning+(ticks-longest)*m.Tick.Microseconds(), beginning, nil)
}

// lookAt answers a charge against an account some time after the beginning. Nothing is taken.
func lookAt(a limits.Account, since time.Duration, charge limits.Charge) (d limits.Decision) {
	limits.Decide(beginning+max(since, 0).Microseconds(), []limits.Charge{charge}, []limits.Account{a}, []int{0}, limits.Refuse, &d)
	return d
}
