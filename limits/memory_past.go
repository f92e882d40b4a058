package limits

import "sync/atomic"

// entriesPerKey is how many entries the logs of a Memory have between them, for each of its MaxKeys, and leastEntries how many
// there are in any Memory: as many as the longest log needs.
const (
	entriesPerKey = 8
	leastEntries  = 2 * longestPast
)

// pasts holds the balances of a shard's recorders, for they do not fit into a slot. The slot of such a balance holds in owed
// where it is.
type pasts struct {
	list []*past
	free []int64       // places in list that are not used
	room *atomic.Int64 // how many more entries the logs of the whole Memory may have
}

// load returns the balance that a slot's own points to.
func (p *pasts) load(in balance) balance {
	held := p.list[in.owed]
	b := held.balance
	b.past = held
	return b
}

// index returns what the slot of the same balance has to hold now.
func (p *pasts) index(in balance) balance {
	return balance{owed: in.owed, last: p.list[in.owed].balance.last}
}

// refund gives v's cost back to the balance that a slot's own points to.
func (p *pasts) refund(in balance, math arithmetic, v *Verdict, now int64) {
	was := len(p.list[in.owed].ring)
	b := math.refund(p.load(in), now, v.Cost, v.Taken)
	held := b.past
	p.room.Add(int64(was - len(held.ring)))
	b.past = nil
	held.balance = b
}

// put keeps a past and returns where.
func (p *pasts) put(held *past) (at int64) {
	if n := len(p.free); n > 0 {
		at, p.free = p.free[n-1], p.free[:n-1]
		p.list[at] = held
		return at
	}
	p.list = append(p.list, held)
	return int64(len(p.list) - 1)
}

// release forgets what a slot that will be emptied points to, if it is a recorder's.
func (s *shard) release(held *slot, editions []*edition) {
	if s.remembers(held, editions) {
		at := held.balance().owed
		s.pasts.room.Add(int64(len(s.pasts.list[at].ring)))
		s.pasts.list[at] = nil
		s.pasts.free = append(s.pasts.free, at)
	}
}

// storePast is store where the slot holds a recorder's balance before or after.
func (s *shard) storePast(held *slot, p *probe, editions []*edition) {
	e, b := p.edition, p.balance
	before := s.remembers(held, editions)
	if e.recorder == nil {
		s.release(held, editions)
		held.hash = p.hash
		held.set(e.index, b)
		return
	}
	if s.pasts == nil {
		s.pasts = &pasts{room: e.owner.room}
	}
	if b.past == nil {
		b.past = new(past)
	}
	own, at, was := b.past, int64(0), 0
	if before {
		at = held.balance().owed
		was = len(s.pasts.list[at].ring)
	}
	own.longest = len(own.ring) + int(max(s.pasts.room.Load(), 0))
	e.recorder.record(b, p.taken)
	s.pasts.room.Add(int64(was - len(own.ring)))
	b.past = nil
	own.balance = b
	if before {
		s.pasts.list[at] = own // another one if the rule has changed
	} else {
		at = s.pasts.put(own)
	}
	held.hash = p.hash
	held.set(e.index, balance{owed: at, last: b.last})
}

// copied returns the past itself where it is to be shared, and a copy where somebody goes on with it alone.
func (p *past) copied(shared bool) *past {
	if shared || p == nil {
		return p
	}
	own := *p
	own.ring = append([]entry(nil), p.ring...)
	return &own
}
