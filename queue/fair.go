package queue

import "time"

// The priorities that Fair tells apart; others count as the nearest of the two.
const (
	LowestPriority  = -2
	HighestPriority = 1
)

// PromisedTurn is the longest a priority is passed over while somebody of it waits: of any PromisedTurn turns in a row one is
// its own, unless a higher priority that was passed over as long takes it; each of those can delay it by one more turn.
const PromisedTurn = 32

// Fair is the line for overload. It serves, in this order of importance:
//
//   - the higher priority first, except for one turn in PromisedTurn that each lower priority is promised, so that none
//     starves for ever;
//   - within a priority each client in proportion, weighted by cost: a client with 50 times the requests of the others gets
//     what the others leave, and no more;
//   - within a client first come, first served; among clients with the same claim too. While refusals of a priority last
//     (300 ms, with gaps below 200 ms) its newest goes first in both, so that those who are served are served in time, and it
//     has 32 places; one second after the last refusal the old order returns.
//
// A full line makes room for an arrival by displacing the last of the most greedy client, the one with the most waiters, of
// the lowest priority there is, if that one ranks below the arrival: by its priority, or because its client has more waiters
// than the arrival's would have. The last is the newest, or the oldest while the newest goes first. A priority keeps one place
// for the turn it is promised.
//
// Push, Pop, Remove and Ahead take O(log n) steps with n waiters, Expire O(log n) for each who has expired, and a change of
// order O(n). Nothing allocates once the line has grown to what it holds, and each priority has seen a surge. Memory is bounded by the
// capacity: at most one client per waiter is known, and as many again who left in debt; beside them up to 1024 clients for each priority
// who were refused during a surge.
//
// The zero value has no room and refuses everybody; NewFair makes a useful one. A Fair must not be copied. It is for one
// goroutine at a time; the gate's lock sees to that.
type Fair struct {
	tiers    [HighestPriority - LowestPriority + 1]tier // the lowest priority first
	live     int                                        // how many stand in the tiers
	overdue  waiters                                    // who was passed over because its time was up, for Expire
	deadline heap[*Waiter]                              // those in the tiers
	cap      int
}

var _ Line = (*Fair)(nil)

// NewFair returns an empty line in which capacity waiters fit. With a capacity of 0 or less nobody can wait.
func NewFair(capacity int) *Fair {
	f := &Fair{cap: max(capacity, 0)}
	for i := range f.tiers {
		f.tiers[i].init(f.cap)
	}
	f.deadline = heap[*Waiter]{
		place:  func(w *Waiter) *int { return &w.due },
		before: func(a, b *Waiter) bool { return a.Deadline < b.Deadline },
	}
	return f
}

// Ahead estimates how many would be served before w, and tells whether Push would take it. First come, first served, the
// estimate is exact for a client that has nobody in the line and is not in debt; for others it is not too low while all cost
// the same, and too high by less than one turn of each client. Newest first, it foresees nobody who comes later. It never
// foresees who may yet come with a higher priority, nor the promised turns of lower ones.
func (f *Fair) Ahead(now time.Duration, w *Waiter) (n int, ok bool) {
	if w == nil || w.line != nil {
		return f.Len(), false
	}
	mine := tierOf(w.Priority)
	t := &f.tiers[mine]
	own := t.ahead(w, t.surge.lasts(now))
	n = own
	for i := mine + 1; i < len(f.tiers); i++ {
		n += f.tiers[i].len
	}
	n = min(n, PromisedTurn*(own+1)-1-t.passed)
	_, ok = f.room(now, w)
	return n, ok
}

// Push adds w behind its client's others. In a full line somebody who ranks below w has to go, or w is refused.
func (f *Fair) Push(now time.Duration, w *Waiter) (displaced *Waiter, ok bool) {
	if w == nil || w.line != nil {
		return nil, false
	}
	t := &f.tiers[tierOf(w.Priority)]
	t.turnRound(now)
	if displaced, ok = f.room(now, w); !ok {
		t.refused(now, w.Client)
		return nil, false
	}
	if displaced != nil {
		f.take(displaced)
		f.Refused(now, displaced)
	}
	w.line, w.Next = f, nil
	t.push(w)
	f.deadline.push(w)
	f.live++
	return displaced, true
}

// Pop takes out whose turn it is.
func (f *Fair) Pop(now time.Duration) *Waiter { return f.PopFrom(now, LowestPriority) }

