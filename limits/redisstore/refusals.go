package redisstore

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/limits"
)

const (
	// refusalLasts is how long a refusal is believed at most: what was taken elsewhere can be given back there, and then the
	// truth is better than what is remembered.
	refusalLasts = time.Second
	// DefaultMaxRefusals is how many refusals a Refusals remembers that is not told how many.
	DefaultMaxRefusals = 8192
	// refusalShards is how many parts they are kept in, each with a lock of its own, and refundMarks how many counters know
	// whose quota was given back.
	refusalShards, refundMarks = 16, 256
)

// Refusals remembers for a moment what its store has refused, so that a flood of what is over its limit is answered from
// memory. It wraps a store, usually a *Guard.
//
// Others can only take, which makes a refusal last longer, or give back, which makes it end sooner. So a refusal answers
// charges of the same balances that cost as much or more, until the time at which the store would have accepted it and for a
// second at most, and no longer once this process has given something back to one of the keys. What another process gives
// back, and a server that forgets, is noticed within that second. Times that are told stay true: who comes when RetryAfter says
// is not refused for the same reason, if nobody else took anything.
//
// Such answers have the source cache. Peek always asks the store.
type Refusals struct {
	inner  limits.Store
	most   int // for each shard
	seed   maphash.Seed
	shards [refusalShards]refusalShard
	// refunds counts, for the keys of one hash, what was given back.
	refunds [refundMarks]atomic.Uint64
	hits    atomic.Int64
	closed  atomic.Bool

	// clock, if set, is used instead of the process's, for tests that play with time.
	clock func() time.Time
}

// time returns the time by this process's clock.
func (r *Refusals) time() time.Time {
	if r.clock != nil {
		return r.clock()
	}
	return time.Now()
}

type refusalShard struct {
	mu  sync.RWMutex
	all map[shape]*refusal
}

// refusal is a refusal that was answered at a time and holds until another. It is never written to.
type refusal struct {
	d         limits.Decision
	at, until time.Time
	refunds   uint64 // what had been given back before the store was asked
}

var (
	_ limits.Store    = (*Refusals)(nil)
	_ limits.Reporter = (*Refusals)(nil)
	_ io.Closer       = (*Refusals)(nil)
)

// NewRefusals wraps a store. Most bounds how many refusals are remembered, of about a kilobyte each; 0 means
// DefaultMaxRefusals. The Refusals closes the store.
func NewRefusals(inner limits.Store, most int) (*Refusals, error) {
	switch {
	case inner == nil:
		return nil, errors.New("redisstore: there is no store whose refusals could be remembered; make one with NewGuard")
	case most < 0:
		return nil, fmt.Errorf("redisstore: NewRefusals: %d refusals are less than none; use 0 for %d", most, DefaultMaxRefusals)
	case most == 0:
		most = DefaultMaxRefusals
	}
	r := &Refusals{inner: inner, most: (most + refusalShards - 1) / refusalShards, seed: maphash.MakeSeed()}
	for i := range r.shards {
		r.shards[i].all = make(map[shape]*refusal)
	}
	return r, nil
}

// Take implements limits.Store.
func (r *Refusals) Take(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	if len(charges) == 0 || ctx.Err() != nil || r.closed.Load() {
		return r.inner.Take(ctx, now, charges)
	}
	of, ok := shapeOf(charges, "")
	if !ok {
		return r.inner.Take(ctx, now, charges)
	}
	asked, first, second := r.time(), r.hash(of.keys[0]), uint64(0)
	if of.second != 0 {
		second = r.hash(of.keys[1])
	}
	refunds := r.given(first, second, of.second != 0)
	shard := &r.shards[(first^second)/refundMarks%refusalShards]
	shard.mu.RLock()
	known := shard.all[of]
	shard.mu.RUnlock()
	if known != nil && known.refunds == refunds && asked.Before(known.until) {
		if d, ok := known.answer(charges, asked); ok {
			r.hits.Add(1)
			return d, nil
		}
	}
	d, err := r.inner.Take(ctx, now, charges)
	switch {
	case err != nil:
	case d.Allowed && known != nil: // a cheaper one: what is remembered does not know of it
		shard.mu.Lock()
		delete(shard.all, of)
		shard.mu.Unlock()
	case !d.Allowed && d.Source == limits.FromRedis:
		if lasts := holds(charges, &d); lasts > 0 {
			r.keep(shard, of, &refusal{d: d, at: r.time(), until: asked.Add(lasts), refunds: refunds})
		}
	}
	return d, err
}

