package queue

import "hash/maphash"

// flow is one client within a tier: its waiters, and how far its share has been used up.
type flow struct {
	client         string
	oldest, newest *Waiter
	len            int
	cost           int64 // what its waiters weigh together

	tag   int64  // the virtual time up to which the client has had its share
	since uint64 // when the flow got its place in ready or later; orders equals
	ready bool   // in tier.ready, not in tier.later
	at    int    // its index there

	prev, next *flow // among the flows of the same length
	chain      *flow // the next in the same bucket of the table, or in the list of spare flows
}

// flows is a list of flows, in the order in which they were added.
type flows struct{ head, tail *flow }

func (l *flows) add(f *flow) {
	f.prev, f.next = l.tail, nil
	if l.tail == nil {
		l.head = f
	} else {
		l.tail.next = f
	}
	l.tail = f
}

func (l *flows) remove(f *flow) {
	if f.prev == nil {
		l.head = f.next
	} else {
		f.prev.next = f.next
	}
	if f.next == nil {
		l.tail = f.prev
	} else {
		f.next.prev = f.prev
	}
	f.prev, f.next = nil, nil
}

// clients finds flows by name. Unlike a map it allocates nothing, however many come and go, once it has grown to its largest
// size; the seed keeps crafted names from meeting in one bucket.
type clients struct {
	seed    maphash.Seed
	buckets []*flow // a power of two of them, at least as many as there are flows
	len     int
}

func (c *clients) find(name string) *flow {
	if c.len == 0 {
		return nil
	}
	f := *c.bucket(name)
	for f != nil && f.client != name {
		f = f.chain
	}
	return f
}

// add adds f, whose name is not there yet.
func (c *clients) add(f *flow) {
	if c.len == len(c.buckets) {
		c.grow()
	}
	b := c.bucket(f.client)
	f.chain, *b = *b, f
	c.len++
}

func (c *clients) remove(f *flow) {
	at := c.bucket(f.client)
	for *at != f {
		at = &(*at).chain
	}
	*at, f.chain = f.chain, nil
	c.len--
}

func (c *clients) bucket(name string) **flow {
	return &c.buckets[maphash.String(c.seed, name)&uint64(len(c.buckets)-1)]
}

func (c *clients) grow() {
	old := c.buckets
	if old == nil {
		c.seed = maphash.MakeSeed()
	}
	c.buckets = make([]*flow, max(8, 2*len(old)))
	for _, f := range old {
		for f != nil {
			following, b := f.chain, c.bucket(f.client)
			f.chain, *b = *b, f
			f = following
		}
	}
}
