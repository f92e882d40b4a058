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

// DefaultMaxCalls is the MaxCalls of a GuardConfig that names none.
const DefaultMaxCalls = 1024

// GuardConfig says how a Guard decides, and what it does when its store cannot. The zero value is good for one instance.
type GuardConfig struct {
	// OnFailure is for policies that leave it to the store (limits.AsTheStore). The zero value means limits.Local.
	OnFailure limits.OnFailure
	// Instances is what quotas are divided by where a process decides alone: how many processes share them. 0 means 1, and
	// then each process that is cut off hands out the whole quota.
	Instances int
	// Heartbeat counts the instances in Redis, and then Instances is only what is assumed until the first count.
	Heartbeat bool
	// Timeout is how long a decision may take; 0 means DefaultTimeout. It does not depend on the caller's context.
	Timeout time.Duration
	// MaxCalls bounds how many calls may be under way at once, so that a store that hangs piles nothing up; 0 means
	// DefaultMaxCalls. What is above it is decided as if the store had failed.
	MaxCalls int
	// Strict says that some policy is (see limits.Strict), so that what speaks against that is found at the start. Otherwise it
	// is found out when the first such charge comes.
	Strict bool
	// MaxKeys bounds the balances that are kept here for the policies that decide here; 0 means limits.DefaultMaxKeys.
	MaxKeys int
	// OnChange, if set, is told once whenever the store stops or begins again to decide, in order. It must not call the
	// Guard.
	OnChange func(Change)
	// Warn, if set, is told what is wrong with the way the store is set up, each thing once.
	Warn func(warning string)
}

// State is how a store is doing.
type State string

// The states.
const (
	Up     State = "up"     // it decides
	Down   State = "down"   // it does not answer: it is not asked, but probed several times a second
	Faulty State = "faulty" // it answers, with errors that somebody has to mend; it is probed as well
)

// Change is a change of state.
type Change struct {
	State State
	At    time.Time
	// Err is what failed; nil if the state is Up.
	Err error
	// Lasted is how long the state before lasted.
	Lasted time.Duration
}

// Guard is a store that always decides in time. It asks the store that it wraps, and where that cannot decide it does what the
// policy wants: see limits.OnFailure.
//
// While the store does not answer, it is not asked: a breaker opens after a few failures in a row, decisions then take no
// longer than in memory, and a probe a few times a second finds out when it answers again. So it decides again within a
// second of answering, whether there is traffic or not.
//
// Local balances are warm: they know what this process has admitted of late. So an outage hands out no fresh burst, however
// often it comes and goes; over any span one process admits alone at most its share of the capacity and what its share of
// the rate brings. When the store is back it knows nothing of what was admitted without it. So each outage can cost, beyond
// what the store counts itself, the shares of all instances, which together are about one quota: at most what the rate brings
// in that time, and one capacity of those whose local balances were not used.
//
// No call is ever made twice, so that a decision is charged at most once to the store, also when its answer was lost. Then,
// if the policy is local, it is charged here as well.
type Guard struct {
	inner limits.Store
	cfg   GuardConfig
	base  context.Context // ends with Close
	stop  context.CancelFunc
	life  life
	begin time.Time
	epoch atomic.Pointer[epoch]
	// punctual says that inner keeps the deadlines of contexts, so that nobody has to watch it.
	punctual bool

	breaker breaker
	calls   atomic.Int64 // under way
	probing atomic.Int64 // probes under way
	local   *limits.Memory
	shares  shares
	probes  *limits.Policy
	failing atomic.Pointer[[]string] // the keys of the call that failed last: what the probe asks about
	closed  atomic.Bool
	strict  atomic.Bool   // some policy is
	greeted chan struct{} // closed once the store has been asked for the first time

	decided [limits.FromClosed + 1]atomic.Int64
	failed  [Malformed + 1]atomic.Int64

	mu       sync.Mutex // guards what follows
	state    State
	since    time.Time
	changes  int64
	lastErr  error
	untold   []Change
	telling  bool
	warnings []string

	why atomic.Pointer[Error] // of decisions while the breaker is open
}

var (
	_ limits.Store    = (*Guard)(nil)
	_ limits.Reporter = (*Guard)(nil)
	_ io.Closer       = (*Guard)(nil)
)

