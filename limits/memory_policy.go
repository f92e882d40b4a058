package limits

import "hash/maphash"

// edition is one rule under one name, as a Memory knows it. A policy that is built anew with another rule becomes a new
// edition of the same key space; each balance notes which edition it is counted in, and is converted when it is next
// written. Editions are few, as policies are configuration, and are never forgotten.
type edition struct {
	owner    *Memory // a policy keeps the Memory alive that it was last used with
	index    uint32  // in Memory.editions
	space    uint32  // the key space: one for each policy name
	mark     uint64  // of the key space, to tell one key's balances apart
	math     arithmetic
	recorder recorder // math, if that is one
}

type editionKey struct {
	name string
	rule Rule
}

// edition returns the edition that p is.
func (m *Memory) edition(p *Policy) *edition {
	if e := p.home.Load(); e != nil && e.owner == m {
		return e
	}
	e := m.learn(p)
	p.home.Store(e)
	return e
}

// learn looks p up by its name and rule, or enters it.
func (m *Memory) learn(p *Policy) *edition {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := editionKey{p.name, p.rule}
	if e := m.known[id]; e != nil {
		return e
	}
	space, ok := m.spaces[p.name]
	if !ok {
		space = uint32(len(m.spaces))
		m.spaces[p.name] = space
	}
	old := *m.editions.Load()
	e := &edition{owner: m, index: uint32(len(old)), space: space, mark: maphash.String(m.seeds[1], p.name), math: p.math}
	e.recorder, _ = p.math.(recorder)
	m.known[id] = e
	all := append(old[:len(old):len(old)], e) // readers keep the old array
	m.editions.Store(&all)
	return e
}

// convert returns b, counted in another edition, as a balance of this edition at now. What was used stays used.
//
// What the old rule has given back by now is full, and may have been dropped as such. Of the rest the old rule holds until
// the balance's own time and the new one from there: a store in which each balance is all there is to know, such as Redis,
// does the same.
func (e *edition) convert(b balance, from *edition, now int64) balance {
	if e == from {
		return b
	}
	if from.math.full(b, now) {
		return e.math.owing(0, b.last, 0)
	}
	if h, ok := e.math.(heir); ok {
		if own, ok := h.inherit(b, from.math); ok {
			return own
		}
	}
	used, since := from.math.used(b, b.last)
	return e.math.owing(used, b.last, since)
}
