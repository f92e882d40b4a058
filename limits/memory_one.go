package limits

import (
	"context"
	"fmt"
	"time"
)

// takeOne is decide for the usual case: one charge, on a balance that is counted by the rule that is asked for, or that is not
// there yet and has room. It reports whether it was that case; if not, nothing has happened. What it does, decide does too,
// in as many steps as several charges need.
func (m *Memory) takeOne(ctx context.Context, now time.Time, c *Charge, d *Decision) (done bool, err error) {
	if err := ctx.Err(); err != nil {
		return true, fmt.Errorf("limits: nothing taken: %w", err)
	}
	if c.Policy == nil || c.Cost <= 0 || c.Shadow {
		return false, nil
	}
	e := c.Policy.home.Load()
	if e == nil || e.owner != m || e.recorder != nil {
		return false, nil
	}
	t, h := m.micros(now), m.digest(c.Key)
	h.lo ^= e.mark
	s := m.shardOf(h)
	s.mu.Lock()
	v := &d.few[0]
	v.Taken = NotTaken
	switch i := s.table.find(h); {
	case i >= 0 && s.table.slots[i].edition() == e.index:
		e.takeFrom(&s.table.slots[i], t, c.Cost, v)
		s.examineInTurn(t, m)
	case i < 0 && s.count < s.max && s.overflow == nil:
		fresh := filled(h, e.index, balance{last: s.floor})
		if e.takeFrom(&fresh, t, c.Cost, v); v.Reason == Allowed {
			s.table.insert(fresh, s.count)
			s.count++
			s.dropFull(examinedByNewcomers, t, *m.editions.Load())
		}
	default:
		s.mu.Unlock()
		v.Taken = 0 // d is as it was
		return false, nil
	}
	s.mu.Unlock()
	v.Policy, v.Key, v.Cost = c.Policy, c.Key, c.Cost
	d.Allowed, d.n = v.Reason == Allowed, 1
	return true, nil
}

// takeFrom chooses between the two ways to take.
func (e *edition) takeFrom(held *slot, now, cost int64, v *Verdict) {
	if e.meter != nil {
		e.meter.take(held, now, cost, v)
	} else {
		e.take(held, now, cost, v)
	}
}

// take charges cost to the balance in a slot, if it fits, and fills in what the verdict says about that.
func (e *edition) take(held *slot, now, cost int64, v *Verdict) {
	b := held.balance()
	after, j := e.math.judge(b, now, cost, 0)
	v.Reason, v.RetryAfter = j.reason, j.retryAfter
	if j.reason == Allowed {
		b = after
		held.set(e.index, b)
		v.Delay, v.OverSoft, v.Taken = j.delay, j.overSoft, b.last
	}
	o := e.math.look(b, now)
	v.Remaining, v.NextAfter, v.ResetAfter = o.remaining, o.nextAfter, o.resetAfter
}

// take is the same for the commonest rules: judge and look in one, so that time passes for the balance only once.
func (m *Meter) take(held *slot, now, cost int64, v *Verdict) {
	b := balance{owed: held.number(0), last: held.number(1)}
	at := m.clock(b, now)
	owed := m.drained(b, at)
	m.weigh(owed, at, now, cost, v)
	if v.Reason == Allowed {
		owed = m.charge(held, owed, at, cost)
		v.Taken = at
	}
	o := m.outlook(owed, at, now)
	v.Remaining, v.NextAfter, v.ResetAfter = o.remaining, o.nextAfter, o.resetAfter
}

// weigh fills in what the verdict says about a cost on top of what is owed at the balance's own time.
func (m *Meter) weigh(owed, at, now, cost int64, v *Verdict) {
	if cost > m.Capacity {
		v.Reason = CostTooLarge
		return
	}
	switch x := m.counted(owed, cost); {
	case x > m.Bound:
		v.Reason, v.RetryAfter = OverLimit, m.until(x-m.Bound, at, now)
	case x > m.Free:
		v.Delay = m.until(x-m.Free, at, now)
	}
}

// charge adds cost to what is owed, in the slot, and returns the sum.
func (m *Meter) charge(held *slot, owed, at, cost int64) int64 {
	if owed == 0 {
		held.setNumber(2, at)
	}
	owed += cost * m.Unit
	held.setNumber(0, owed)
	held.setNumber(1, at)
	return owed
}

// examineInTurn examines what each take owes, but for several takes together: the slots that come next are seldom in the
// processor's caches.
func (s *shard) examineInTurn(now int64, m *Memory) {
	if s.owing++; s.owing == together {
		s.owing = 0
		s.dropFull(together*examined, now, *m.editions.Load())
	}
}
