package redisstore

import (
	"context"
	"runtime"
	"sync"
	"time"
)

const (
	// mostInFlight is how many messages are on their way at once; what comes meanwhile goes together.
	mostInFlight = 2
	// mostRows is how many decisions one call may be about, and mostCalls how many calls one message may have: a script
	// should not keep others waiting for long.
	mostRows, mostCalls = 1024, 128
)

// batcher sends together what comes together. It has no timer: whoever comes while fewer than mostInFlight messages are on their
// way is sent at once, by itself; what comes while there are so many, or while a call about the very same balances is on its way,
// goes as soon as that has come back, or beside it if it is a crowd: see pair. So nothing waits longer than for what is before it.
type batcher struct {
	store              *Store
	coalesce, pipeline bool

	mu       sync.Mutex
	closed   bool
	inFlight int                // messages on their way
	ready    []*pending         // to be sent when a message has come back, in order
	heads    map[place]*pending // the calls that are on their way or ready, each the first of those whose shapes begin so
	latest   *pending           // of these the one that somebody joined last
	spare    []*pending         // to be used again
	all      sync.WaitGroup
}

// pending is a call on its way through the batcher. Those that wait for it to come back, because they are about the same
// balances, are in line behind it.
type pending struct {
	query
	one     [1]*question // what rows is when there is one
	waiters []*question
	shape   shape
	shaped  bool
	line    []*pending
	other   *pending // of another shape at the same place
	pair
}

func newBatcher(s *Store, coalesce, pipeline bool) *batcher {
	return &batcher{store: s, coalesce: coalesce, pipeline: pipeline, heads: make(map[place]*pending)}
}

// head returns the call of a shape that is on its way or ready.
func (b *batcher) head(of *shape) *pending {
	for p := b.heads[of.place()]; p != nil; p = p.other {
		if p.shape == *of {
			return p
		}
	}
	return nil
}

// begin makes p the head of its shape, of which there is none.
func (b *batcher) begin(p *pending) {
	at := p.shape.place()
	p.other = b.heads[at]
	b.heads[at] = p
}

// end is its opposite.
func (b *batcher) end(p *pending) {
	if b.latest == p {
		b.latest = nil
	}
	at := p.shape.place()
	first := b.heads[at]
	switch {
	case first != p:
		for first.other != p {
			first = first.other
		}
		first.other = p.other
	case p.other != nil:
		b.heads[at] = p.other
	default:
		delete(b.heads, at)
	}
	p.other = nil
}

// ask gets q answered, alone or with others.
func (b *batcher) ask(ctx context.Context, q *question, take bool) error {
	alike := b.coalesce && take
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return b.store.decideOne(ctx, q, take)
	}
	if last := b.latest; alike && last != nil && last.shape.is(q.charges, q.now) { // what all want is found without a search
		b.join(last, ctx, q)
		b.mu.Unlock()
		return b.wait(ctx, q)
	}
	var of shape
	shaped := false
	if alike {
		of, shaped = shapeOf(q.charges, q.now)
	}
	if shaped {
		if head := b.head(&of); head != nil {
			b.join(head, ctx, q)
			b.mu.Unlock()
			return b.wait(ctx, q)
		}
	}
	p := b.fresh(&of, shaped, take)
	if shaped {
		b.begin(p)
	}
	if b.inFlight >= mostInFlight && b.pipeline {
		p.add(ctx, q)
		b.ready = append(b.ready, p)
		b.mu.Unlock()
		return b.wait(ctx, q)
	}
	b.inFlight++
	b.all.Add(1)
	p.rows = append(p.one[:0], q)
	p.away = true
	b.mu.Unlock()
	err := p.decide(ctx, b.store)
	b.mu.Lock()
	if p.second != nil { // q's answer may depend on the second's
		q.sent = true
		p.add(ctx, q)
		b.mu.Unlock()
		due, _ := b.arrive([]*pending{p})
		b.answer(due)
		return b.wait(ctx, q)
	}
	b.returned(p)
	b.put(p)
	if next := b.next(); next != nil {
		go b.send(next)
	}
	b.mu.Unlock()
	return err
}

// fresh returns an empty one.
func (b *batcher) fresh(of *shape, shaped, take bool) *pending {
	p := new(pending)
	if n := len(b.spare); n > 0 {
		p, b.spare = b.spare[n-1], b.spare[:n-1]
	}
	p.take, p.shape, p.shaped = take, *of, shaped
	return p
}

// put lets a call be used again that has come back and whose questions are answered.
func (b *batcher) put(p *pending) {
	if len(b.spare) >= mostCalls {
		return
	}
	clear(p.waiters)
	clear(p.line)
	*p = pending{waiters: p.waiters[:0], line: p.line[:0]}
	b.spare = append(b.spare, p)
}

