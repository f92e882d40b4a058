package limits

import (
	"fmt"
	"hash/maphash"
	"math"
	"sync"
	"time"
)

const (
	// examined is how many slots each Take owes a look for balances to drop, and examinedByNewcomers how many for each key it
	// adds. As long as keys fill up again a newcomer finds room where others went, and the table does not grow; 8 keeps
	// the share of keys that are full and not yet found low enough for the table to shrink.
	examined            = 1
	examinedByNewcomers = 8
	// together is for how many takes, of the usual kind, a shard examines slots at once while it finds some to drop, and
	// longestPause after how many it examines as many when it finds none.
	together     = 8
	longestPause = 8 * together
	// examinedWhenFull is how many a newcomer examines that finds no room.
	examinedWhenFull = 16
	// grace is for how long a balance must have been full before it is dropped. Times that callers took before
	// waiting for a lock may be that much apart without any of them noticing that something was dropped.
	grace = int64(time.Second / time.Microsecond)
)

// shard is one part of a Memory, with a lock of its own. Lock order: shards by index; Memory.mu is never taken inside.
type shard struct {
	// In the first cache line is what every take needs.

	mu    sync.Mutex
	table table
	count int   // how many keys there are
	hand  int   // the slot to be examined next
	owing int32 // takes since slots were examined last, see examineOwed
	pause int32 // for how many takes it is then
	// floor is the latest time at which a dropped balance is known to have been full. Nobody's time is before it, or
	// a caller that took its now earlier could see a balance full that was not yet.
	floor int64

	// In the second one is the rest, so that neighbours do not share a line.

	max int // how many keys there may be
	// overflow holds what newcomers share when there is no room, by key space; nil until that first happens.
	overflow map[uint32]slot
	// pasts holds what recorders remember; a slot of theirs holds an index into it.
	pasts *pasts

	dropped, overflowed uint64

	_ [24]byte
}

// probe is one charge on its way through the shards.
type probe struct {
	edition *edition
	shard   uint32
	first   int    // index of the first probe on the same balance, which speaks for all of them; often this one
	hash    digest // of the key
	slot    int    // where the balance is in the shard's table; -1 if nowhere
	shared  bool   // the balance is the shared one of the shard's newcomers
	found   balance
	balance balance // found, and all charges
	taken   int64   // what was charged, in cost
}

// aim checks the charges and finds out where their balances would be. A rule and its successor in one Take is an error: they
// would count one balance in two units.
func (m *Memory) aim(probes []probe, charges []Charge) error {
	for i := range charges {
		c := &charges[i]
		if err := c.check(); err != nil {
			return fmt.Errorf("limits: charge %d: %w", i, err)
		}
		p := &probes[i]
		p.edition, p.hash = m.edition(c.Policy), m.digest(c.Key)
		p.hash.lo ^= p.edition.mark
		p.shard = uint32(p.hash.hi >> m.shift)
		for j := range i {
			if q := probes[j].edition; q.space == p.edition.space && q != p.edition {
				return fmt.Errorf("limits: charges %d and %d: one Take cannot hold policy %q with two different rules; use the newer for both", j, i, c.Policy.name)
			}
		}
	}
	return nil
}

func (m *Memory) digest(key string) digest {
	return digest{maphash.String(m.seeds[0], key), maphash.String(m.seeds[1], key)}
}

func (m *Memory) shardOf(h digest) *shard { return &m.shards[h.hi>>m.shift] }

// lock locks the shards of all probes, each once and in the order of their index.
func (m *Memory) lock(probes []probe) {
	for s := nextShard(probes, -1); s >= 0; s = nextShard(probes, s) {
		m.shards[s].mu.Lock()
	}
}

func (m *Memory) unlock(probes []probe) {
	for s := nextShard(probes, -1); s >= 0; s = nextShard(probes, s) {
		m.shards[s].mu.Unlock()
	}
}

// nextShard returns the lowest shard of the probes above the given one, or -1.
func nextShard(probes []probe, above int) int {
	next := math.MaxInt
	for i := range probes {
		if s := int(probes[i].shard); s > above {
			next = min(next, s)
		}
	}
	if next == math.MaxInt {
		return -1
	}
	return next
}

// findLocked fills the probes with what the shards hold, after finding out who has room: a take may drop others for that,
// and dropping moves slots. It is not writing: a full balance and an absent one are the same.
func (m *Memory) findLocked(probes []probe, now int64, take bool) {
	editions := *m.editions.Load()
	for i := range probes {
		p := &probes[i]
		p.first = firstOn(probes, i)
		if s := &m.shards[p.shard]; p.first == i && !s.hasRoom(probes[:i+1]) {
			if take {
				s.dropFull(examinedWhenFull, now, m)
			}
			// Looked at anew, for the balance of an earlier probe may have been dropped, which is then new here too.
			p.shared = !s.hasRoom(probes[:i+1])
		}
		if p.first == i && m.shards[p.shard].staysShared(p) {
			p.shared = true
		}
	}
	for i := range probes {
		if p := &probes[i]; p.first == i {
			m.shards[p.shard].find(p, now, editions)
		}
	}
}

// staysShared reports whether a newcomer that has room has to use the shared balance all the same. What is in flight comes
// down by refunds alone, each where it was raised: a balance of its own that began where the shared one stands would never
// come down again. So newcomers stay with the shared one until nothing is in flight there.
func (s *shard) staysShared(p *probe) bool {
	if _, counts := p.edition.math.(*counter); !counts {
		return false
	}
	held, ok := s.overflow[p.edition.space]
	return ok && held.balance().owed > 0 && s.table.find(p.hash) < 0
}

