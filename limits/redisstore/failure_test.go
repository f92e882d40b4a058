package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// fake is a store that fails as it is told to, on the clock of the test's bubble.
type fake struct {
	*limits.Memory
	mu     sync.Mutex
	err    error         // what every call returns
	takes  time.Duration // how long a call lasts
	deaf   bool          // whether it does not mind its context
	asked  atomic.Int64
	under  atomic.Int64
	most   atomic.Int64
	closed atomic.Bool
	beats  func(id string, lasts time.Duration) (int, error)
}

func newFake(t *testing.T) *fake {
	t.Helper()
	m, err := limits.NewMemory(limits.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return &fake{Memory: m}
}

func (f *fake) set(err error, takes time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.takes = err, takes
}

func (f *fake) wait(ctx context.Context) error {
	f.asked.Add(1)
	now := f.under.Add(1)
	defer f.under.Add(-1)
	f.most.Store(max(f.most.Load(), now))
	f.mu.Lock()
	err, takes := f.err, f.takes
	f.mu.Unlock()
	if takes > 0 {
		done := ctx.Done()
		if f.deaf {
			done = nil
		}
		select {
		case <-time.After(takes):
		case <-done:
			return &Error{Kind: Cancelled, Op: "take", Sent: true, Err: ctx.Err()}
		}
	}
	return err
}

func (f *fake) Take(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	if err := f.wait(ctx); err != nil {
		return limits.Decision{}, err
	}
	d, err := f.Memory.Take(context.Background(), now, charges)
	d.Source = limits.FromRedis
	return d, err
}

func (f *fake) Peek(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	if err := f.wait(ctx); err != nil {
		return limits.Decision{}, err
	}
	d, err := f.Memory.Peek(context.Background(), now, charges)
	d.Source = limits.FromRedis
	return d, err
}

func (f *fake) Refund(ctx context.Context, now time.Time, d limits.Decision) error {
	if err := f.wait(ctx); err != nil {
		return err
	}
	return f.Memory.Refund(context.Background(), now, d)
}

func (f *fake) Close() error { f.closed.Store(true); return nil }

func (f *fake) beat(_ context.Context, id string, lasts time.Duration) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.beats == nil {
		return 0, errors.New("cannot count")
	}
	return f.beats(id, lasts)
}

var refused = &Error{Kind: NotExecuted, Op: "take", Err: errors.New("connection refused")}

// guard makes a Guard that has greeted its store, and ends with the test.
func guard(t *testing.T, f limits.Store, cfg GuardConfig) *Guard {
	t.Helper()
	g, err := NewGuard(f, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	synctest.Wait()
	return g
}

func named(t *testing.T, name string, r limits.Rule, options ...limits.Option) *limits.Policy {
	t.Helper()
	p, err := limits.NewPolicy(name, r, options...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func single(p *limits.Policy, key string, cost int64) []limits.Charge {
	return []limits.Charge{{Policy: p, Key: key, Cost: cost}}
}

// take takes, and fails the test on any error but one of a policy that is closed.
func (g *Guard) take(t *testing.T, charges []limits.Charge) (d limits.Decision, unavailable bool) {
	t.Helper()
	d, err := g.Take(context.Background(), time.Time{}, charges)
	var u *limits.UnavailableError
	if err != nil && !errors.As(err, &u) {
		t.Fatal(err)
	}
	return d, err != nil
}

// cut makes the store fail, and charges until the breaker is open.
func cut(t *testing.T, f *fake, g *Guard) {
	t.Helper()
	f.set(refused, 0)
	p := named(t, "cutter", limits.TokenBucket{Capacity: 1, Refill: limits.PerSecond(1)}, limits.WhenStoreFails(limits.Open))
	for range failuresInARow {
		g.take(t, single(p, "", 1))
	}
	if !g.breaker.open() {
		t.Fatal("the breaker is closed")
	}
}

var bucket = limits.TokenBucket{Capacity: 12, Refill: limits.PerSecond(3)}
