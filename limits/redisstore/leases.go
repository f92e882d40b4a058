package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/limits"
)

const (
	// DefaultLease is how long a block is spent at most, if LeaseConfig does not say.
	DefaultLease = 500 * time.Millisecond
	// longestLease bounds it: what is held here nobody else can use.
	longestLease = time.Second
	// leaseAhead is for how long a block lasts at the pace of late, and how long none is asked for after one was refused.
	leaseAhead = 100 * time.Millisecond
	// smallestBlock is below what asking ahead saves nothing.
	smallestBlock = 2
)

// LeaseConfig says how a Leases takes ahead. The zero value is good for one instance, and then for those policies that ask
// for it with limits.SharedByLease.
type LeaseConfig struct {
	// Default is for policies that leave it to the store; the zero value means limits.SharedExactly.
	Default limits.Sharing
	// Instances is how many processes share the quotas: none holds more than the capacity divided by twice as many. 0 means
	// that the store is asked, if it counts them, and otherwise 1.
	Instances int
	// Lasts is how long a block is spent at most, up to a second; what is left then is given back. 0 means DefaultLease.
	Lasts time.Duration
	// MaxKeys bounds for how many balances it is known how fast they are used; the others are asked about each time. 0 means
	// limits.DefaultMaxKeys.
	MaxKeys int
}

// Leases takes quota ahead of need: what many want in one process is taken from its store in blocks, and spent from memory. It
// wraps a store, usually a *Guard or a *Refusals on one, and concerns the policies with limits.SharedByLease whose rule is a
// token bucket or a leaky bucket that refuses; a strict policy never.
//
// A block is what was wanted in the last 100 ms, and at most the capacity divided by twice the number of instances. What is
// wanted less often than twice in that time is not taken ahead. A block is spent for LeaseConfig.Lasts at most, by this
// process's monotonic clock; what is left is given back then, and on Close.
//
// All that is spent was taken before. So nobody admits what the rule does not: over any span
//
//	admitted ≤ capacity + rate × span + instances × block
//
// where the last is what lay in blocks as the span began; of a bucket that was full and had no blocks it is 0. The price is
// that one instance may refuse what lies unused with another, for the length of a lease, and that a block whose holder is killed
// is lost until the bucket has refilled.
//
// Decisions that asked nobody have the source lease. Their verdicts tell of the balance what was known when the block was taken.
// Where other charges of the same decision have to be asked about, the source is that of their decision; if that refuses, what
// was spent here is put back.
type Leases struct {
	inner   limits.Store
	cfg     LeaseConfig
	count   func() int // of instances
	leases  sync.Map   // balanceName → *lease
	known   atomic.Int64
	hits    atomic.Int64
	closed  atomic.Bool
	stop    chan struct{}
	stopped chan struct{}

	mu   sync.Mutex
	owed []limits.Verdict // to be given back by the next round
}

// balanceName identifies a balance: policies come anew under their name.
type balanceName struct{ policy, key string }

var (
	_ limits.Store    = (*Leases)(nil)
	_ limits.Reporter = (*Leases)(nil)
	_ io.Closer       = (*Leases)(nil)
)

// counter is a store that knows how many instances there are.
type counter interface{ instances() int }

func (g *Guard) instances() int { return g.shares.instances() }

func (r *Refusals) instances() int {
	if c, ok := r.inner.(counter); ok {
		return c.instances()
	}
	return 1
}

// NewLeases wraps a store, and starts a goroutine that gives back what was not spent, until Close. The Leases closes the store.
func NewLeases(inner limits.Store, cfg LeaseConfig) (*Leases, error) {
	switch {
	case inner == nil:
		return nil, errors.New("redisstore: there is no store to take blocks from; make one with NewGuard")
	case cfg.Default > limits.SharedAsync:
		return nil, fmt.Errorf("redisstore: LeaseConfig.Default %d does not exist; use limits.SharedExactly or limits.SharedByLease", cfg.Default)
	case cfg.Instances < 0, cfg.Instances > maxInstances:
		return nil, fmt.Errorf("redisstore: LeaseConfig.Instances %d is not between 0 and %d", cfg.Instances, maxInstances)
	case cfg.Lasts < 0, cfg.Lasts > longestLease, cfg.Lasts > 0 && cfg.Lasts < time.Millisecond:
		return nil, fmt.Errorf("redisstore: LeaseConfig.Lasts %v is not between 1ms and %v; use 0 for %v", cfg.Lasts, longestLease, DefaultLease)
	case cfg.MaxKeys < 0:
		return nil, fmt.Errorf("redisstore: LeaseConfig.MaxKeys %d is negative; use 0 for %d", cfg.MaxKeys, limits.DefaultMaxKeys)
	}
	if cfg.Lasts == 0 {
		cfg.Lasts = DefaultLease
	}
	if cfg.MaxKeys == 0 {
		cfg.MaxKeys = limits.DefaultMaxKeys
	}
	l := &Leases{inner: inner, cfg: cfg, stop: make(chan struct{}), stopped: make(chan struct{})}
	c, counts := inner.(counter)
	switch {
	case cfg.Instances > 0:
		l.count = func() int { return cfg.Instances }
	case counts:
		l.count = c.instances
	default:
		l.count = func() int { return 1 }
	}
	go l.returns()
	return l, nil
}

