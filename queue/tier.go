package queue

import "time"

// scale is the virtual time that one unit of cost takes when one client waits alone; it keeps the steps of a million clients
// whole numbers. maxCost bounds what a request can weigh, so that no tag is more than 2^40 ahead of the clock.
const (
	scale   = 1 << 20
	maxCost = 1 << 20
)

// tier is everybody of one priority, fair between clients.
//
// It emulates processor sharing with a virtual clock, as weighted fair queuing does (Demers, Keshav and Shenker 1989): while n
// clients wait, serving cost c moves the clock by c/n, which is what each of them is then due. A client's tag is the clock's
// time up to which it has had its share. A client whose tag the clock has reached is ready; who was served beyond its
// share is later. Ready clients go before later ones (the eligibility rule of WF²Q, Bennett and Zhang 1996), in the order in
// which they became ready, or newest waiter first. When nobody is ready the clock jumps to the smallest tag: no turn is
// wasted.
//
// A client pays after it was served, not before: a request of cost 5 does not wait for five rounds, but its client does
// afterwards. A client that leaves the line in debt is therefore remembered until the clock has reached its tag or nobody
// waits any more, else it would come back as a new one. A client that waits earns nothing but its place, so identities that
// are new each time cannot hold the clock still: nobody's debt lasts longer than its cost × the number of clients.
type tier struct {
	clock int64
	seq   uint64 // numbers arrivals and changes of place

	clients clients
	ready   heap[*flow]
	later   heap[*flow] // by tag; also those who left in debt
	byLen   []flows     // the flows by how many wait; byLen[0] holds those who left in debt, earliest first
	longest int         // the greatest length
	depth   depths      // the waiters by how many of their client stand before them
	spare   *flow       // flows to be used again
	bound   int         // how many debtors are remembered
	debtors int         // how many are
	active  int         // how many flows have waiters
	len     int         // how many wait
	cost    int64       // what they weigh together
	passed  int         // turns since the tier's last that went to other tiers
	surge   surge       // refusals of this priority
	// refusals tells who was refused lately; nil before the first surge.
	refusals *refusals
	newest   bool // newest first: whether a surge lasted when the tier was last looked at
}

func (t *tier) init(bound int) {
	place := func(f *flow) *int { return &f.at }
	t.bound = bound
	t.ready = heap[*flow]{place: place, before: func(a, b *flow) bool {
		if t.newest {
			return a.newest.seq > b.newest.seq
		}
		return a.since < b.since
	}}
	t.later = heap[*flow]{place: place, before: func(a, b *flow) bool {
		if a.tag != b.tag {
			return a.tag-b.tag < 0 // by difference: tags may wrap round
		}
		return a.since < b.since
	}}
}

// weight is the cost of w within bounds.
func weight(w *Waiter) int64 { return min(max(w.Cost, 1), maxCost) }

// push adds w behind the others of its client.
func (t *tier) push(w *Waiter) {
	f := t.clients.find(w.Client)
	known := f != nil
	if !known {
		f = t.newFlow(w.Client)
	}
	t.seq++
	w.seq, w.flow = t.seq, f
	if w.prev = f.newest; w.prev == nil {
		f.oldest = w
	} else {
		w.prev.next = w
	}
	f.newest = w
	t.len++
	t.cost += weight(w)
	f.cost += weight(w)
	t.resize(f, f.len+1)
	switch {
	case !known:
		t.settle(f)
	case f.ready && t.newest:
		t.ready.fix(f)
	}
}

// pop takes out whose turn it is; somebody must be waiting.
func (t *tier) pop() *Waiter {
	for t.ready.len() == 0 { // nobody has a claim: on to the next one's, and past all those who only left a debt
		t.clock = t.later.all[0].tag
		t.mature()
	}
	t.surge.count(&t.surge.turns)
	f := t.ready.all[0]
	w := f.oldest
	if t.newest {
		w = f.newest
	}
	f.tag += weight(w) * scale
	t.clock += ceil(weight(w)*scale, int64(t.active))
	t.ready.remove(f)
	t.unlink(w)
	t.mature() // who becomes ready now goes before who was just served
	if t.len == 0 {
		t.forgetAll(f)
	} else {
		t.settle(f)
	}
	return w
}

