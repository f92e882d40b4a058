package queue

import "time"

// turns is one line of a Leaky: callers in the order of their turns, and a timer for the first of them. All its methods
// are called with the owner's lock held.
type turns struct {
	owner      *Leaky
	key        Key
	head, tail *parked
	timer      *time.Timer // runs while somebody waits, nil before
	armed      time.Duration
}

// parked is one caller that waits for its turn.
type parked struct {
	due, step  time.Duration
	ready      chan error // receives the outcome once, from release; buffered, so that release never blocks
	released   bool
	prev, next *parked
}

// insert puts p where its turn belongs. It looks from the end: callers mostly arrive in the order in which they were
// charged, and only who overtook somebody between the charge and the call is put back in its place.
func (t *turns) insert(p *parked) {
	before := t.tail
	for before != nil && before.due > p.due {
		before = before.prev
	}
	p.prev = before
	if before == nil {
		p.next, t.head = t.head, p
	} else {
		p.next, before.next = before.next, p
	}
	if p.next == nil {
		t.tail = p
	} else {
		p.next.prev = p
	}
}

// behind returns the first whose turn comes at due or later.
func (t *turns) behind(due time.Duration) *parked {
	p := t.head
	for p != nil && p.due < due {
		p = p.next
	}
	return p
}

// moveUp lets p and all behind it start step sooner, but not before whoever stands before them: the order stays. A turn may
// come to lie in the past; it has come, then.
func (t *turns) moveUp(p *parked, step time.Duration) {
	for ; p != nil; p = p.next {
		earliest := time.Duration(0)
		if p.prev != nil {
			earliest = p.prev.due
		}
		p.due = max(p.due-step, earliest)
	}
}

// arm sets the timer to the first turn. An empty line is dropped, so that a Leaky holds no key on which nobody waits.
func (t *turns) arm(now time.Duration) {
	switch {
	case t.head == nil:
		if t.timer != nil {
			t.timer.Stop()
		}
		delete(t.owner.lines, t.key)
	case t.timer == nil:
		t.armed = t.head.due
		t.timer = time.AfterFunc(t.head.due-now, t.fire)
	case t.armed != t.head.due:
		t.armed = t.head.due
		t.timer.Reset(t.head.due - now)
	}
}

// fire is the timer's function: it lets everybody start whose turn has come. A timer that was stopped or set anew while
// fire was waiting for the lock does no harm, because what counts is the turn and not the call.
func (t *turns) fire() {
	l := t.owner
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for t.head != nil && t.head.due <= now {
		l.counts.Started++
		t.release(t.head, nil)
	}
	if l.lines[t.key] == t { // else the line has been dropped meanwhile, and its key may belong to another
		t.armed = -1 // the timer has fired: it must be set again even for the same moment
		t.arm(now)
	}
}

// release takes p out of the line and hands it its outcome.
func (t *turns) release(p *parked, outcome error) {
	t.unlink(p)
	t.owner.parked--
	p.released = true
	p.ready <- outcome
}

func (t *turns) unlink(p *parked) {
	if p.prev == nil {
		t.head = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		t.tail = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.prev, p.next = nil, nil
}
