package redisstore

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/spillway-go/spillway/limits"
)

const (
	// lanes is how many messages are on their way at once; what comes meanwhile goes together.
	lanes = 2
	// mostRows is how many decisions one call may be about, and mostCalls how many calls one message may have: a script
	// should not keep others waiting for long.
	mostRows, mostCalls = 1024, 128
)

// desk sends together what comes together. It has no timer: whoever comes while there is a free lane is sent at once, by
// itself; what comes while none is free, or while a call about the very same balances is on its way, goes as soon as that
// has come back. So nothing waits longer than for what is before it.
type desk struct {
	store              *Store
	coalesce, pipeline bool

	mu     sync.Mutex
	closed bool
	flying int               // messages on their way
	ready  []*parcel         // to be sent when a lane is free, in order
	heads  map[shape]*parcel // for each shape the parcel that is on its way or ready
	all    sync.WaitGroup
}

// parcel is a call on its way through the desk. Those that wait for it to come back, because they are about the same
// balances, are in line behind it.
type parcel struct {
	query
	one     [1]*question // what rows is when there is one
	waiters []*question
	shape   shape
	shaped  bool
	line    []*parcel
}

func newDesk(s *Store, coalesce, pipeline bool) *desk {
	return &desk{store: s, coalesce: coalesce, pipeline: pipeline, heads: make(map[shape]*parcel)}
}

// shape is what decisions have in common that can be one call: the policies, keys and shadows, in order.
type shape struct {
	policies [inline]*limits.Policy
	keys     [2]string
	second   uint8 // which charges have the second key
	shadows  uint8
	now      string // that the script is told
}

// shapeOf returns the shape of charges, of which there is at least one, unless it has too many charges or keys for one.
func shapeOf(charges []limits.Charge, now string) (s shape, ok bool) {
	if len(charges) > inline {
		return s, false
	}
	s.keys[0], s.now = charges[0].Key, now
	two := false
	for i := range charges {
		c := &charges[i]
		s.policies[i] = c.Policy
		if c.Shadow {
			s.shadows |= 1 << i
		}
		if c.Key == s.keys[0] {
			continue
		}
		if two && c.Key != s.keys[1] {
			return s, false
		}
		two = true
		s.keys[1] = c.Key
		s.second |= 1 << i
	}
	return s, true
}

// take gets q answered, alone or with others.
func (d *desk) take(ctx context.Context, q *question) error {
	var of shape
	shaped := false
	if d.coalesce {
		of, shaped = shapeOf(q.charges, q.now)
	}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		c := query{rows: []*question{q}, take: true}
		return c.decide(ctx, d.store)
	}
	if shaped {
		if head := d.heads[of]; head != nil {
			head.join(ctx, q)
			d.mu.Unlock()
			return d.wait(ctx, q)
		}
	}
	p := &parcel{query: query{take: true}, shape: of, shaped: shaped}
	if shaped {
		d.heads[of] = p
	}
	if d.flying >= lanes && d.pipeline {
		p.add(ctx, q)
		d.ready = append(d.ready, p)
		d.mu.Unlock()
		return d.wait(ctx, q)
	}
	d.flying++
	d.all.Add(1)
	d.mu.Unlock()
	p.rows = append(p.one[:0], q)
	err := p.decide(ctx, d.store)
	d.mu.Lock()
	d.landed(p)
	if next := d.next(); next != nil {
		go d.fly(next)
	}
	d.mu.Unlock()
	return err
}

// join puts a decision into the last parcel in line behind p, or into a new one.
func (p *parcel) join(ctx context.Context, q *question) {
	if n := len(p.line); n == 0 || len(p.line[n-1].waiters) >= mostRows {
		p.line = append(p.line, &parcel{query: query{take: true}, shape: p.shape, shaped: true})
	}
	p.line[len(p.line)-1].add(ctx, q)
}

func (p *parcel) add(ctx context.Context, q *question) {
	q.ctx = ctx
	if q.done == nil {
		q.done = make(chan struct{}, 1)
	}
	p.waiters = append(p.waiters, q)
}

// wait returns when q is answered or its caller has given up. Who gives up before the call is sent is not charged.
func (d *desk) wait(ctx context.Context, q *question) error {
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-q.done:
		return q.err
	default:
	}
	q.gone = true
	return &gaveUp{sent: q.sent, err: ctx.Err()}
}

// landed does, under the lock, what follows when a parcel is no longer on its way: the next in line is ready.
func (d *desk) landed(p *parcel) {
	if !p.shaped {
		return
	}
	if len(p.line) == 0 {
		delete(d.heads, p.shape)
		return
	}
	next := p.line[0]
	next.line = p.line[1:]
	d.heads[p.shape] = next
	d.ready = append(d.ready, next)
}

// next returns, under the lock, what the lane that is free now sends; if there is nothing the lane is given up. Decisions
// whose callers have gone are dropped.
func (d *desk) next() []*parcel {
	var batch []*parcel
	most := mostCalls
	if !d.pipeline {
		most = 1
	}
	for len(d.ready) > 0 && len(batch) < most {
		p := d.ready[0]
		d.ready = d.ready[1:]
		kept := p.waiters[:0]
		for _, q := range p.waiters {
			if !q.gone {
				q.sent = true
				kept = append(kept, q)
			}
		}
		p.waiters, p.rows = kept, kept
		if len(kept) == 0 {
			d.landed(p)
			continue
		}
		batch = append(batch, p)
	}
	if len(d.ready) == 0 {
		d.ready = nil
	}
	if batch == nil {
		d.flying--
		d.all.Done()
	}
	return batch
}

// fly sends parcels, and goes on as long as there are some.
func (d *desk) fly(batch []*parcel) {
	for batch != nil {
		ctx, cancel := deadline(batch)
		errs := d.store.decideAll(ctx, batch)
		cancel()
		for i, p := range batch {
			for _, q := range p.waiters {
				q.err = errs[i]
				q.done <- struct{}{} // has room; q is its caller's again
			}
		}
		runtime.Gosched() // who has just got an answer often asks again: let them join
		d.mu.Lock()
		for _, p := range batch {
			d.landed(p)
		}
		batch = d.next()
		d.mu.Unlock()
	}
}

// deadline returns a context that lasts as long as the most patient caller waits. No caller's leaving ends it, for others
// wait too.
func deadline(batch []*parcel) (context.Context, context.CancelFunc) {
	var latest time.Time
	for _, p := range batch {
		for _, q := range p.waiters {
			at, ok := q.ctx.Deadline()
			if !ok {
				return context.Background(), func() {}
			}
			if at.After(latest) {
				latest = at
			}
		}
	}
	return context.WithDeadline(context.Background(), latest)
}

// close waits for what is on its way, and makes every later decision a call of its own.
func (d *desk) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.all.Wait()
}
