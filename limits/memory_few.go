package limits

import (
	"context"
	"fmt"
	"time"
)

// aimed is one of a few charges on its way: the slot of its balance, and what the rule says.
type aimed struct {
	edition  *edition
	hash     digest
	shard    int
	slot     *slot
	owed, at int64 // now, before the charge
}

// takeFew is decide for the next most usual case: up to four charges that act, each on a balance of its own that is there
// already, all counted in meters. It reports whether it was that case; if not, nothing has happened.
func (m *Memory) takeFew(ctx context.Context, now time.Time, charges []Charge, d *Decision) (done bool, err error) {
	if err := ctx.Err(); err != nil {
		return true, fmt.Errorf("limits: nothing taken: %w", err)
	}
	var few [inline]aimed
	all := few[:len(charges)]
	if !m.aimFew(all, charges) {
		return false, nil
	}
	t := m.micros(now)
	m.lockFew(all)
	if m.findFew(all) {
		done = true
		takeMeters(all, charges, t, d)
		for i := range all {
			m.shards[all[i].shard].examineInTurn(t, m)
		}
	}
	m.unlockFew(all)
	return done, nil
}

// aimFew finds out where the balances would be. It is false if one of the charges is not of the kind that takeFew is for.
func (m *Memory) aimFew(all []aimed, charges []Charge) bool {
	for i := range charges {
		c, a := &charges[i], &all[i]
		if c.Policy == nil || c.Cost <= 0 || c.Shadow {
			return false
		}
		e := c.Policy.home.Load()
		if e == nil || e.owner != m || e.meter == nil {
			return false
		}
		a.edition = e
		if i > 0 && c.Key == charges[i-1].Key { // usual: one client under several policies
			a.hash = all[i-1].hash
			a.hash.lo ^= all[i-1].edition.mark
		} else {
			a.hash = m.digest(c.Key)
		}
		a.hash.lo ^= e.mark
		a.shard = int(a.hash.hi >> m.shift)
		for j := range i {
			if all[j].hash == a.hash || all[j].edition.space == e.space && all[j].edition != e {
				return false
			}
		}
	}
	return true
}

// lockFew locks the shards, each once and in the order of their index.
func (m *Memory) lockFew(all []aimed) {
	for s := nextOf(all, -1); s >= 0; s = nextOf(all, s) {
		m.shards[s].mu.Lock()
	}
}

func (m *Memory) unlockFew(all []aimed) {
	for s := nextOf(all, -1); s >= 0; s = nextOf(all, s) {
		m.shards[s].mu.Unlock()
	}
}

// nextOf returns the lowest shard above the given one, or -1.
func nextOf(all []aimed, above int) int {
	next := -1
	for i := range all {
		if s := all[i].shard; s > above && (next < 0 || s < next) {
			next = s
		}
	}
	return next
}

// findFew finds the slots. It is false if one of the balances is not there, or counted by another rule.
func (m *Memory) findFew(all []aimed) bool {
	for i := range all {
		a := &all[i]
		t := &m.shards[a.shard].table
		at := t.find(a.hash)
		if at < 0 || t.slots[at].edition() != a.edition.index {
			return false
		}
		a.slot = &t.slots[at]
	}
	return true
}

// takeMeters judges all charges, makes them if all of them fit, and fills in the verdicts.
func takeMeters(all []aimed, charges []Charge, now int64, d *Decision) {
	d.Allowed, d.n = true, len(all)
	for i := range all {
		a, m, v := &all[i], all[i].edition.meter, &d.few[i]
		b := balance{owed: a.slot.number(0), last: a.slot.number(1)}
		a.at = m.clock(b, now)
		a.owed = m.drained(b, a.at)
		m.weigh(a.owed, a.at, now, charges[i].Cost, v)
		d.Allowed = d.Allowed && v.Reason == Allowed
	}
	for i := range all {
		a, m, v, c := &all[i], all[i].edition.meter, &d.few[i], &charges[i]
		v.Policy, v.Key, v.Cost, v.Taken = c.Policy, c.Key, c.Cost, NotTaken
		if d.Allowed {
			a.owed = m.charge(a.slot, a.owed, a.at, c.Cost)
			v.Taken = a.at
		} else {
			v.Delay = 0
		}
		o := m.outlook(a.owed, a.at, now)
		v.Remaining, v.NextAfter, v.ResetAfter = o.remaining, o.nextAfter, o.resetAfter
	}
}
