package main

import (
	"container/heap"
	"sync"
	"time"
)

// backend is a service with a number of slots and a line in front of them that is first come first served and knows nothing
// of clients who have left, as pools of threads and connections are. Instead of moving work between queues it books: work
// that arrives gets the slot that is free first, so the moment of its end is known at once and exact.
type backend struct {
	// bound is how much waiting the backend takes on; whoever would wait longer is refused, as by a full accept queue.
	bound time.Duration

	mu    sync.Mutex
	slots ends // when each slot is free
}

func newBackend(slots int, bound time.Duration) *backend {
	return &backend{bound: bound, slots: make(ends, slots)}
}

// book takes on work that arrives now and needs so long, and returns when it ends; false if the line is too long.
func (b *backend) book(now, service time.Duration) (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	start := max(now, b.slots[0])
	if start-now > b.bound {
		return 0, false
	}
	b.slots[0] = start + service
	heap.Fix(&b.slots, 0)
	return start + service, true
}

// ends is a heap, the earliest first.
type ends []time.Duration

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i] < e[j] }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(time.Duration)) }
func (e *ends) Pop() any          { panic("the number of slots does not change") }
