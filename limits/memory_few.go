package limits

import "time"

// aimed is one of a few charges on its way: the slot of its balance, and what the rule says.
type aimed struct {
	edition *edition
	hash    digest
	shard   int
	slot    *slot
	balance balance // once this decision stands
}

// takeFew is decide for the next most usual case: up to four charges as takeOne takes them, each on a balance of its own
// that is there already. It reports whether it was that case; if not, nothing has happened.
func (m *Memory) takeFew(now time.Time, charges []Charge, d *Decision) (done bool) {
	var few [inline]aimed
	all := few[:len(charges)]
	if !m.aimFew(all, charges) {
		return false
	}
	t := m.micros(now)
	m.lockFew(all)
	if done = m.findFew(all, t); done {
		m.takeFound(all, charges, t, d)
	}
	m.unlockFew(all)
	if !done {
		return false
	}
	for i := range all {
		a, v := &all[i], &d.few[i]
		if d.Allowed {
			v.Taken = a.balance.last
		} else {
			v.Delay, v.OverSoft = 0, false
		}
		v.stands(a.edition.math.look(a.balance, t))
	}
	return true
}

// aimFew finds out where the balances would be. It is false if one of the charges is not of the kind that takeFew is for.
func (m *Memory) aimFew(all []aimed, charges []Charge) bool {
	for i := range charges {
		c, a := &charges[i], &all[i]
		e := m.usual(c)
		if e == nil {
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
func (m *Memory) findFew(all []aimed, now int64) bool {
	for i := range all {
		m.shards[all[i].shard].examineOwed(now, m) // first, for it moves slots
	}
	for i := range all {
		a := &all[i]
		a.slot = m.shards[a.shard].table.slot(a.hash)
		if a.slot == nil || a.slot.edition() != a.edition.index {
			return false
		}
	}
	return true
}

// takeFound judges all charges and makes them if all of them fit.
func (m *Memory) takeFound(all []aimed, charges []Charge, now int64, d *Decision) {
	d.Allowed = true
	for i := range all {
		a, v := &all[i], d.about(&charges[i])
		var j judgement
		a.balance, j = a.edition.math.judge(a.slot.balance(), now, v.Cost, 0)
		v.judged(j)
		d.Allowed = d.Allowed && j.reason == Allowed
	}
	for i := range all {
		a := &all[i]
		if !d.Allowed {
			a.balance = a.slot.balance()
			continue
		}
		a.slot.set(a.edition.index, a.balance)
		m.shards[a.shard].owing++
	}
}
