package redisstore

import "slices"

// While a call about some balances is on its way, a second one about the very same may leave as soon as as many wait as the first is
// about, and so many that it pays: otherwise most of a crowd that wants one balance stands still for a round trip.
//
// The two have connections of their own, so that Redis may carry out the second before the first. Who came first is granted first
// all the same: all their rows ask one question, so that grants can change hands, and those that exist go to who came first. That
// takes both answers. What the first was granted is told at once; what it was refused waits for the second's answer, and the
// second's answer for the first's. No third leaves before that is over, so that nobody waits for more than two round trips.

// followers is how many wait before a second call leaves for them: for fewer a call of their own costs more than it saves.
const followers = 32

// pair is what a call has to do with another one about the same balances.
type pair struct {
	away   bool        // it is on its way, and a second may leave beside it
	mixed  bool        // its rows are not one question asked several times
	second *pending    // has left beside it
	first  *pending    // what it has left beside, until that is back
	back   bool        // it is back before its first
	held   []*question // rows of its first that were refused, which may yet get its grants
}

// exchangeable reports whether it makes no difference which of two questions about the same balances gets which answer. In a queue
// it does, for an answer is a place in it.
func (q *question) exchangeable(o *question) bool {
	if q.back != nil || o.back != nil || q.refused != nil || o.refused != nil {
		return false
	}
	for _, r := range q.rules {
		if r.queue {
			return false
		}
	}
	return sameCosts(q, o)
}

// mayFollow reports whether those who are first in line behind a call may leave beside it.
func (b *batcher) mayFollow(p *pending) bool {
	if !p.away || p.mixed || p.second != nil || len(p.held) > 0 || len(p.line) == 0 || len(b.ready) > 0 {
		return false
	}
	next := p.line[0]
	return !next.mixed && len(next.waiters) >= max(followers, len(p.rows)) && p.rows[0].exchangeable(next.waiters[0])
}

// follow sends, under the lock, those who are first in line behind a call beside it.
func (b *batcher) follow(p *pending) {
	p.second = p.line[0]
	p.second.first = p
	p.line = append(p.line[:0], p.line[1:]...)
	b.ready = append(b.ready, p.second)
	b.inFlight++
	b.all.Add(1)
	go b.send(b.next()) // who has just joined has not left yet, so that there is something to send
}

// arrive takes a message in that has come back. If one of its calls has to do with a second, those who are to be told are
// returned, and what comes next has left; whoever tells them calls b.all.Done then. Otherwise all is left to the sender.
func (b *batcher) arrive(message []*pending) (due []*question, paired bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range message {
		p.away = false
		paired = paired || p.second != nil || p.first != nil || len(p.held) > 0
	}
	if !paired {
		return nil, false
	}
	for _, p := range message {
		due = b.settle(p, due)
	}
	b.all.Add(1)
	if next := b.next(); next != nil {
		go b.send(next)
	}
	return due, true
}

// settle adds those to be told now that a call is back.
func (b *batcher) settle(p *pending, due []*question) []*question {
	for _, q := range p.waiters {
		q.err = p.err
	}
	due = slices.Grow(due, len(p.held)+len(p.waiters))
	second := p.second
	switch {
	case p.first != nil:
		p.back = true
		return due
	case second == nil && len(p.held) == 0: // a call like any, whose rows may ask different things
		due = append(due, p.waiters...)
		b.returned(p)
	case second == nil:
		due = append(due, granted(p.held, p.waiters)...)
		b.returned(p)
	case second.back:
		due = append(due, granted(p.waiters, second.waiters)...)
		b.returned(p)
		b.put(second)
	default:
		for _, q := range p.waiters {
			if q.err == nil && !q.d.Allowed {
				second.held = append(second.held, q)
			} else {
				due = append(due, q)
			}
		}
		second.first = nil
		b.end(p)
		second.line = append(second.line, p.line...)
		b.begin(second)
	}
	b.put(p)
	return due
}

// granted returns the rows of two calls, the first's first, with the grants among their answers given to those who came first. Who
// has no answer gets none.
func granted(first, second []*question) []*question {
	all := append(first[:len(first):len(first)], second...)
	refused := 0 // all before it that have an answer are granted
	for i, q := range all {
		if q.err != nil || !q.d.Allowed {
			continue
		}
		for refused < i && (all[refused].err != nil || all[refused].d.Allowed) {
			refused++
		}
		if refused < i {
			q.d, all[refused].d = all[refused].d, q.d
		}
	}
	return all
}