// holds is how long a refusal can be remembered: until one of those who refuse would not any more.
func holds(charges []limits.Charge, d *limits.Decision) time.Duration {
	lasts := refusalLasts
	for i := range charges {
		for j := range i {
			if charges[i].Policy == charges[j].Policy && charges[i].Key == charges[j].Key {
				return 0 // they add up, and a verdict alone does not tell to what
			}
		}
		if v := d.At(i); v.Reason == limits.OverLimit {
			lasts = min(lasts, v.RetryAfter)
		}
	}
	return lasts
}

// answer is what the store would answer to charges of the same shape, if that is known.
func (f *refusal) answer(charges []limits.Charge, now time.Time) (limits.Decision, bool) {
	d := limits.Decision{Source: limits.FromCache}
	refused := false
	for i := range charges {
		v := f.d.At(i)
		if charges[i].Cost < v.Cost {
			return d, false
		}
		aged, known := echo(v, now.Sub(f.at), charges[i].Cost)
		if !known {
			return d, false
		}
		refused = refused || aged.Reason != limits.Allowed && !aged.Shadow
		d.Append(aged)
	}
	return d, refused
}

// keep remembers a refusal. Where there is no room, what is over goes first, and then anything.
func (r *Refusals) keep(shard *refusalShard, of shape, f *refusal) {
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if _, there := shard.all[of]; !there && len(shard.all) >= r.most {
		for old, g := range shard.all {
			if !f.at.Before(g.until) {
				delete(shard.all, old)
			}
		}
		for old := range shard.all {
			if len(shard.all) < r.most {
				break
			}
			delete(shard.all, old)
		}
	}
	shard.all[of] = f
}

func (r *Refusals) hash(key string) uint64 { return maphash.String(r.seed, key) }

// given counts what was given back to one or two keys (or to others of the same hash, which costs no more than a call).
func (r *Refusals) given(first, second uint64, two bool) uint64 {
	n := r.refunds[first%refundMarks].Load()
	if two {
		n += r.refunds[second%refundMarks].Load()
	}
	return n
}

// Peek implements limits.Store.
func (r *Refusals) Peek(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	return r.inner.Peek(ctx, now, charges)
}

// Refund implements limits.Store. What was refused for the same keys is forgotten.
func (r *Refusals) Refund(ctx context.Context, now time.Time, d limits.Decision) error {
	err := r.inner.Refund(ctx, now, d)
	for i := range d.Len() { // after it, so that nothing found before it can be remembered later
		if v := d.At(i); v.Taken != limits.NotTaken {
			r.refunds[r.hash(v.Key)%refundMarks].Add(1)
		}
	}
	return err
}

// Close forgets everything and closes the store.
func (r *Refusals) Close() error {
	r.closed.Store(true)
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		clear(s.all)
		s.mu.Unlock()
	}
	return closeStore(r.inner)
}

// Report implements limits.Reporter: that of the store, and what was answered without it.
func (r *Refusals) Report() limits.Report {
	return reportWith(r.inner, limits.FromCache, r.hits.Load())
}

// reportWith is the report of a store with decisions that were made in front of it.
func reportWith(inner limits.Store, source limits.Source, n int64) limits.Report {
	report := limits.Report{State: string(Up)}
	if i, ok := inner.(limits.Reporter); ok {
		report = i.Report()
	}
	if report.Decisions == nil {
		report.Decisions = make(map[string]int64)
	}
	if n > 0 {
		report.Decisions[source.String()] += n
	}
	return report
}

// closeStore closes a store that can be closed.
func closeStore(s limits.Store) error {
	if c, ok := s.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
