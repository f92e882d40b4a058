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
	// DefaultMergeEvery is how often a process tells what it has admitted, if AsyncConfig does not say.
	DefaultMergeEvery = 200 * time.Millisecond
	// shortestMerge and longestMerge bound it.
	shortestMerge, longestMerge = 10 * time.Millisecond, time.Second
	// staleAfter is for how many intervals what was heard is believed.
	staleAfter = 3
	// mostTold is how many balances one message is about.
	mostTold = 1024
)

// AsyncConfig says how an Async counts. The zero value is good for policies that ask for it with limits.SharedAsync.
type AsyncConfig struct {
	// Default is for policies that leave it to the store; the zero value means limits.SharedExactly.
	Default limits.Sharing
	// Every is the longest time between two merges, from 10 ms to 1 s; 0 means DefaultMergeEvery. Each pause is a little
	// shorter, at random, so that instances do not all come at once.
	Every time.Duration
	// MaxKeys bounds how many balances are counted here; the others are asked about each time. 0 means limits.DefaultMaxKeys.
	MaxKeys int
}

// Async decides in this process, at once, by what it last heard of a balance and what it has admitted since, and tells its store
// afterwards: a goroutine merges all counts several times a second, with one message, and hears what all others have admitted. It
// wraps a store, usually a *Guard or another wrapper on one, and concerns the policies with limits.SharedAsync whose rule is a token
// bucket or a leaky bucket that refuses, and takes no less than Every to be full again; a strict policy never.
//
// Between two merges an instance may take all that was left when it last heard, and of what the rate brings since then its own
// part, one n-th of it for n instances: what the others do not take of theirs is there for everybody after the next merge. What
// was admitted counts in Redis whether it fitted or not, so that what was too much is paid back before anything else passes, and
// over a long time the rate is exact.
//
// # How much it can be
//
// For n instances and merges every E, over any span T that begins with a full balance,
//
//	admitted ≤ capacity + rate × T + n × (capacity + 2 × rate × E)
//
// where the last term is what n instances can admit that have not heard of each other; it comes once and not again and again, for it
// is owed. It is large where a balance that was hardly used is suddenly wanted everywhere at once, and near n × rate × E
// while more is wanted than there is. If merges are late, E is their distance, and never more than 3 × Every, for after that
// what was heard is not believed any more. A merge whose answer is lost is not sent again (it may have been carried out), and then
// what one instance admitted in one interval may be missing, once for each.
//
// Under a load that takes all it gets at every instance, what is admitted is no less than capacity + rate × T − rate × E − n, less
// what was too much before.
//
// # When there is nothing to go by
//
// A balance that has not been heard of for 3 × Every is asked about, each time, as if it were shared exactly: at its first use, after a
// pause, and while Redis does not answer. So in an outage an instance goes on for that long, and then does what the policy's
// OnFailure says: of a Guard that is local, one n-th of the quota, from balances that know what was admitted here. What could not
// be merged is kept and merged later, unless it would have drained by then.
//
// Decisions that asked nobody have the source async. Their verdicts tell what is left here. RetryAfter is true, and may be
// longer than need be: up to n times, and up to 5 × Every where that is less.
type Async struct {
	inner   limits.Store
	merger  merger
	cfg     AsyncConfig
	views   sync.Map // balanceName → *view
	known   atomic.Int64
	hits    atomic.Int64
	merges  [2]atomic.Int64 // that worked, and that did not
	heard   atomic.Int64    // when the last worked, in ns since the Unix epoch
	closed  atomic.Bool
	stop    context.CancelFunc
	base    context.Context
	stopped chan struct{}
}

var (
	_ limits.Store    = (*Async)(nil)
	_ limits.Reporter = (*Async)(nil)
	_ io.Closer       = (*Async)(nil)
)

// NewAsync wraps a store that ends in a *Store, and starts the goroutine that merges, until Close. The Async closes the store.
func NewAsync(inner limits.Store, cfg AsyncConfig) (*Async, error) {
	switch {
	case inner == nil:
		return nil, errors.New("redisstore: there is no store to merge counts in; make one with NewGuard")
	case mergerOf(inner) == nil:
		return nil, fmt.Errorf("redisstore: NewAsync: counts cannot be merged in a %T; wrap a Guard on a Store, or what wraps one", inner)
	case cfg.Default > limits.SharedAsync:
		return nil, fmt.Errorf("redisstore: AsyncConfig.Default %d does not exist; use limits.SharedExactly or limits.SharedAsync", cfg.Default)
	case cfg.Every != 0 && (cfg.Every < shortestMerge || cfg.Every > longestMerge):
		return nil, fmt.Errorf("redisstore: AsyncConfig.Every %v is not between %v and %v; use 0 for %v", cfg.Every, shortestMerge, longestMerge, DefaultMergeEvery)
	case cfg.MaxKeys < 0:
		return nil, fmt.Errorf("redisstore: AsyncConfig.MaxKeys %d is negative; use 0 for %d", cfg.MaxKeys, limits.DefaultMaxKeys)
	}
	if cfg.Every == 0 {
		cfg.Every = DefaultMergeEvery
	}
	if cfg.MaxKeys == 0 {
		cfg.MaxKeys = limits.DefaultMaxKeys
	}
	a := &Async{inner: inner, merger: mergerOf(inner), cfg: cfg, stopped: make(chan struct{})}
	a.base, a.stop = context.WithCancel(context.Background())
	a.heard.Store(time.Now().UnixNano())
	go a.run()
	return a, nil
}

