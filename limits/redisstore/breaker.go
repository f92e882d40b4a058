package redisstore

import (
	"sync"
	"sync/atomic"
	"time"
)

// When the breaker opens: after so many failures in a row, or when this share of the calls within a window has failed, if
// there were enough of them to tell.
const (
	failuresInARow = 5
	failureWindow  = time.Second
	failureSample  = 20 // calls
	failurePercent = 50
)

// breaker remembers whether a call is worth trying. While nothing fails, a success costs one look at an atomic.
type breaker struct {
	isOpen atomic.Bool
	wary   atomic.Bool // something has failed within the window, so that successes are counted too

	mu     sync.Mutex // guards what follows
	row    int        // failures since the last success
	begin  time.Time  // of the window
	asked  int
	failed int
}

// open reports whether calls are not worth trying.
func (b *breaker) open() bool { return b.isOpen.Load() }

// success notes an answer.
func (b *breaker) success() {
	if !b.wary.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.row = 0
	b.asked++
	if time.Since(b.begin) > failureWindow {
		b.wary.Store(false)
	}
}

// failure notes that there was none, and reports whether that opened the breaker.
func (b *breaker) failure() (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); !b.wary.Load() || now.Sub(b.begin) > failureWindow {
		b.begin, b.asked, b.failed = now, 0, 0
		b.wary.Store(true)
	}
	b.row++
	b.asked++
	b.failed++
	if b.row < failuresInARow && (b.asked < failureSample || b.failed*100 < b.asked*failurePercent) {
		return false
	}
	return b.isOpen.CompareAndSwap(false, true)
}

// trip opens the breaker at once, and reports whether it was closed.
func (b *breaker) trip() bool { return b.isOpen.CompareAndSwap(false, true) }

// close begins anew: what failed before says nothing any more.
func (b *breaker) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.row = 0
	b.wary.Store(false)
	b.isOpen.Store(false)
}
