package redisstore

import (
	"context"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// mostReturned is how many balances one call gives back to.
const mostReturned = 128

// owe notes what is to be given back to the store.
func (l *Leases) owe(v limits.Verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owed = append(l.owed, v)
}

// oweTo gives back what somebody else than Redis gave. That is this process's own, so it takes no time.
func (l *Leases) oweTo(source limits.Source, v limits.Verdict) {
	d := limits.Decision{Allowed: true, Source: source}
	d.Append(v)
	_ = l.inner.Refund(context.Background(), time.Time{}, d)
}

// returns gives back what is too old, again and again.
func (l *Leases) returns() {
	defer close(l.stopped)
	every := time.NewTicker(max(l.cfg.Lasts/4, time.Millisecond))
	defer every.Stop()
	for {
		select {
		case <-every.C:
			l.collect(false)
			l.giveBack()
		case <-l.stop:
			return
		}
	}
}

// collect notes what is left of blocks that are over, or of all, and forgets balances that nobody uses.
func (l *Leases) collect(all bool) {
	now := time.Now()
	l.leases.Range(func(name, found any) bool {
		b := found.(*lease)
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.left > 0 && (all || !now.Before(b.until)) {
			l.owe(b.unspent(name.(balanceName).key))
			b.left = 0
		}
		if b.left == 0 && !b.asking && (all || now.Sub(b.since) > longestLease) {
			b.gone = true
			l.leases.Delete(name)
			l.known.Add(-1)
		}
		return true
	})
}

// giveBack gives back what is owed. What fails stays charged: the call may have been carried out.
func (l *Leases) giveBack() {
	l.mu.Lock()
	owed := l.owed
	l.owed = nil
	l.mu.Unlock()
	for len(owed) > 0 {
		n := min(len(owed), mostReturned)
		d := limits.Decision{Allowed: true, Source: limits.FromRedis}
		for _, v := range owed[:n] {
			d.Append(v)
		}
		owed = owed[n:]
		ctx, cancel := context.WithTimeout(context.Background(), lateRefund)
		_ = l.inner.Refund(ctx, time.Time{}, d)
		cancel()
	}
}

// Refund implements limits.Store. What came from a block that is still spent goes back into it.
func (l *Leases) Refund(ctx context.Context, now time.Time, d limits.Decision) error {
	if !d.Allowed || d.Source != limits.FromLease && d.Source != limits.FromRedis {
		return l.inner.Refund(ctx, now, d)
	}
	rest, at := limits.Decision{Allowed: true, Source: limits.FromRedis}, time.Now()
	for i := range d.Len() {
		v := d.At(i)
		if v.Taken == limits.NotTaken || v.Cost == 0 {
			continue
		}
		if v.Policy != nil {
			if b, ok := l.leases.Load(balanceName{v.Policy.Name(), v.Key}); ok && b.(*lease).refund(v, at) {
				continue
			}
		}
		rest.Append(*v)
	}
	if rest.Len() == 0 {
		return nil
	}
	return l.inner.Refund(ctx, now, rest)
}

// refund puts a charge back into the block that it came from, if that is there and has room.
func (b *lease) refund(v *limits.Verdict, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.hasRoom(v) || !now.Before(b.until) {
		return false
	}
	b.left += v.Cost
	return true
}

// Close gives back what was not spent, and closes the store. A closed Leases takes nothing ahead.
func (l *Leases) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	close(l.stop)
	<-l.stopped
	l.collect(true)
	l.giveBack()
	return closeStore(l.inner)
}
