package limits

import (
	"context"
	"time"
)

// TakeInto is Take for callers that have a place for the Decision, which is large enough for its copies to be felt: it fills in d, which
// must be zero. After an error d says nothing.
func (m *Memory) TakeInto(ctx context.Context, now time.Time, charges []Charge, d *Decision) error {
	return m.take(ctx, now, charges, d)
}

// takeOne is decide for the usual case: one charge, on a balance that is counted by the rule that is asked for, or that is not
// there yet and has room. It reports whether it was that case; if not, nothing has happened. What it does, decide does too,
// in as many steps as several charges need.
//
// Under the lock it does only what needs it: what the verdict says about the charge is written before, and where the balance
// stands is worked out after, when nobody waits for it.
func (m *Memory) takeOne(now time.Time, c *Charge, d *Decision) (done bool) {
	e := m.usual(c)
	if e == nil {
		return false
	}
	v := d.about(c)
	t, h := m.micros(now), m.digest(c.Key)
	h.lo ^= e.mark
	s := m.shardOf(h)
	s.mu.Lock()
	s.examineOwed(t, m)
	held, b := s.table.fetch(h), balance{last: s.floor}
	switch {
	case held != nil && held.edition() == e.index:
		b = held.balance()
	case held != nil || s.count >= s.max || s.overflow != nil:
		s.mu.Unlock()
		*d = Decision{}
		return false
	}
	b, j := e.math.judge(b, t, c.Cost, 0)
	switch {
	case j.reason != Allowed:
	case held != nil:
		held.set(e.index, b)
		s.owing++
	default:
		s.add(filled(h, e.index, b))
		s.dropFull(examinedByNewcomers, t, m)
	}
	s.mu.Unlock()
	v.judged(j)
	if j.reason == Allowed {
		d.Allowed, v.Taken = true, b.last
	}
	v.stands(e.math.look(b, t))
	return true
}

// usual returns the edition of a charge that acts, takes something, and whose balance fits into a slot; nil for others, and
// where the policy was last used with another store.
func (m *Memory) usual(c *Charge) *edition {
	if c.Policy == nil || c.Cost <= 0 || c.Shadow {
		return nil
	}
	if e := c.Policy.home.Load(); e != nil && e.owner == m && e.recorder == nil {
		return e
	}
	return nil
}

// examineOwed examines what the takes that were admitted owe, for several of them together: the slots that come next are seldom
// in the processor's caches. Refusals owe nothing.
func (s *shard) examineOwed(now int64, m *Memory) {
	if s.owing >= s.pause {
		s.examine(now, m)
	}
}

// examine examines the next slots, and waits for twice as many takes next time if none of them was full.
func (s *shard) examine(now int64, m *Memory) {
	before := s.dropped
	s.dropFull(together*examined, now, m)
	s.owing, s.pause = 0, min(2*s.pause, longestPause)
	if s.dropped > before || s.pause == 0 {
		s.pause = together
	}
}