// leasable reports whether the i-th charge may be made from a block.
func (l *Leases) leasable(charges []limits.Charge, i int) bool {
	c := &charges[i]
	if c.Policy == nil || c.Cost <= 0 || c.Shadow {
		return false
	}
	return chosen(c.Policy, limits.SharedByLease, l.cfg.Default) && refuses(c.Policy) && c.Cost <= c.Policy.Quota() && alone(charges, i)
}

// chosen reports whether a policy is shared in a way, by its own choice or by default.
func chosen(p *limits.Policy, way, byDefault limits.Sharing) bool {
	s := p.Sharing()
	return s == way || s == limits.SharedAsTheStore && byDefault == way
}

// refuses reports whether a policy's rule is a debt that drains, and refuses what would be too much.
func refuses(p *limits.Policy) bool {
	m, drains := p.Meter()
	return drains && !m.Queue && m.Bound == m.Free
}

// alone reports whether the i-th charge is the only one against its balance: charges against one balance add up, and that is for
// the store.
func alone(charges []limits.Charge, i int) bool {
	c := &charges[i]
	for j := range charges {
		if j != i && charges[j].Key == c.Key && charges[j].Policy != nil && charges[j].Policy.Name() == c.Policy.Name() {
			return false
		}
	}
	return true
}

// plan is what becomes of one charge.
type plan struct {
	lease *lease
	spent limits.Verdict // what was spent from a block, if anything was
	have  int64          // what is left of a block and is used up with what is asked for
	taken int64          // when that was taken
	block int64          // what is asked for beyond that
	at    int            // where it is among the charges that are asked about; -1 if it is not
}

// Take implements limits.Store.
func (l *Leases) Take(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	concerned := false
	for i := range charges {
		concerned = concerned || l.leasable(charges, i)
	}
	if !concerned || len(charges) > inline || ctx.Err() != nil || l.closed.Load() {
		return l.inner.Take(ctx, now, charges)
	}
	var few [inline]plan
	plans, begin := few[:len(charges)], time.Now()
	var ask []limits.Charge
	for i := range charges {
		p := &plans[i]
		if l.leasable(charges, i) {
			l.plan(p, &charges[i], begin)
		}
		p.at = -1
		if p.spent.Policy == nil {
			p.at = len(ask)
			c := charges[i]
			c.Cost += p.block - p.have
			ask = append(ask, c)
		}
	}
	if len(ask) == 0 {
		d := limits.Decision{Allowed: true, Source: limits.FromLease}
		for i := range plans {
			d.Append(plans[i].spent)
		}
		l.hits.Add(1)
		return d, nil
	}
	d, err := l.inner.Take(ctx, now, ask)
	if err == nil && !d.Allowed && withoutBlocks(plans, ask, &d, begin) {
		d, err = l.inner.Take(ctx, now, ask)
	}
	return l.settle(charges, plans, d, err, begin)
}

// withoutBlocks takes the blocks out of what was asked, if one of them may be why it was refused.
func withoutBlocks(plans []plan, ask []limits.Charge, d *limits.Decision, now time.Time) (again bool) {
	for i := range plans {
		p := &plans[i]
		again = again || p.block > 0 && d.At(p.at).Reason != limits.Allowed
	}
	if !again {
		return false
	}
	for i := range plans {
		if p := &plans[i]; p.block > 0 {
			ask[p.at].Cost -= p.block
			p.block = 0
			p.lease.pause(now.Add(leaseAhead))
		}
	}
	return true
}

// settle keeps the blocks that were taken, or puts back what was not used after all, and answers the charges.
func (l *Leases) settle(charges []limits.Charge, plans []plan, found limits.Decision, err error, begin time.Time) (limits.Decision, error) {
	d := limits.Decision{Allowed: found.Allowed, Source: found.Source}
	for i := range plans {
		p := &plans[i]
		v := p.spent
		if p.at >= 0 && err == nil {
			v = *found.At(p.at)
		}
		if p.lease != nil {
			if err != nil || !found.Allowed {
				l.putBack(p, &charges[i], &v)
			} else if p.at >= 0 {
				l.keepBlock(p, &charges[i], &v, found.Source, begin)
			}
		}
		v.Cost = charges[i].Cost
		d.Append(v)
	}
	if err != nil {
		return found, err
	}
	return d, nil
}

// Peek implements limits.Store. What a block covers is answered from it.
func (l *Leases) Peek(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	if len(charges) == 1 && l.leasable(charges, 0) && ctx.Err() == nil && !l.closed.Load() {
		c := &charges[0]
		if b, ok := l.leases.Load(balanceName{c.Policy.Name(), c.Key}); ok {
			if v, ok := b.(*lease).peek(c, time.Now()); ok {
				d := limits.Decision{Allowed: true, Source: limits.FromLease}
				d.Append(v)
				return d, nil
			}
		}
	}
	return l.inner.Peek(ctx, now, charges)
}

// Report implements limits.Reporter: that of the store, and what was decided without it.
func (l *Leases) Report() limits.Report { return reportWith(l.inner, limits.FromLease, l.hits.Load()) }