// NewGuard wraps a store, usually a *Store, and starts to watch it: whether it answers shows within the first moments, also
// without traffic. The Guard closes it.
func NewGuard(inner limits.Store, cfg GuardConfig) (*Guard, error) {
	switch {
	case inner == nil:
		return nil, errors.New("redisstore: there is no store to guard; make one with New")
	case cfg.OnFailure > limits.Closed:
		return nil, fmt.Errorf("redisstore: GuardConfig.OnFailure %d does not exist; use limits.Local, Open or Closed", cfg.OnFailure)
	case cfg.Instances < 0, cfg.Instances > maxInstances:
		return nil, fmt.Errorf("redisstore: GuardConfig.Instances %d is not between 0 and %d", cfg.Instances, maxInstances)
	case cfg.Timeout < 0:
		return nil, fmt.Errorf("redisstore: GuardConfig.Timeout %v is negative; use 0 for %v", cfg.Timeout, DefaultTimeout)
	case cfg.MaxCalls < 0:
		return nil, fmt.Errorf("redisstore: GuardConfig.MaxCalls %d is negative; use 0 for %d", cfg.MaxCalls, DefaultMaxCalls)
	}
	if cfg.OnFailure == limits.AsTheStore {
		cfg.OnFailure = limits.Local
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.MaxCalls == 0 {
		cfg.MaxCalls = DefaultMaxCalls
	}
	local, err := limits.NewMemory(limits.MemoryConfig{MaxKeys: cfg.MaxKeys})
	if err != nil {
		return nil, fmt.Errorf("redisstore: GuardConfig: %w", err)
	}
	// Strict, so that nobody answers the probe but the store itself; and full again in an instant, so that it leaves nothing.
	probes, err := limits.NewPolicy("~probe", limits.TokenBucket{Capacity: 1000, Refill: limits.PerSecond(1_000_000)}, limits.Strict())
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	g := &Guard{inner: inner, cfg: cfg, local: local, probes: probes, state: Up, begin: time.Now(),
		greeted: make(chan struct{})}
	g.since = g.begin
	g.shares.divide(max(cfg.Instances, 1))
	g.base, g.stop = context.WithCancel(context.Background())
	if p, ok := inner.(interface{ punctual() bool }); ok {
		g.punctual = p.punctual()
	}
	g.why.Store(&Error{Kind: NotExecuted, Op: "take", Err: errors.New("it is not asked, for it has just failed")})
	g.strict.Store(cfg.Strict)
	g.life.spawn(g.greet)
	if b, ok := inner.(beater); ok && cfg.Heartbeat {
		g.life.spawn(func() { g.heartbeats(b) })
	}
	return g, nil
}

// Close ends what runs in the background and closes the store. Calls that are under way are waited for.
func (g *Guard) Close() error {
	if g.closed.Swap(true) {
		return nil
	}
	g.stop()
	g.life.end()
	if c, ok := g.inner.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// ErrClosed is what a Guard returns after Close, wrapped in an *Error.
var ErrClosed = errors.New("the store is closed")

// Take implements limits.Store. The error is an *Error if the caller's context is done or a charge is malformed, and a
// *limits.UnavailableError if the store cannot decide and a policy is closed then.
func (g *Guard) Take(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	return g.decide(ctx, now, charges, true)
}

// Peek implements limits.Store, with the errors of Take.
func (g *Guard) Peek(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	return g.decide(ctx, now, charges, false)
}

func (g *Guard) decide(ctx context.Context, now time.Time, charges []limits.Charge, take bool) (d limits.Decision, err error) {
	op := "peek"
	if take {
		op = "take"
	}
	if err := g.ready(ctx, op, charges); err != nil {
		return limits.Decision{}, err
	}
	if g.breaker.open() {
		return g.without(charges, take, g.why.Load())
	}
	if failure := g.call(call{op: op, caller: ctx, now: now, charges: charges}, &d); failure != nil {
		if failure.Kind == Malformed {
			return limits.Decision{}, failure
		}
		return g.without(charges, take, failure)
	}
	g.decided[d.Source].Add(1)
	if take {
		g.warm(charges, &d)
	}
	return d, nil
}

// ready returns what is wrong with a call before anybody is asked.
func (g *Guard) ready(ctx context.Context, op string, charges []limits.Charge) error {
	if g.closed.Load() {
		return &Error{Kind: Cancelled, Op: op, Err: ErrClosed}
	}
	if err := ctx.Err(); err != nil {
		return &Error{Kind: Cancelled, Op: op, Err: err}
	}
	for i := range charges {
		if err := charges[i].Check(); err != nil {
			return &Error{Kind: Malformed, Op: op, Err: fmt.Errorf("charge %d: %w", i, err)}
		}
		if charges[i].Policy.Strict() && !g.strict.Load() && !g.strict.Swap(true) {
			g.life.spawn(g.inspect)
		}
	}
	return nil
}

// Refund implements limits.Store: it gives back where the decision was made. What the store has charged stays charged if it
// does not answer.
func (g *Guard) Refund(ctx context.Context, now time.Time, d limits.Decision) error {
	switch {
	case !d.Allowed || d.Source == limits.FromOpen || d.Source == limits.FromClosed:
		return nil
	case d.Source == limits.FromLocal:
		return g.refundLocal(d)
	case g.closed.Load():
		return &Error{Kind: Cancelled, Op: "refund", Err: ErrClosed}
	case g.breaker.open():
		return g.why.Load()
	}
	undo := d // a copy, for it goes to the heap, and refunds that need no call should not
	if err := g.call(call{op: "refund", caller: ctx, now: now, undo: &undo}, new(limits.Decision)); err != nil {
		return err
	}
	g.cool(&d)
	return nil
}

// life is the goroutines of a Guard: none begins once they are waited for.
type life struct {
	mu   sync.Mutex
	over bool
	wg   sync.WaitGroup
}

func (l *life) spawn(f func()) (spawned bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.wg.Go(f)
	}
	return !l.over
}

func (l *life) end() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.wg.Wait()
}

// Report implements limits.Reporter.
func (g *Guard) Report() limits.Report {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := limits.Report{
		State: string(g.state), Since: g.since, Changes: g.changes, Instances: g.shares.instances(),
		Decisions: make(map[string]int64), Errors: make(map[string]int64), Warnings: append([]string(nil), g.warnings...),
	}
	if g.lastErr != nil {
		r.Error = g.lastErr.Error()
	}
	for source := range g.decided {
		if n := g.decided[source].Load(); n > 0 {
			r.Decisions[limits.Source(source).String()] = n
		}
	}
	for kind := range g.failed {
		if n := g.failed[kind].Load(); n > 0 {
			r.Errors[Kind(kind).String()] = n
		}
	}
	return r
}
