package redisstore

import (
	"context"
	"runtime"
	"sync"
	"time"
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
	heads  map[place]*parcel // the parcels that are on their way or ready, each the first of those whose shapes begin so
	latest *parcel           // of these the one that somebody joined last
	spare  []*parcel         // to be used again
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
	other   *parcel // of another shape at the same place
}

func newDesk(s *Store, coalesce, pipeline bool) *desk {
	return &desk{store: s, coalesce: coalesce, pipeline: pipeline, heads: make(map[place]*parcel)}
}

// head returns the parcel of a shape that is on its way or ready.
func (d *desk) head(of *shape) *parcel {
	for p := d.heads[of.place()]; p != nil; p = p.other {
		if p.shape == *of {
			return p
		}
	}
	return nil
}

// begin makes p the head of its shape, of which there is none.
func (d *desk) begin(p *parcel) {
	at := p.shape.place()
	p.other = d.heads[at]
	d.heads[at] = p
}

// end is its opposite.
func (d *desk) end(p *parcel) {
	if d.latest == p {
		d.latest = nil
	}
	at := p.shape.place()
	first := d.heads[at]
	switch {
	case first != p:
		for first.other != p {
			first = first.other
		}
		first.other = p.other
	case p.other != nil:
		d.heads[at] = p.other
	default:
		delete(d.heads, at)
	}
	p.other = nil
}

// ask gets q answered, alone or with others.
func (d *desk) ask(ctx context.Context, q *question, take bool) error {
	alike := d.coalesce && take
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return d.store.decideOne(ctx, q, take)
	}
	if last := d.latest; alike && last != nil && last.shape.is(q.charges, q.now) { // what all want is found without a search
		d.join(last, ctx, q)
		d.mu.Unlock()
		return d.wait(ctx, q)
	}
	var of shape
	shaped := false
	if alike {
		of, shaped = shapeOf(q.charges, q.now)
	}
	if shaped {
		if head := d.head(&of); head != nil {
			d.join(head, ctx, q)
			d.mu.Unlock()
			return d.wait(ctx, q)
		}
	}
	p := d.parcel(&of, shaped, take)
	if shaped {
		d.begin(p)
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
	d.put(p)
	if next := d.next(); next != nil {
		go d.fly(next)
	}
	d.mu.Unlock()
	return err
}

// parcel returns an empty one.
func (d *desk) parcel(of *shape, shaped, take bool) *parcel {
	p := new(parcel)
	if n := len(d.spare); n > 0 {
		p, d.spare = d.spare[n-1], d.spare[:n-1]
	}
	p.take, p.shape, p.shaped = take, *of, shaped
	return p
}

// put lets a parcel be used again that has landed and whose questions are answered.
func (d *desk) put(p *parcel) {
	if len(d.spare) >= mostCalls {
		return
	}
	clear(p.waiters)
	clear(p.line)
	*p = parcel{waiters: p.waiters[:0], line: p.line[:0]}
	d.spare = append(d.spare, p)
}

// join puts a decision into the last parcel in line behind head, or into a new one.
func (d *desk) join(head *parcel, ctx context.Context, q *question) {
	d.latest = head
	if n := len(head.line); n == 0 || len(head.line[n-1].waiters) >= mostRows {
		head.line = append(head.line, d.parcel(&head.shape, true, true))
	}
	head.line[len(head.line)-1].add(ctx, q)
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
	if ctx.Done() == nil {
		<-q.done
		return q.err
	}
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
	q.gone = true // a refund goes all the same
	return &gaveUp{sent: q.sent || q.back != nil, err: ctx.Err()}
}

// landed does, under the lock, what follows when a parcel is no longer on its way: the next in line is ready.
func (d *desk) landed(p *parcel) {
	if !p.shaped {
		return
	}
	d.end(p)
	if len(p.line) == 0 {
		return
	}
	next := p.line[0]
	next.line = append(next.line, p.line[1:]...)
	d.begin(next)
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
			if !q.gone || q.back != nil {
				q.sent = true
				kept = append(kept, q)
			}
		}
		p.waiters, p.rows = kept, kept
		if len(kept) == 0 {
			d.landed(p)
			d.put(p)
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
		queries := make([]*query, len(batch))
		for i, p := range batch {
			queries[i] = &p.query
		}
		ctx, cancel := deadline(batch)
		d.store.decideAll(ctx, queries...)
		cancel()
		if d.tell(batch) {
			return
		}
		runtime.Gosched() // who has just got an answer often asks again: let them join
		d.mu.Lock()
		next := d.after(batch)
		d.putAll(batch)
		d.mu.Unlock()
		batch = next
	}
}

// crowd is how many may be told before it is looked at who has come meanwhile.
const crowd = 64

// tell gives those who wait for a batch their answers. When so many have come while it does, that half as many wait again, the
// next batch leaves at once, by itself: tell reports that.
func (d *desk) tell(batch []*parcel) (left bool) {
	all, told := 0, 0
	for _, p := range batch {
		all += len(p.waiters)
	}
	for _, p := range batch {
		for _, q := range p.waiters {
			q.err = p.err
			q.done <- struct{}{} // has room; q is its caller's again
			if told++; told%crowd == 0 && told < all && !left {
				left = d.overtake(batch, all/2)
			}
		}
	}
	if left {
		d.mu.Lock()
		d.putAll(batch)
		d.mu.Unlock()
		d.all.Done()
	}
	return left
}

// overtake lets the next batch leave if enough wait, while those who wait for this one are still being told.
func (d *desk) overtake(batch []*parcel, enough int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	waiting := len(d.ready)
	for _, p := range batch {
		if len(p.line) > 0 {
			waiting += len(p.line[0].waiters)
		}
	}
	if waiting < enough {
		return false
	}
	d.all.Add(1) // for the telling
	if next := d.after(batch); next != nil {
		go d.fly(next)
	}
	return true
}

// after returns, under the lock, what is sent when a batch has come back.
func (d *desk) after(batch []*parcel) []*parcel {
	for _, p := range batch {
		d.landed(p)
	}
	return d.next()
}

func (d *desk) putAll(batch []*parcel) {
	for _, p := range batch {
		d.put(p)
	}
}

// deadline returns a context that lasts as long as the most patient caller waits. No caller's leaving ends it, for others
// wait too.
func deadline(batch []*parcel) (context.Context, context.CancelFunc) {
	var latest time.Time
	for _, p := range batch {
		for _, q := range p.waiters {
			at, ok := q.ctx.Deadline()
			if q.back != nil {
				at, ok = time.Now().Add(lateRefund), true
			}
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