// join puts a decision into the last call in line behind head, or into a new one.
func (b *batcher) join(head *pending, ctx context.Context, q *question) {
	b.latest = head
	if n := len(head.line); n == 0 || len(head.line[n-1].waiters) >= mostRows {
		head.line = append(head.line, b.fresh(&head.shape, true, true))
	}
	head.line[len(head.line)-1].add(ctx, q)
	if b.mayFollow(head) && (b.inFlight < mostInFlight || !b.pipeline) {
		b.follow(head)
	}
}

func (p *pending) add(ctx context.Context, q *question) {
	q.ctx = ctx
	if q.done == nil {
		q.done = make(chan struct{}, 1)
	}
	p.waiters = append(p.waiters, q)
	p.mixed = p.mixed || !p.waiters[0].exchangeable(q)
}

// wait returns when q is answered or its caller has given up. Who gives up before the call is sent is not charged.
func (b *batcher) wait(ctx context.Context, q *question) error {
	if ctx.Done() == nil {
		<-q.done
		return q.err
	}
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-q.done:
		return q.err
	default:
	}
	q.gone = true // a refund goes all the same
	return &gaveUp{sent: q.sent || q.back != nil, err: ctx.Err()}
}

// returned does, under the lock, what follows when a call is no longer on its way: the next in line is ready.
func (b *batcher) returned(p *pending) {
	if !p.shaped {
		return
	}
	b.end(p)
	if len(p.line) == 0 {
		return
	}
	next := p.line[0]
	next.line = append(next.line, p.line[1:]...)
	b.begin(next)
	b.ready = append(b.ready, next)
}

// next returns, under the lock, what is sent in the place of a message that has come back; if there is nothing the place is given
// up. Decisions whose callers have gone are dropped.
func (b *batcher) next() []*pending {
	var message []*pending
	most := mostCalls
	if !b.pipeline {
		most = 1
	}
	for len(b.ready) > 0 && len(message) < most {
		p := b.ready[0]
		b.ready = b.ready[1:]
		kept := p.waiters[:0]
		for _, q := range p.waiters {
			if !q.gone || q.back != nil {
				q.sent = true
				kept = append(kept, q)
			}
		}
		p.waiters, p.rows = kept, kept
		if len(kept) == 0 {
			b.returned(p)
			b.put(p)
			continue
		}
		p.away = true
		message = append(message, p)
	}
	if len(b.ready) == 0 {
		b.ready = nil
	}
	if message == nil {
		b.inFlight--
		b.all.Done()
	}
	return message
}

// send sends a message, and goes on as long as there are some.
func (b *batcher) send(message []*pending) {
	for message != nil {
		queries := make([]*query, len(message))
		for i, p := range message {
			queries[i] = &p.query
		}
		ctx, cancel := deadline(message)
		b.store.decideAll(ctx, queries...)
		cancel()
		if due, paired := b.arrive(message); paired {
			b.answer(due)
			return
		}
		if b.tell(message) {
			return
		}
		runtime.Gosched() // who has just got an answer often asks again: let them join
		b.mu.Lock()
		next := b.after(message)
		b.putAll(message)
		b.mu.Unlock()
		message = next
	}
}

// answer tells those who are due after a pair.
func (b *batcher) answer(due []*question) {
	for _, q := range due {
		q.done <- struct{}{} // has room; q is its caller's again
	}
	b.all.Done()
}

// crowd is how many may be told before it is looked at who has come meanwhile.
const crowd = 64

// tell gives those who wait for a message their answers. When so many have come while it does, that half as many wait again, the
// next message leaves at once, by itself: tell reports that.
func (b *batcher) tell(message []*pending) (left bool) {
	all, told := 0, 0
	for _, p := range message {
		all += len(p.waiters)
	}
	for _, p := range message {
		for _, q := range p.waiters {
			q.err = p.err
			q.done <- struct{}{} // has room; q is its caller's again
			if told++; told%crowd == 0 && told < all && !left {
				left = b.overtake(message, all/2)
			}
		}
	}
	if left {
		b.mu.Lock()
		b.putAll(message)
		b.mu.Unlock()
		b.all.Done()
	}
	return left
}

// overtake lets the next message leave if enough wait, while those who wait for this one are still being told.
func (b *batcher) overtake(message []*pending, enough int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting := len(b.ready)
	for _, p := range message {
		if len(p.line) > 0 {
			waiting += len(p.line[0].waiters)
		}
	}
	if waiting < enough {
		return false
	}
	b.all.Add(1) // for the telling
	if next := b.after(message); next != nil {
		go b.send(next)
	}
	return true
}

// after returns, under the lock, what is sent when a message has come back.
func (b *batcher) after(message []*pending) []*pending {
	for _, p := range message {
		b.returned(p)
	}
	return b.next()
}

func (b *batcher) putAll(message []*pending) {
	for _, p := range message {
		b.put(p)
	}
}

// deadline returns a context that lasts as long as the most patient caller waits. No caller's leaving ends it, for others
// wait too.
func deadline(message []*pending) (context.Context, context.CancelFunc) {
	var latest time.Time
	for _, p := range message {
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
func (b *batcher) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.all.Wait()
}