// PopFrom is Pop among those of a priority and above, as if nobody else were there.
func (f *Fair) PopFrom(now time.Duration, priority int) *Waiter {
	f.setAside(now)
	next := f.next(tierOf(priority))
	if next == nil {
		return nil
	}
	next.turnRound(now)
	for i := range f.tiers {
		f.tiers[i].passed = min(f.tiers[i].passed+1, PromisedTurn-1)
	}
	next.passed = 0
	w := next.pop()
	f.deadline.remove(w)
	f.live--
	w.line = nil
	return w
}

// next returns the tier whose turn it is, nil if nobody waits: the highest, unless one has been passed over for too long.
// Tiers below lowest are left out.
func (f *Fair) next(lowest int) *tier {
	var highest *tier
	for i := len(f.tiers) - 1; i >= lowest; i-- {
		switch t := &f.tiers[i]; {
		case t.len == 0:
		case t.promised():
			return t
		case highest == nil:
			highest = t
		}
	}
	return highest
}

// Remove takes out w and reports whether it stood in this line.
func (f *Fair) Remove(w *Waiter) bool {
	if w == nil || w.line != Line(f) {
		return false
	}
	if w.flow == nil {
		f.overdue.remove(w)
	} else {
		f.take(w)
	}
	w.line = nil
	return true
}

// Expire takes out everybody whose deadline is at or before now and returns them linked by Next, in any order.
func (f *Fair) Expire(now time.Duration) *Waiter {
	f.setAside(now)
	first := f.overdue.head
	for w := f.overdue.head; w != nil; w = w.Next {
		f.Refused(now, w)
		f.overdue.remove(w)
		w.line, w.Next = nil, f.overdue.head
	}
	return first
}

// Refused notes a refusal: when those of a priority last, its newest goes first.
func (f *Fair) Refused(now time.Duration, w *Waiter) {
	f.tiers[tierOf(w.Priority)].refused(now, w.Client)
}

// Len returns how many wait, those included whose deadline has passed and who have not been expired yet.
func (f *Fair) Len() int { return f.live + f.overdue.len }

// Cap returns how many can wait.
func (f *Fair) Cap() int { return f.cap }

// take takes w out of its tier before its turn.
func (f *Fair) take(w *Waiter) {
	f.tiers[tierOf(w.Priority)].remove(w)
	f.deadline.remove(w)
	f.live--
	w.line = nil
}

// setAside moves those whose time is up out of everybody's way. They still take room, until Expire.
func (f *Fair) setAside(now time.Duration) {
	for f.deadline.len() > 0 && f.deadline.all[0].Deadline <= now {
		w := f.deadline.all[0]
		f.take(w)
		w.line = f
		f.overdue.add(w)
	}
}

// tierOf returns which tier a priority has.
func tierOf(priority int) int {
	return min(max(priority, LowestPriority), HighestPriority) - LowestPriority
}

// room tells whether w may join at now, and who has to go for it.
func (f *Fair) room(now time.Duration, w *Waiter) (displaced *Waiter, ok bool) {
	mine := &f.tiers[tierOf(w.Priority)]
	switch newest := mine.surge.lasts(now); {
	case newest && mine.len >= surgePlaces:
		displaced = mine.behind(w, newest)
	case f.Len() < f.cap:
		return nil, true
	default:
		displaced = f.whoGoes(now, w)
	}
	return displaced, displaced != nil
}

// whoGoes returns who is displaced if w joins the full line, or nil when nobody ranks below it.
func (f *Fair) whoGoes(now time.Duration, w *Waiter) *Waiter {
	mine := tierOf(w.Priority)
	// With nobody there to take the turn that w's priority is promised now, w takes it whoever else waits.
	claims := f.tiers[mine].promised() && f.tiers[mine].len == 0
	for i := range f.tiers {
		t := &f.tiers[i]
		places := t.len
		if t.promised() {
			places-- // one is kept for the promised turn
		}
		switch {
		case places <= 0:
		case i == mine:
			return t.behind(w, t.surge.lasts(now))
		case i < mine || claims:
			return t.last(t.surge.lasts(now))
		default:
			return nil
		}
	}
	return nil
}

// waiters is a list of waiters.
type waiters struct {
	head, tail *Waiter
	len        int
}

func (l *waiters) add(w *Waiter) {
	w.prev, w.next = l.tail, nil
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
	}
	l.tail = w
	l.len++
}

func (l *waiters) remove(w *Waiter) {
	if w.prev == nil {
		l.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	l.len--
}