// firstOn returns the first probe on the balance of the i-th.
func firstOn(probes []probe, i int) int {
	for j := range i {
		if probes[j].hash == probes[i].hash {
			return j
		}
	}
	return i
}

// hasRoom reports whether the last of the probes has a slot, or can get one when the others have got theirs.
func (s *shard) hasRoom(probes []probe) bool {
	if s.count+len(probes) <= s.max {
		return true
	}
	last := &probes[len(probes)-1]
	if s.table.find(last.hash) >= 0 {
		return true
	}
	newcomers := 1
	for i := range probes[:len(probes)-1] {
		p := &probes[i]
		if p.shard == last.shard && p.first == i && !p.shared && s.table.find(p.hash) < 0 {
			newcomers++
		}
	}
	return s.count+newcomers <= s.max
}

// find fills p with the balance that the shard holds for it.
func (s *shard) find(p *probe, now int64, editions []*edition) {
	b := balance{last: s.floor}
	p.slot = -1
	if !p.shared {
		p.slot = s.table.find(p.hash)
	}
	if p.slot >= 0 {
		b = s.load(&s.table.slots[p.slot], p.edition, now, editions)
	} else if held, ok := s.overflow[p.edition.space]; ok {
		// Also for a newcomer that gets room: it may be one of those who used the shared balance.
		b = s.load(&held, p.edition, now, editions)
		b.past = b.past.copied(p.shared)
	}
	p.found, p.balance = b, b
}

// load returns the balance in a slot, counted in edition e.
func (s *shard) load(held *slot, e *edition, now int64, editions []*edition) balance {
	in := held.edition()
	b := held.balance()
	if from := editions[in]; from.recorder != nil {
		b = s.pasts.load(b)
		return e.convert(b, from, now)
	}
	if in == e.index {
		return b
	}
	return e.convert(b, editions[in], now)
}

// store puts the balance that p has come to into a slot that may hold an earlier one of the same key.
func (s *shard) store(held *slot, p *probe, editions []*edition) {
	if p.edition.recorder == nil && !s.remembers(held, editions) {
		held.hash = p.hash
		held.set(p.edition.index, p.balance)
		return
	}
	s.storePast(held, p, editions)
}

// remembers tells whether a slot holds the balance of a recorder.
func (s *shard) remembers(held *slot, editions []*edition) bool {
	return s.pasts != nil && !held.empty() && editions[held.edition()].recorder != nil
}

// writeLocked stores the balances. Those that have a slot come first, because adding one may move others.
func (m *Memory) writeLocked(probes []probe) {
	editions := *m.editions.Load()
	for i := range probes {
		if p := &probes[i]; p.first == i && p.slot >= 0 && p.taken > 0 {
			s := &m.shards[p.shard]
			s.store(&s.table.slots[p.slot], p, editions)
		}
	}
	for i := range probes {
		p := &probes[i]
		if p.first != i || p.slot >= 0 || p.taken == 0 {
			continue
		}
		s := &m.shards[p.shard]
		if !p.shared {
			var fresh slot
			s.store(&fresh, p, editions)
			s.add(fresh)
			continue
		}
		if s.overflow == nil {
			s.overflow = make(map[uint32]slot)
		}
		held := s.overflow[p.edition.space]
		s.store(&held, p, editions)
		s.overflow[p.edition.space] = held
	}
}

// add puts a slot into the table that is not there yet and has room. Others may move.
func (s *shard) add(fresh slot) {
	s.table.insert(fresh, s.count)
	s.count++
}

// tidyLocked does what each take owes its shards: it counts the charges that had to share, and drops a few balances that
// are full. It comes last, for dropping moves slots.
func (m *Memory) tidyLocked(probes []probe, now int64) {
	for i := range probes {
		p := &probes[i]
		s := &m.shards[p.shard]
		if probes[p.first].shared {
			s.overflowed++
		}
		n := examined
		if p.first == i && p.slot < 0 && p.taken > 0 && !p.shared {
			n = examinedByNewcomers
		}
		s.dropFull(n, now, m)
	}
}

// refundLocked gives v's cost back to the balance it was charged to. If that was dropped it is full.
func (s *shard) refundLocked(space uint32, h digest, v *Verdict, now int64, editions []*edition) {
	if v.shared {
		if held, ok := s.overflow[space]; ok {
			s.refundSlot(&held, v, now, editions)
			s.overflow[space] = held
		}
		return
	}
	if i := s.table.find(h); i >= 0 {
		s.refundSlot(&s.table.slots[i], v, now, editions)
	}
}

func (s *shard) refundSlot(held *slot, v *Verdict, now int64, editions []*edition) {
	e := editions[held.edition()]
	b := held.balance()
	if e.recorder == nil {
		held.set(e.index, e.math.refund(b, now, v.Cost, v.Taken))
		return
	}
	s.pasts.refund(b, e.math, v, now)
	held.set(e.index, s.pasts.index(b))
}

// dropFull examines the next n slots and drops balances that have been full for a while.
func (s *shard) dropFull(n int, now int64, m *Memory) {
	editions, full := *m.editions.Load(), now-grace
	for range min(n, len(s.table.slots)) {
		if s.hand >= len(s.table.slots) {
			s.hand = 0
		}
		held := &s.table.slots[s.hand]
		if held.empty() || held.last() > full || !s.isFull(held, full, editions) {
			s.hand++
			continue
		}
		s.release(held, editions)
		s.table.remove(s.hand) // may move another here: the hand stays
		s.count--
		s.dropped++
		s.floor = max(s.floor, full)
	}
	s.table.shrink(s.count)
}

func (s *shard) isFull(held *slot, now int64, editions []*edition) bool {
	e, b := editions[held.edition()], held.balance()
	if e.recorder != nil {
		b = s.pasts.load(b)
	}
	return e.math.full(b, now)
}