// concerns reports whether the i-th charge may be decided here.
func (a *Async) concerns(charges []limits.Charge, i int) bool {
	c := &charges[i]
	return c.Policy != nil && c.Cost >= 0 && !c.Shadow && chosen(c.Policy, limits.SharedAsync, a.cfg.Default) &&
		refuses(c.Policy) && c.Policy.Window() >= a.cfg.Every && alone(charges, i)
}

// here is what this process says about one charge.
type here struct {
	view *view          // nil if the charge is for the store
	soon bool           // it may be for this process the next time
	v    limits.Verdict // what was decided, if policy is set
	at   int            // where it is among the charges for the store
}

// Take implements limits.Store.
func (a *Async) Take(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	return a.decide(ctx, now, charges, limits.Take)
}

// Peek implements limits.Store.
func (a *Async) Peek(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	return a.decide(ctx, now, charges, limits.Look)
}

func (a *Async) decide(ctx context.Context, now time.Time, charges []limits.Charge, effect limits.Effect) (limits.Decision, error) {
	ask := a.inner.Take
	if effect != limits.Take {
		ask = a.inner.Peek
	}
	concerned := false
	for i := range charges {
		concerned = concerned || a.concerns(charges, i)
	}
	if !concerned || len(charges) > inline || ctx.Err() != nil || a.closed.Load() {
		return ask(ctx, now, charges)
	}
	var few [inline]here
	all, begin, fits := few[:len(charges)], time.Now(), true
	var rest []limits.Charge
	for i := range charges {
		h := &all[i]
		if a.concerns(charges, i) {
			if h.view = a.use(&charges[i], begin); h.view != nil && h.view.decide(&charges[i], begin, effect, a.cfg.Every, &h.v) {
				fits = fits && h.v.Reason == limits.Allowed
				continue
			}
			h.soon, h.view = h.view != nil, nil
		}
		h.at, rest = len(rest), append(rest, charges[i])
	}
	d := limits.Decision{Allowed: fits, Source: limits.FromAsync}
	var found limits.Decision
	if len(rest) > 0 {
		var err error
		if !fits { // it is refused already, but how the others stand belongs to the answer
			found, err = a.inner.Peek(ctx, now, append(rest, limits.Charge{Policy: never, Key: rest[0].Key, Cost: 1}))
		} else {
			found, err = ask(ctx, now, rest)
		}
		if err != nil {
			a.undo(all, charges)
			return found, err
		}
		if fits {
			d.Allowed, d.Source = found.Allowed, found.Source
		}
	}
	if !d.Allowed {
		a.undo(all, charges)
	}
	for i := range all {
		h := &all[i]
		if h.view == nil {
			h.v = *found.At(h.at)
			if h.soon {
				stretch(&h.v, int64(a.instances()), a.cfg.Every)
			}
		}
		d.Append(h.v)
	}
	if len(rest) == 0 {
		a.hits.Add(1)
	}
	return d, nil
}

// never refuses everything, so that what is asked with it is not taken. It is open so that nobody else is refused for it.
var never = func() *limits.Policy {
	p, err := limits.NewPolicy("~never", limits.TokenBucket{Refill: limits.PerSecond(1)}, limits.WhenStoreFails(limits.Open))
	if err != nil {
		panic(err) // it is fixed
	}
	return p
}()

// undo takes back what was taken here, and makes the verdicts those of a refusal.
func (a *Async) undo(all []here, charges []limits.Charge) {
	for i := range all {
		h := &all[i]
		if h.view == nil || h.v.Reason != limits.Allowed {
			continue
		}
		if h.v.Taken != limits.NotTaken && !h.view.cancel(&h.v, time.Now()) {
			a.giveBack(h.v)
		}
		h.view.decide(&charges[i], time.Now(), limits.Refuse, a.cfg.Every, &h.v)
		h.v.Taken = limits.NotTaken
	}
}

// giveBack gives back what has been merged already.
func (a *Async) giveBack(v limits.Verdict) {
	d := limits.Decision{Allowed: true, Source: limits.FromRedis}
	d.Append(v)
	_ = a.inner.Refund(context.Background(), time.Time{}, d)
}

// Refund implements limits.Store. What has not been merged yet never will be; the rest is the store's.
func (a *Async) Refund(ctx context.Context, now time.Time, d limits.Decision) error {
	if !d.Allowed {
		return a.inner.Refund(ctx, now, d)
	}
	rest := limits.Decision{Allowed: true, Source: d.Source}
	if d.Source == limits.FromAsync {
		rest.Source = limits.FromRedis
	}
	at := time.Now()
	for i := range d.Len() {
		v := d.At(i)
		if v.Policy != nil && v.Taken != limits.NotTaken {
			if found, ok := a.views.Load(balanceName{v.Policy.Name(), v.Key}); ok && found.(*view).cancel(v, at) {
				continue
			}
		}
		rest.Append(*v)
	}
	if rest.Len() == 0 {
		return nil
	}
	return a.inner.Refund(ctx, now, rest)
}

// Close merges what has not been, and closes the store. A closed Async decides nothing here.
func (a *Async) Close() error {
	if a.closed.Swap(true) {
		return nil
	}
	a.stop()
	<-a.stopped
	return closeStore(a.inner)
}

// Report implements limits.Reporter: that of the store, and how the merges go.
func (a *Async) Report() limits.Report {
	r := reportWith(a.inner, limits.FromAsync, a.hits.Load())
	r.Merges = &limits.Merges{
		Keys: a.known.Load(), Done: a.merges[0].Load(), Failed: a.merges[1].Load(), Last: time.Unix(0, a.heard.Load()),
	}
	return r
}

func (a *Async) instances() int {
	if c, ok := a.inner.(counter); ok {
		return max(c.instances(), 1)
	}
	return 1
}

func (l *Leases) instances() int { return max(l.count(), 1) }
