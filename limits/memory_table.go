package limits

import "math/bits"

// digest is a keyed hash of a key, 128 bits. Who does not know the seeds cannot look for two keys with one digest, and that
// a million keys have such a pair by chance is less likely than 1 in 10²⁶.
type digest struct{ hi, lo uint64 }

// slot is a place in a table. It holds no pointer, so that the garbage collector need not look at it.
type slot struct {
	hash    digest
	balance balance
	edition uint32 // 0: the slot is empty
}

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

// find returns the slot of h in a key space, or -1.
func (t *table) find(h digest, space uint32, editions []*edition) int {
	if len(t.slots) == 0 {
		return -1
	}
	for i := t.home(h); ; {
		s := &t.slots[i]
		if s.edition == 0 {
			return -1
		}
		if s.hash == h && editions[s.edition].space == space {
			return i
		}
		if i++; i == len(t.slots) {
			i = 0
		}
	}
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
	for t.slots[i].edition != 0 {
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
		if s.edition == 0 {
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
		if old[i].edition != 0 {
			t.put(old[i])
		}
	}
}
