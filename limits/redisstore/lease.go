package redisstore

import (
	"sync"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// lease is the block of one balance, and how fast that is used.
type lease struct {
	mu     sync.Mutex
	gone   bool // it is not in the table any more
	asking bool // somebody asks for a block
	paused time.Time

	// The block: what is left of how much, when the store took it by its own clock, and until when it is spent.
	policy      *limits.Policy
	left, block int64
	taken       int64
	until       time.Time
	// What was known of the balance when the block was taken.
	balance limits.Account
	at      time.Time

	// What was wanted since a time, and in a whole span of leaseAhead before.
	since        time.Time
	want, wanted int64
}

// lease returns the lease of a balance, made now if need be, and locked. It is nil if there are too many.
func (l *Leases) lease(c *limits.Charge, now time.Time) *lease {
	name := balanceName{c.Policy.Name(), c.Key}
	for {
		found, ok := l.leases.Load(name)
		if !ok {
			if l.known.Add(1) > int64(l.cfg.MaxKeys) {
				l.known.Add(-1)
				return nil
			}
			if found, ok = l.leases.LoadOrStore(name, &lease{since: now}); ok {
				l.known.Add(-1)
			}
		}
		b := found.(*lease)
		b.mu.Lock()
		if !b.gone {
			return b
		}
		b.mu.Unlock()
	}
}

// plan spends a charge from its block, or decides what to ask the store for.
func (l *Leases) plan(p *plan, c *limits.Charge, now time.Time) {
	b := l.lease(c, now)
	if b == nil {
		return
	}
	defer b.mu.Unlock()
	b.note(c.Cost, now)
	live := now.Before(b.until) && (b.policy == c.Policy || b.policy != nil && b.policy.Rule() == c.Policy.Rule())
	if live && b.left >= c.Cost {
		b.left -= c.Cost
		p.lease, p.spent = b, b.verdict(c, now)
		return
	}
	if b.asking || now.Before(b.paused) {
		return
	}
	m, _ := c.Policy.Meter()
	block := min(max(b.want, b.wanted), m.Capacity/(2*int64(max(l.count(), 1))))
	if block < smallestBlock || block < c.Cost || block > m.Capacity-c.Cost {
		return
	}
	b.asking = true
	p.lease, p.block = b, block
	if live {
		p.have, p.taken = b.left, b.taken
	} else if b.left > 0 { // too late to be spent
		l.owe(b.unspent(c.Key))
	}
	b.left = 0
}

// note counts what is wanted.
func (b *lease) note(cost int64, now time.Time) {
	if d := now.Sub(b.since); d >= leaseAhead {
		b.wanted = 0
		if d < 2*leaseAhead {
			b.wanted = b.want
		}
		b.want, b.since = 0, now
	}
	b.want += min(cost, limits.Exact-b.want)
}

// pause makes nobody ask for a block for a while.
func (b *lease) pause(until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused = until
}

// verdict is that of a charge that has been spent from the block.
func (b *lease) verdict(c *limits.Charge, now time.Time) limits.Verdict {
	d := lookAt(b.balance, now.Sub(b.at), limits.Charge{Policy: b.policy, Key: c.Key})
	v := *d.At(0)
	v.Policy, v.Cost, v.Taken = c.Policy, c.Cost, b.taken
	v.Remaining = min(v.Remaining+b.left, c.Policy.Quota())
	return v
}

// peek is what plan would answer, if the block covers that.
func (b *lease) peek(c *limits.Charge, now time.Time) (limits.Verdict, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < c.Cost || !now.Before(b.until) {
		return limits.Verdict{}, false
	}
	v := b.verdict(c, now)
	v.Taken = limits.NotTaken
	v.Remaining = max(v.Remaining-c.Cost, 0)
	return v, true
}

// unspent is the verdict with which what is left is given back.
func (b *lease) unspent(key string) limits.Verdict {
	return limits.Verdict{Policy: b.policy, Key: key, Cost: b.left, Taken: b.taken}
}

// keepBlock keeps the block that v has brought, and makes v the verdict of the charge alone.
func (l *Leases) keepBlock(p *plan, c *limits.Charge, v *limits.Verdict, source limits.Source, begin time.Time) {
	b := p.lease
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asking = false
	m, _ := c.Policy.Meter()
	switch {
	case p.block == 0:
	case source != limits.FromRedis: // it was not the store that gave it: others know nothing of it
		b.paused = begin.Add(leaseAhead)
		l.oweTo(source, limits.Verdict{Policy: c.Policy, Key: c.Key, Cost: p.block, Taken: v.Taken})
	default:
		b.policy, b.left, b.block, b.taken = c.Policy, p.block, p.block, v.Taken
		b.until, b.at = begin.Add(l.cfg.Lasts), time.Now()
		b.balance = indebted(c.Policy, &m, v.ResetAfter)
		v.Remaining = min(v.Remaining+b.left, c.Policy.Quota())
	}
	if p.have > 0 && source == limits.FromRedis {
		v.Taken = min(v.Taken, p.taken) // the earlier gives back less, if anything
	}
}

// putBack undoes plan: nothing was charged.
func (l *Leases) putBack(p *plan, c *limits.Charge, v *limits.Verdict) {
	b := p.lease
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.at < 0 { // it was spent
		if b.hasRoom(v) {
			b.left += c.Cost
			v.Remaining = min(v.Remaining+c.Cost, c.Policy.Quota())
		} else {
			l.owe(*v)
		}
		v.Taken = limits.NotTaken
		return
	}
	b.asking = false
	b.left += p.have
	v.Remaining = min(v.Remaining+p.have, c.Policy.Quota())
}

// hasRoom reports whether what v has spent came from the block that is there, and can go back into it.
func (b *lease) hasRoom(v *limits.Verdict) bool {
	return !b.gone && !b.asking && b.taken == v.Taken && b.left+v.Cost <= b.block
}
