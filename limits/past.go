package limits

// past remembers what was charged when, oldest first, for rules that have to know it: one entry for each time, in a ring
// that grows and shrinks with what is in it. Each entry holds the sum of all that came before, so that finding when so
// much is over, or how much is not, is a binary search.
//
// Sums count on for ever and may wrap around; only differences between them mean anything.
type past struct {
	balance balance // the numbers that other balances keep in the store's slot

	ring   []entry
	head   int    // where in ring the oldest entry is
	count  int    // how many there are
	before uint64 // the sum of all that came before the oldest

	longest int  // how long the ring may become; 0 if there is no bound
	joined  bool // some entries stand for several times
}

// entry is what was charged at one time. The time is in the rule's own unit.
type entry struct {
	at   int64
	upto uint64 // all that was ever charged, this included
}

// smallestRing is the length of a ring that is not empty.
const smallestRing = 4

// only returns a past in which amount was charged at once.
func only(at, amount int64) *past {
	p := new(past)
	if amount > 0 {
		p.push(at, amount)
	}
	return p
}

func (p *past) len() int {
	if p == nil {
		return 0
	}
	return p.count
}

// entry returns the i-th entry, 0 being the oldest.
func (p *past) entry(i int) *entry {
	if i += p.head; i >= len(p.ring) {
		i -= len(p.ring)
	}
	return &p.ring[i]
}

// upto returns the sum of all before the i-th entry.
func (p *past) upto(i int) uint64 {
	if i == 0 {
		return p.before
	}
	return p.entry(i - 1).upto
}

// from returns the first entry that is not before at; it is len() if there is none.
func (p *past) from(at int64) int {
	low, high := 0, p.len()
	for low < high {
		if mid := (low + high) / 2; p.entry(mid).at < at {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// since returns what was charged in the i-th entry and all after it.
func (p *past) since(i int) int64 {
	if p.len() == 0 {
		return 0
	}
	return int64(p.upto(p.count) - p.upto(i))
}

// covering returns the first entry from the i-th on with which the sum of both and all between reaches amount, which is
// above 0 and not more than since(i).
func (p *past) covering(i int, amount int64) *entry {
	base := p.upto(i)
	low, high := i, p.count-1
	for low < high {
		if mid := (low + high) / 2; int64(p.entry(mid).upto-base) < amount {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return p.entry(low)
}

// push adds a charge that is not before any other.
func (p *past) push(at, amount int64) {
	if p.count > 0 {
		if newest := p.entry(p.count - 1); newest.at == at {
			newest.upto += uint64(amount)
			return
		}
	}
	if p.count == len(p.ring) {
		p.makeRoom()
	}
	p.count++
	*p.entry(p.count - 1) = entry{at, p.upto(p.count-1) + uint64(amount)}
}

// makeRoom makes a full ring longer, or its entries fewer where it may not be longer.
func (p *past) makeRoom() {
	if n := max(smallestRing, 2*p.count); n == smallestRing || p.longest == 0 || n <= p.longest {
		p.resize(n)
	} else {
		p.join()
	}
}

// join makes one entry of each two that follow one another, at the time of the later: what the earlier charged comes back
// later than it would, and nothing comes back too early.
func (p *past) join() {
	n := 0
	for i := 0; i < p.count; i += 2 {
		*p.entry(n) = *p.entry(min(i+1, p.count-1))
		n++
	}
	p.count, p.joined = n, true
}

// forget drops the first n entries.
func (p *past) forget(n int) {
	if n == 0 {
		return
	}
	p.before = p.upto(n)
	p.head = (p.head + n) % len(p.ring)
	p.count -= n
	p.shrink()
}

// reduce takes up to amount out of the i-th entry. It visits all that come after it.
func (p *past) reduce(i int, amount int64) {
	amount = min(amount, int64(p.upto(i+1)-p.upto(i)))
	emptied := p.upto(i+1)-p.upto(i) == uint64(amount)
	for j := i; j < p.count; j++ {
		p.entry(j).upto -= uint64(amount)
	}
	if !emptied {
		return
	}
	for j := i; j+1 < p.count; j++ {
		*p.entry(j) = *p.entry(j + 1)
	}
	p.count--
	p.shrink()
}

// shrink gives memory back once the ring is less than a quarter full.
func (p *past) shrink() {
	if len(p.ring) > smallestRing && p.count < len(p.ring)/4 {
		p.resize(max(smallestRing, 2*p.count))
	}
}

func (p *past) resize(n int) {
	ring := make([]entry, n)
	for i := range p.count {
		ring[i] = *p.entry(i)
	}
	p.ring, p.head = ring, 0
}
