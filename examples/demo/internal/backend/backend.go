package backend

import (
	"sync"
	"time"
)

// Backend is Slots in real time: Work blocks until the work is done. It is safe for concurrent use, has no goroutine of
// its own and needs no end. New makes one.
type Backend struct {
	mu    sync.Mutex
	slots *Slots
}

// New returns an idle backend with n slots.
func New(n int) *Backend {
	return &Backend{slots: NewSlots(n)}
}

// Work queues for a slot, keeps it for service, and returns how long it queued. It takes no context on purpose: what has
// been handed to the pool is done.
func (b *Backend) Work(service time.Duration) (queued time.Duration) {
	now := time.Now()
	b.mu.Lock()
	start, end := b.slots.Book(now, service)
	b.mu.Unlock()
	time.Sleep(time.Until(end))
	return start.Sub(now)
}

// Busy returns how many slots are working now.
func (b *Backend) Busy() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.slots.Busy(time.Now())
}
