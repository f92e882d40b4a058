package limits

import "math/bits"

// digest is a keyed hash of a key, 128 bits. Who does not know the seeds cannot look for two keys with one digest, and that
// a million keys have such a pair by chance is less likely than 1 in 10²⁶.
type digest struct{ hi, lo uint64 }

// slot is a place in a table: 40 bytes without a pointer, so that the garbage collector need not look at it.
//
// No number of a balance needs more than 53 bits. The upper 11 of each word hold a part of the edition, which is 0 where
// the slot is empty.
type slot struct {
	hash  digest
	words [3]uint64
}

const (
	numberBits = 53
	numberMask = 1<<numberBits - 1
	partBits   = 64 - numberBits
)

// filled returns a slot that holds b, counted in an edition.
func filled(h digest, edition uint32, b balance) slot {
	s := slot{hash: h}
	s.set(edition, b)
	return s
}

// set puts b, counted in an edition, into the slot.
func (s *slot) set(edition uint32, b balance) {
	e := uint64(edition)
	s.words[0] = e<<numberBits | uint64(b.owed)&numberMask
	s.words[1] = e>>partBits<<numberBits | uint64(b.last)&numberMask
	s.words[2] = e>>(2*partBits)<<numberBits | uint64(b.since)&numberMask
}

// balance returns what set was given.
func (s *slot) balance() balance {
	return balance{owed: s.number(0), last: s.number(1), since: s.number(2)}
}

// last returns the time of the balance alone.
func (s *slot) last() int64 { return s.number(1) }

// number returns one number of the balance alone: owed, last, since.
func (s *slot) number(i int) int64 { return int64(s.words[i] & numberMask) }

// edition returns what set was given.
func (s *slot) edition() uint32 {
	return uint32(s.words[0]>>numberBits | s.words[1]>>numberBits<<partBits | s.words[2]>>numberBits<<(2*partBits))
}

func (s *slot) empty() bool { return (s.words[0]|s.words[1]|s.words[2])>>numberBits == 0 }

// smallest is the length of a table that is not empty.
const smallest = 8

// table is a hash table with linear probing. A key's search starts at its home, a place proportional to lo, so that the
// length can be any number and the table grows by a quarter at a time; it is 64 to 80 % full while it grows. The zero
// value is an empty table.
type table struct {
	slots []slot
}

// home returns where the search for h starts.
func (t *table) home(h digest) int {
	i, _ := bits.Mul64(h.lo, uint64(len(t.slots)))
	return int(i)
}

// find returns the slot of h, or -1.
func (t *table) find(h digest) int {
	if len(t.slots) == 0 {
		return -1
	}
	for i := t.home(h); ; {
		s := &t.slots[i]
		if s.hash == h && !s.empty() {
			return i
		}
		if s.empty() {
			return -1
		}
		if i++; i == len(t.slots) {
			i = 0
		}
	}
}

// slot returns the slot of h, or nil. It is good until the table changes.
func (t *table) slot(h digest) *slot {
	if i := t.find(h); i >= 0 {
		return &t.slots[i]
	}
	return nil
}

// fetch is slot, and lets h change places with the key at its home, so that keys which come often are found at once. The
// other is still found: its search comes by here, and nothing is empty from here to where it goes.
func (t *table) fetch(h digest) *slot {
	if len(t.slots) == 0 {
		return nil
	}
	home := &t.slots[t.home(h)]
	if home.hash == h && !home.empty() {
		return home
	}
	i := t.find(h)
	if i < 0 {
		return nil
	}
	t.slots[i], *home = *home, t.slots[i]
	return home
}

// insert adds a slot that is not there yet to a table of count. Other slots may move.
func (t *table) insert(s slot, count int) {
	if (count+1)*5 > len(t.slots)*4 {
		t.resize(max(smallest, len(t.slots)+len(t.slots)/4, (count+1)*5/4+1))
	}
	t.put(s)
}

// put stores s in the first empty slot from its home.
func (t *table) put(s slot) {
	i := t.home(s.hash)
	for !t.slots[i].empty() {
		if i++; i == len(t.slots) {
			i = 0
		}
	}
	t.slots[i] = s
}

// remove empties slot i and moves those back that were pushed beyond it, so that no search ends early.
func (t *table) remove(i int) {
	n := len(t.slots)
	for j := i; ; {
		if j++; j == n {
			j = 0
		}
		s := &t.slots[j]
		if s.empty() {
			break
		}
		// s may move to i unless its home lies after i on the way to j.
		if home := t.home(s.hash); (j-home+n)%n >= (j-i+n)%n {
			t.slots[i] = *s
			i = j
		}
	}
	t.slots[i] = slot{}
}

// shrink gives memory back once the table of count is less than a fifth full.
func (t *table) shrink(count int) {
	if len(t.slots) > smallest && count*5 < len(t.slots) {
		t.resize(max(smallest, count*2))
	}
}

func (t *table) resize(n int) {
	old := t.slots
	t.slots = make([]slot, n)
	for i := range old {
		if !old[i].empty() {
			t.put(old[i])
		}
	}
}
