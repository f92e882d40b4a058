package limits

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Exact is the largest number a Meter works with: up to 2^53 every integer is exact in a double too, so that a script in
// Redis, whose only number is the double, computes the very same decisions.
const Exact = 1 << 53

// longest bounds the time in which a balance becomes full again, so that sums of a few such times fit a time.Duration.
const longest = 50 * 365 * Day

// Meter is the arithmetic that token bucket, leaky bucket and their turns share: a debt that drains. Charging a cost
// adds to the debt, time takes away from it, and a charge is refused if it would take the debt above a bound. A full
// bucket has no debt, an empty one a debt of its whole capacity.
//
// All is exact in integers. Time goes in ticks; the rate A/P per tick is reduced to lowest terms, and the debt is counted
// in units of 1/P: a cost of c is c·P units, and each tick drains A units. No fraction is ever lost, whatever the rate:
//
//	5/s      A = 1      P = 200,000     ticks of 1 µs
//	10/13s   A = 1      P = 1,300,000
//	10⁹/s    A = 1000   P = 1
//
// The exported fields are what a store needs that does the same arithmetic elsewhere, in a script for instance:
//
//	now   = max(last, now floored to ticks)
//	owed  = max(0, owed - (now - last)·Drain)
//	x     = owed                 if Queue
//	      = owed + cost·Unit     otherwise
//	retry = ceil((x - Bound) / Drain) ticks    if x > Bound: refused
//	delay = ceil((x - Free) / Drain) ticks     if x > Free: its turn
type Meter struct {
	// Tick is the meter's unit of time: 1 µs, or 1 ms where a debt counted for µs could pass Exact.
	Tick time.Duration
	// Drain is how many units of debt a tick takes away, Unit how many a cost of 1 adds.
	Drain, Unit int64
	// Capacity is the highest cost that can ever be charged.
	Capacity int64
	// Free is how much may be owed without waiting, Bound how much at most; only with a Delay do they differ.
	Free, Bound int64
	// Queue says that a charge is judged by what is ahead of it; its own cost does not count.
	Queue bool

	tick int64 // Tick in µs
	most int64 // the highest debt there can be
	top  int64 // the highest Remaining
}

// newMeter compiles a bucket of capacity that drains at rate, with turns unless wait is nil.
func newMeter(capacity int64, rate Rate, wait *turns) (*Meter, error) {
	if capacity < 0 {
		return nil, fmt.Errorf("capacity %d is negative; use 0 to refuse all, or more", capacity)
	}
	if err := rate.check(); err != nil {
		return nil, err
	}
	m, ok := meterIn(time.Microsecond, capacity, rate, wait)
	if !ok {
		m, ok = meterIn(time.Millisecond, capacity, rate, wait)
	}
	if !ok {
		return nil, fmt.Errorf("capacity %d at %v needs numbers above 2^53; lower the capacity or the wait, or round the rate (such as 1000000/day instead of 999983/day)", capacity, rate)
	}
	if ceilDiv(m.most, m.Drain) > int64(longest/m.Tick) {
		return nil, errors.New("would take more than 50 years to be full again; lower the capacity or raise the rate")
	}
	return m, nil
}

// meterIn compiles for one length of tick, and reports whether all its numbers stay within Exact.
func meterIn(tick time.Duration, capacity int64, rate Rate, wait *turns) (*Meter, bool) {
	per := int64(rate.Per / tick)
	g := gcd(rate.Amount, per)
	m := &Meter{Tick: tick, Drain: rate.Amount / g, Unit: per / g, Capacity: capacity, tick: int64(tick / time.Microsecond)}
	full, ok := exactly(capacity, m.Unit)
	if !ok || m.Drain > Exact {
		return nil, false
	}
	m.Free, m.Bound, m.most = full, full, full
	if wait != nil {
		patience, ok := exactly(int64(wait.maxWait/tick), m.Drain)
		switch {
		case wait.queue:
			m.Queue, m.Free = true, 0
			if ok {
				m.Bound = min(full, patience)
			}
			m.most = m.Bound + full
		case !ok:
			return nil, false
		default:
			m.Bound += patience
			m.most = m.Bound
		}
	}
	m.top = min(capacity, m.room(0)/m.Unit)
	return m, m.most <= Exact
}

// judge implements arithmetic.
func (m *Meter) judge(b balance, now, cost, before int64) (balance, judgement) {
	if cost > m.Capacity || before > 0 && m.counted(before*m.Unit, cost) > m.Bound {
		return b, judgement{reason: CostTooLarge} // not even with no debt at all
	}
	at := m.clock(b, now)
	owed := m.drained(b, at)
	since := b.since
	if owed == 0 {
		since = at
	}
	b = balance{owed: owed, last: at, since: since}
	owed += before * m.Unit
	x := m.counted(owed, cost)
	if x > m.Bound {
		return b, judgement{reason: OverLimit, retryAfter: m.until(x-m.Bound, at, now)}
	}
	b.owed = owed + cost*m.Unit
	if x > m.Free {
		return b, judgement{delay: m.until(x-m.Free, at, now)}
	}
	return b, judgement{}
}

