package queue

import "time"

// FIFO is the line in which who came first goes first, whoever it is. The zero value has no room and refuses everybody;
// NewFIFO makes a useful one. Push, Pop and Remove take constant time and nothing allocates: the links of the list are in
// the waiters themselves.
//
// It is for one goroutine at a time; the gate's lock sees to that.
type FIFO struct {
	head, tail *Waiter
	len, cap   int
	// soonest is at or before the deadline of everybody in the line, so that Expire, which the gate calls before each
	// arrival, need not look at anybody as long as nobody can have expired. It is exact after a scan and only gets too
	// early when waiters leave, which costs one needless scan.
	soonest time.Duration
}

var _ Line = (*FIFO)(nil)

// NewFIFO returns an empty line in which capacity waiters fit. With a capacity of 0 or less nobody can wait.
func NewFIFO(capacity int) *FIFO {
	return &FIFO{cap: max(capacity, 0)}
}

// Ahead returns how many wait: all of them come before a newcomer. A full line would refuse it.
func (f *FIFO) Ahead(time.Duration, *Waiter) (n int, ok bool) { return f.len, f.len < f.cap }

// Push adds w at the end of the line. A full line refuses w and displaces nobody, for nobody ranks below anybody here.
func (f *FIFO) Push(_ time.Duration, w *Waiter) (displaced *Waiter, ok bool) {
	if w == nil || w.line != nil || f.len >= f.cap {
		return nil, false
	}
	if f.len == 0 || w.Deadline < f.soonest {
		f.soonest = w.Deadline
	}
	w.line, w.prev, w.next, w.Next = f, f.tail, nil, nil
	if f.tail == nil {
		f.head = w
	} else {
		f.tail.next = w
	}
	f.tail = w
	f.len++
	return nil, true
}

// Pop takes out the first waiter whose deadline has not passed. Who stands before it has expired and stays for Expire.
func (f *FIFO) Pop(now time.Duration) *Waiter {
	w := f.head
	for w != nil && w.Deadline <= now {
		w = w.next
	}
	if w != nil {
		f.unlink(w)
	}
	return w
}

// Remove takes out w and reports whether it stood in this line.
func (f *FIFO) Remove(w *Waiter) bool {
	if w == nil || w.line != Line(f) {
		return false
	}
	f.unlink(w)
	return true
}

// Expire takes out everybody whose deadline is at or before now and returns them in order of arrival, linked by Next.
func (f *FIFO) Expire(now time.Duration) *Waiter {
	if f.len == 0 || now < f.soonest {
		return nil
	}
	var first, last *Waiter
	rest := time.Duration(1<<63 - 1)
	for w := f.head; w != nil; {
		following := w.next
		switch {
		case w.Deadline > now:
			rest = min(rest, w.Deadline)
		case last == nil:
			f.unlink(w)
			first, last = w, w
		default:
			f.unlink(w)
			last.Next, last = w, w
		}
		w = following
	}
	f.soonest = rest
	return first
}

// Refused does nothing: who comes first goes first, come what may.
func (f *FIFO) Refused(time.Duration, *Waiter) {}

// Len returns how many wait, those included whose deadline has passed and who have not been expired yet.
func (f *FIFO) Len() int { return f.len }

// Cap returns how many can wait.
func (f *FIFO) Cap() int { return f.cap }

func (f *FIFO) unlink(w *Waiter) {
	if w.prev == nil {
		f.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		f.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.line, w.prev, w.next = nil, nil, nil
	f.len--
}