// remove takes w out of its turn.
func (t *tier) remove(w *Waiter) {
	f := w.flow
	last := f.newest == w
	t.unlink(w)
	switch {
	case t.len == 0:
		t.detach(f)
		t.forgetAll(f)
	case f.len == 0 && f.ready:
		t.ready.remove(f)
		t.forget(f)
	case f.len == 0: // it leaves in debt, and stays in its place among the later ones
		t.boundDebtors()
	case f.ready && t.newest && last:
		t.ready.fix(f)
	}
}

// refused notes that somebody of this priority was refused, displaced or has expired.
func (t *tier) refused(now time.Duration, client string) {
	t.surge.refused(now)
	t.surge.count(&t.surge.away)
	t.turnRound(now)
	if t.newest {
		if t.refusals == nil {
			t.refusals = new(refusals)
		}
		t.refusals.add(now, client)
	}
}

// turnRound changes the order when a surge has begun or ended.
func (t *tier) turnRound(now time.Duration) {
	if newest := t.surge.lasts(now); newest != t.newest {
		t.newest = newest
		t.ready.reorder()
	}
}

// settle puts f, which is in neither, into ready or later, or forgets it.
func (t *tier) settle(f *flow) {
	t.seq++
	f.since = t.seq
	switch due := f.tag-t.clock <= 0; {
	case due && f.len == 0:
		t.forget(f)
	case due:
		f.ready = true
		t.ready.push(f)
	default:
		f.ready = false
		t.later.push(f)
		if f.len == 0 {
			t.boundDebtors()
		}
	}
}

// detach takes f out of ready or later.
func (t *tier) detach(f *flow) {
	if f.ready {
		t.ready.remove(f)
	} else {
		t.later.remove(f)
	}
}

// mature moves those whose tag the clock has reached to ready, and forgets those of them who have left.
func (t *tier) mature() {
	for t.later.len() > 0 && t.later.all[0].tag-t.clock <= 0 {
		f := t.later.all[0]
		t.later.remove(f)
		t.settle(f)
	}
}

// boundDebtors forgets who left earliest when there are more debtors than may be remembered: its debt is nearest to its end.
func (t *tier) boundDebtors() {
	if t.debtors > t.bound {
		f := t.byLen[0].head
		t.later.remove(f)
		t.forget(f)
	}
}

// forgetAll lets a new time begin once nobody waits: debts are to those who wait. f, the last to leave, is in neither heap.
func (t *tier) forgetAll(f *flow) {
	t.forget(f)
	for t.later.len() > 0 {
		f := t.later.all[t.later.len()-1]
		t.later.remove(f)
		t.forget(f)
	}
}

// unlink takes w out of its flow and leaves the flow where it is.
func (t *tier) unlink(w *Waiter) {
	f := w.flow
	if w.prev == nil {
		f.oldest = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		f.newest = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.flow = nil, nil, nil
	t.len--
	t.cost -= weight(w)
	f.cost -= weight(w)
	t.resize(f, f.len-1)
}

// resize notes that n of the flow wait now, one more or one less than before.
func (t *tier) resize(f *flow, n int) {
	t.count(f, -1)
	t.depth.add(max(n, f.len), n-f.len)
	f.len = n
	t.count(f, 1)
	if n > t.longest {
		t.longest = n
	} else if t.byLen[t.longest].head == nil {
		t.longest = n // it was the longest, and alone
	}
}

// count adds f to the flows of its length, or takes it away.
func (t *tier) count(f *flow, n int) {
	if f.len == 0 {
		t.debtors += n
	} else {
		t.active += n
	}
	if n < 0 {
		t.byLen[f.len].remove(f)
		return
	}
	for f.len >= len(t.byLen) {
		t.byLen = append(t.byLen, flows{})
	}
	t.byLen[f.len].add(f)
}

// newFlow returns an empty flow for a client that is not there yet. Its share counts from now on.
func (t *tier) newFlow(client string) *flow {
	f := t.spare
	if f == nil {
		f = new(flow)
	} else {
		t.spare, f.chain = f.chain, nil
	}
	f.client, f.tag = client, t.clock
	t.clients.add(f)
	t.count(f, 1)
	return f
}

// forget drops f, which has no waiters and is in neither heap.
func (t *tier) forget(f *flow) {
	t.count(f, -1)
	t.clients.remove(f)
	*f = flow{chain: t.spare}
	t.spare = f
}
