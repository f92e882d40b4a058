package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/limits"
)

// TestRowsAreDecisionsOneAfterTheOther sends many decisions in one call, and holds each against what a Memory answers that is
// asked one by one, through changes of the rule.
func TestRowsAreDecisionsOneAfterTheOther(t *testing.T) {
	client := redistest.Shared(t)
	s := played(open(t, client, Config{}))
	rules := append([]limits.Rule{
		limits.TokenBucket{Capacity: 30, Refill: limits.PerSecond(7)},
		limits.Delay{Rule: limits.TokenBucket{Capacity: 5, Refill: limits.PerSecond(3)}, MaxWait: 3 * time.Second},
		limits.Delay{Rule: limits.LeakyBucket{Capacity: 9, Leak: limits.PerSecond(3)}, MaxWait: 2 * time.Second},
		limits.FixedWindow{Quota: limits.PerSecond(20)},
		limits.SlidingLog{Quota: limits.PerSecond(30)},
		limits.SlidingWindow{Quota: limits.PerSecond(30)},
		limits.Burst{Soft: limits.PerSecond(10), Hard: limits.PerSecond(30)},
		limits.Burst{Soft: limits.PerSecond(10), Hard: limits.PerSecond(30), Total: limits.PerMinute(90)},
		limits.Burst{Soft: limits.PerSecond(4), Hard: limits.PerSecond(30)}, // debt is taken over between bursts
		limits.Burst{Soft: limits.PerSecond(20), Hard: limits.PerSecond(25), Total: limits.PerMinute(200)},
		limits.TokenBucket{Capacity: 0, Refill: limits.PerSecond(1)},
	}, everyKind...)
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		m, err := limits.NewMemory(limits.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Date(2026, 5, 1, 10, 0, 0, 123_000, time.UTC)
		var held [][2]limits.Decision // to be given back some time
		policies := make([]*limits.Policy, 3)
		for i := range policies {
			policies[i] = policy(t, fmt.Sprintf("rows %d.%d", seed, i), rules[r.IntN(len(rules))])
		}
		for step := range 30 {
			if r.IntN(5) == 0 {
				i := r.IntN(len(policies))
				policies[i] = policy(t, policies[i].Name(), rules[r.IntN(len(rules))])
			}
			kinds := 1 + r.IntN(3) // of charges
			of := make([]limits.Charge, kinds)
			for i := range of {
				of[i] = limits.Charge{Policy: policies[r.IntN(len(policies))], Key: []string{"x", "y"}[r.IntN(2)], Shadow: r.IntN(6) == 0}
			}
			c := query{take: true}
			for range 1 + r.IntN(12) {
				for i := range of {
					if r.IntN(2) == 0 { // else the same again
						of[i].Cost = []int64{0, 1, 1, 2, 3, 1 + of[i].Policy.Quota()/3, of[i].Policy.Quota() + 1}[r.IntN(7)]
					}
				}
				q, err := s.ask(now, of)
				if err != nil {
					t.Fatal(err)
				}
				c.rows = append(c.rows, q)
			}
			if err := c.decide(ctx, s); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			for n, row := range c.rows {
				want, err := m.Take(ctx, now, row.charges)
				if err != nil {
					t.Fatal(err)
				}
				if err := differ(&row.d, &want); err != nil {
					t.Fatalf("seed %d, step %d, row %d of %d: %v", seed, step, n, len(c.rows), err)
				}
				if r.IntN(3) == 0 {
					held = append(held, [2]limits.Decision{row.d, want})
				}
			}
			for len(held) > 0 && r.IntN(3) == 0 {
				i := r.IntN(len(held))
				if err := errors.Join(s.Refund(ctx, now, held[i][0]), m.Refund(ctx, now, held[i][1])); err != nil {
					t.Fatal(err)
				}
				held = append(held[:i], held[i+1:]...)
			}
			now = now.Add(time.Duration(r.Int64N(int64(700 * time.Millisecond))))
		}
	}
}

// differ compares two decisions about the same charges.
func differ(got, want *limits.Decision) error {
	if got.Allowed != want.Allowed || got.Len() != want.Len() {
		return fmt.Errorf("allowed %v with %d verdicts, want %v with %d", got.Allowed, got.Len(), want.Allowed, want.Len())
	}
	for i := range want.Len() {
		if g, w := *got.At(i), *want.At(i); g != w {
			return fmt.Errorf("verdict %d of %v\ngot  %+v\nwant %+v", i, w.Policy, g, w)
		}
	}
	return nil
}

// gate lets a test hold calls on their way to Redis.
type gate struct {
	mu    sync.Mutex
	calls [][]any // what was sent, by message; of a message of several calls the number of calls
	hold  chan struct{}
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			g.pass(cmd.Args())
		}
		return next(ctx, cmd)
	}
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "evalsha" {
			g.pass([]any{len(cmds)})
		}
		return next(ctx, cmds)
	}
}

func (g *gate) pass(args []any) {
	g.mu.Lock()
	g.calls = append(g.calls, args)
	hold := g.hold
	g.mu.Unlock()
	if hold != nil {
		<-hold
	}
}

// close makes calls wait from now on, until the function that it returns is called.
func (g *gate) close() (open func()) {
	hold := make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold, g.calls = hold, nil
	return func() {
		g.mu.Lock()
		g.hold = nil
		g.mu.Unlock()
		close(hold)
	}
}

// closeBehind lets go what is held, and holds what comes next.
func (g *gate) closeBehind() (next func()) {
	g.mu.Lock()
	held := g.hold
	g.mu.Unlock()
	next = g.close()
	close(held)
	return next
}

func (g *gate) sent() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.calls)
}

// waiting returns how many decisions are in the batcher and not on their way.
func (d *batcher) waiting() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.ready {
		n += len(p.waiters)
	}
	for _, p := range d.heads {
		for ; p != nil; p = p.other {
			for _, l := range p.line {
				n += len(l.waiters)
			}
		}
	}
	return n
}

// heldDesk returns a store, a policy of ten, and the gate before Redis, with the script known and one call about "k" on its
// way.
func heldDesk(t *testing.T, config Config) (*Store, *limits.Policy, *gate, func()) {
	t.Helper()
	client := redistest.Shared(t, func(o *redis.Options) { o.PoolSize = 100 })
	g := new(gate)
	client.AddHook(g)
	s := open(t, client, config)
	p := policy(t, "ten", limits.TokenBucket{Capacity: 10, Refill: limits.PerDay(1)})
	if _, err := s.Take(ctx, time.Time{}, one(p, "warm", 1)); err != nil {
		t.Fatal(err)
	}
	open := g.close()
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	all.Go(func() {
		if d, err := s.Take(ctx, time.Time{}, one(p, "k", 1)); err != nil || !d.Allowed {
			t.Errorf("the first: allowed %v, %v", d.Allowed, err)
		}
	})
	wait.Until(t, "the first call is on its way", func() bool { return g.sent() == 1 })
	return s, p, g, open
}
