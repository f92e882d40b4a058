package redisstore

import (
	"context"
	"slices"
	"sync/atomic"
)

// line is those who wait for a call about their balances to come back, in the order in which they came. Many join at once, from
// several processors: each does so with one exchange of one word, where a lock would have them wait for each other's memory.
type line struct {
	shape shape
	n     atomic.Int64
	last  atomic.Pointer[question] // each knows the one before it
}

// closed is the last of a line that nobody can join any more.
var closed = new(question)

// join lets q wait in line, unless the line is closed.
func (l *line) join(ctx context.Context, q *question) bool {
	q.waitFor(ctx)
	for {
		last := l.last.Load()
		if last == closed {
			return false
		}
		q.before = last
		if l.last.CompareAndSwap(last, q) {
			l.n.Add(1)
			return true
		}
	}
}

// close returns who waits, first come first.
func (l *line) close() (all []*question) {
	for q := l.last.Swap(closed); q != nil; {
		all = append(all, q)
		q, q.before = q.before, nil
	}
	slices.Reverse(all)
	return all
}

// behind is about how many wait behind a parcel.
func (p *parcel) behind() int {
	n := len(p.rest)
	if p.line != nil {
		n += int(p.line.n.Load())
	}
	return n
}

// waitFor makes q one that waits, for as long as ctx lasts.
func (q *question) waitFor(ctx context.Context) {
	q.ctx = ctx
	if q.done == nil {
		q.done = make(chan struct{}, 1)
	}
}