// counted is the debt by which a charge of cost is judged when owed is ahead of it.
func (m *Meter) counted(owed, cost int64) int64 {
	if m.Queue {
		return owed
	}
	return owed + cost*m.Unit
}

// look implements arithmetic. Remaining is how many charges of 1 would be accepted one after the other.
func (m *Meter) look(b balance, now int64) outlook {
	at := m.clock(b, now)
	owed := m.drained(b, at)
	if owed == 0 {
		return outlook{remaining: m.top}
	}
	room := m.room(owed)
	o := outlook{remaining: min(max(room, 0)/m.Unit, m.top), resetAfter: m.until(owed, at, now)}
	if o.remaining < m.top {
		o.nextAfter = m.until((o.remaining+1)*m.Unit-room, at, now)
	}
	return o
}

// room is how many units still fit on top of owed, in charges of 1. A queue takes one more, for the last to be accepted is
// the one that has exactly Bound ahead.
func (m *Meter) room(owed int64) int64 {
	if m.Queue {
		return m.Bound - owed + m.Unit
	}
	return m.Bound - owed
}

// refund implements arithmetic. If the spell in which the debt was made is over, time has paid all of it back, and what is
// owed now is somebody else's.
func (m *Meter) refund(b balance, now, cost, taken int64) balance {
	at := m.clock(b, now)
	owed := m.drained(b, at)
	if owed == 0 || taken < b.since {
		return b
	}
	// The product saturates: a rule that changed since may count the same cost in larger units.
	return balance{owed: owed - min(owed, saturating(cost, m.Unit)), last: at, since: b.since}
}

// full implements arithmetic.
func (m *Meter) full(b balance, now int64) bool { return m.drained(b, m.clock(b, now)) == 0 }

// used implements arithmetic.
func (m *Meter) used(b balance, now int64) (used, since int64) {
	return ceilDiv(m.drained(b, m.clock(b, now)), m.Unit), b.since
}

// owing implements arithmetic. The time is rounded up to a tick: rounding down would give back what drains in between.
func (m *Meter) owing(used, now, since int64) balance {
	return balance{owed: min(saturating(used, m.Unit), m.most), last: ceilDiv(now, m.tick) * m.tick, since: since - since%m.tick}
}

func (m *Meter) grain() time.Duration { return m.Tick }

func (m *Meter) quota() int64 { return m.Capacity }

func (m *Meter) window() time.Duration {
	return time.Duration(ceilDiv(m.Capacity*m.Unit, m.Drain)) * m.Tick
}

// clock is the balance's own time at now: floored to a tick, and never running backwards.
func (m *Meter) clock(b balance, now int64) int64 {
	at := max(now, b.last)
	if m.tick > 1 {
		at -= at % m.tick
	}
	return at
}

// drained returns what of b is still owed at a time not before b.last.
func (m *Meter) drained(b balance, at int64) int64 {
	ticks := at - b.last
	if m.tick > 1 {
		ticks /= m.tick
	}
	if ticks <= 0 {
		return b.owed
	}
	hi, lo := bits.Mul64(uint64(ticks), uint64(m.Drain)) // after years of idling the product does not fit 64 bits
	if hi > 0 || lo >= uint64(b.owed) {
		return 0
	}
	return b.owed - int64(lo)
}

// until returns how long after now a debt of units will have drained, counted from the balance's time at, which may be
// ahead of now.
func (m *Meter) until(units, at, now int64) time.Duration {
	return wait(now, at+ceilDiv(units, m.Drain)*m.tick)
}

// wait returns how long after now a time in µs is.
func wait(now, until int64) time.Duration {
	if until-now > int64(math.MaxInt64/time.Microsecond) {
		return math.MaxInt64
	}
	return time.Duration(until-now) * time.Microsecond
}

// exactly returns a·b and whether it is within Exact, for a and b not negative.
func exactly(a, b int64) (int64, bool) {
	p := saturating(a, b)
	return p, p <= Exact
}

// saturating returns a·b, or the largest int64 where that does not fit, for a and b not negative.
func saturating(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// ceilDiv returns a/b rounded up, for a not negative and b positive.
func ceilDiv(a, b int64) int64 {
	if b == 1 { // as most drains are, and a division takes its time
		return a
	}
	q := a / b
	if q*b < a {
		q++
	}
	return q
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
