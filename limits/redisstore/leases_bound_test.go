package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/limits"
)

// TestBlocksMintNothing plays instances that share a bucket, with refunds, Close, killed holders and times at which the store
// does not answer. A bucket that begins full admits no more than it may, whatever lies in blocks; and over any span it is the
// stated bound.
func TestBlocksMintNothing(t *testing.T) {
	for seed := range uint64(15) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			f := newFake(t)
			const capacity, rate, n = 600, 300, 3
			p := byLease(t, "p", limits.TokenBucket{Capacity: capacity, Refill: limits.PerSecond(rate)})
			var all [n]*Leases
			for i := range all {
				all[i] = leased(t, f, LeaseConfig{Instances: n})
			}
			type passed struct {
				at   time.Duration
				cost int64
			}
			var log []passed
			var held []limits.Decision
			begin, fromBlocks := time.Now(), 0
			pace := 1 + random.IntN(4)
			for range 3000 {
				i := random.IntN(n)
				cost := 1 + random.Int64N(3)
				d, err := all[i].Take(context.Background(), time.Time{}, single(p, "k", cost))
				if err == nil && d.Allowed {
					log = append(log, passed{time.Since(begin), cost})
					held = append(held, d)
					if d.Source == limits.FromLease {
						fromBlocks++
					}
				}
				switch random.IntN(300) {
				case 0: // killed: its block is lost
					all[i] = leased(t, f, LeaseConfig{Instances: n})
				case 1:
					if err := all[i].Close(); err != nil {
						t.Fatal(err)
					}
					all[i] = leased(t, f, LeaseConfig{Instances: n})
				case 2:
					f.set(errors.New("away"), 0)
				case 3, 4, 5, 6:
					f.set(nil, 0)
				case 7:
					time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
				}
				if len(held) > 0 && random.IntN(30) == 0 {
					last := len(held) - 1
					if all[i].Refund(context.Background(), time.Time{}, held[last]) == nil {
						log = append(log, passed{time.Since(begin), -held[last].At(0).Cost})
					}
					held = held[:last]
				}
				time.Sleep(time.Duration(random.IntN(pace)) * time.Millisecond)
			}
			if fromBlocks == 0 {
				t.Fatalf("seed %d: nothing was spent from a block", seed)
			}
			const blocks = n * capacity / (2 * n)
			for from := 0; from < len(log); from += 1 + from%7 {
				sum := int64(0)
				for _, e := range log[from:] {
					sum += e.cost
					most := capacity + int64((e.at-log[from].at)*rate/time.Second)
					if from > 0 {
						most += blocks
					}
					if sum > most {
						t.Fatalf("seed %d: %d admitted in %v from %v on, want at most %d", seed, sum, e.at-log[from].at, log[from].at, most)
					}
				}
			}
		})
	}
}

// TestAKilledHolderCostsItsBlockUntilItDrains: the others have the whole rate, and after a while the whole capacity.
func TestAKilledHolderCostsItsBlockUntilItDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		killed := leased(t, fakeKilled{f}, LeaseConfig{Instances: 2})
		other := leased(t, f, LeaseConfig{Instances: 2})
		p := byLease(t, "p", limits.TokenBucket{Capacity: 100, Refill: limits.PerSecond(10)})
		used := busy(t, killed, p, "k")
		b, _ := killed.leases.Load(balanceName{"p", "k"})
		lost := b.(*lease).left
		for range 200 {
			if mustTake(t, other, single(p, "k", 1)).Allowed {
				used++
			}
		}
		if used != 100-lost {
			t.Errorf("%d pass at once, want 100 less the %d that were lost", used, lost)
		}
		for range 5 { // 50 a second are wanted, and 10 come
			passed := 0
			for range 50 {
				time.Sleep(20 * time.Millisecond)
				if mustTake(t, other, single(p, "k", 1)).Allowed {
					passed++
				}
			}
			if passed < 9 || passed > 11 {
				t.Errorf("%d pass in a second, want 10", passed)
			}
		}
		time.Sleep(10 * time.Second)
		if have := remaining(t, f, p, "k"); have != 100 {
			t.Errorf("after a rest the store has %d", have)
		}
	})
}

// fakeKilled is how a store looks to a process that is not there any more: nothing is given back.
type fakeKilled struct{ *fake }

func (fakeKilled) Refund(context.Context, time.Time, limits.Decision) error {
	return errors.New("killed")
}
func (fakeKilled) Close() error { return nil }

// TestBlocksEndWithTheirStore: while Redis is away a block is spent to its end, and then this process has its share.
func TestBlocksEndWithTheirStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		g, err := NewGuard(f, GuardConfig{Instances: 4})
		if err != nil {
			t.Fatal(err)
		}
		l := leased(t, g, LeaseConfig{})
		synctest.Wait()
		p := byLease(t, "p", limits.TokenBucket{Capacity: 400, Refill: limits.PerHour(1)})
		used := busy(t, l, p, "k")
		if most := int64(400 / 8); used > most {
			t.Fatalf("%d were asked for one by one", used)
		}
		b, _ := l.leases.Load(balanceName{"p", "k"})
		left := b.(*lease).left
		cut(t, f, g)
		sources := map[limits.Source]int64{}
		for range 1000 {
			if d := mustTake(t, l, single(p, "k", 1)); d.Allowed {
				sources[d.Source]++
			}
		}
		if sources[limits.FromLease] != left || used+sources[limits.FromLease]+sources[limits.FromLocal] != 100 || len(sources) != 2 {
			t.Errorf("%d passed before, and then %v; want a quarter of 400 in all", used, sources)
		}
	})
}

func TestLeasesThatCannotBe(t *testing.T) {
	f := newFake(t)
	for i, cfg := range []LeaseConfig{{Default: 9}, {Instances: -1}, {Lasts: -1}, {Lasts: time.Second + 1}, {Lasts: 1}, {MaxKeys: -1}} {
		if _, err := NewLeases(f, cfg); err == nil {
			t.Errorf("%d: %+v is accepted", i, cfg)
		}
	}
	if _, err := NewLeases(nil, LeaseConfig{}); err == nil {
		t.Error("no store is accepted")
	}
}

// TestLeasesShareOneRedis lets three instances with a crowd each hammer one key of a real server.
func TestLeasesShareOneRedis(t *testing.T) {
	server := redistest.Single(t)
	const capacity, rate = 2000, 1000
	p := byLease(t, "p", limits.TokenBucket{Capacity: capacity, Refill: limits.PerSecond(rate)})
	var all [3]*Leases
	for i := range all {
		g := guarded(t, server.Client(t, func(o *redis.Options) { o.PoolSize = 16 }), GuardConfig{Timeout: patient, Instances: 3})
		r, err := NewRefusals(g, 0)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = leased(t, r, LeaseConfig{})
	}
	now := func() int64 { return server.Client(t).Time(ctx).Val().UnixMicro() }
	begin := now()
	var mu sync.Mutex
	count := map[limits.Source]int64{}
	var crowd sync.WaitGroup
	for _, l := range all {
		for range 16 {
			crowd.Go(func() {
				own := map[limits.Source]int64{}
				for range 2000 {
					d, err := l.Take(ctx, time.Time{}, single(p, "hot", 1))
					if err != nil {
						t.Error(err)
						return
					}
					if d.Allowed {
						own[d.Source]++
					}
				}
				mu.Lock()
				defer mu.Unlock()
				for s, n := range own {
					count[s] += n
				}
			})
		}
	}
	crowd.Wait()
	for _, l := range all {
		l.Close()
	}
	passed := count[limits.FromLease] + count[limits.FromRedis]
	if most := capacity + (now()-begin)*rate/1e6; passed > most || passed < capacity || count[limits.FromLease] == 0 || len(count) > 2 {
		t.Errorf("%v admitted, want between %d and %d in all, some of them by lease", count, capacity, most)
	}
	t.Logf("%v", count)
}

func TestSpendingABlockAllocatesNothing(t *testing.T) {
	l := leased(t, newFake(t), LeaseConfig{Lasts: time.Second})
	p := byLease(t, "p", limits.TokenBucket{Capacity: 1_000_000_000, Refill: limits.PerSecond(1_000_000)})
	charges := single(p, "k", 1)
	busy(t, l, p, "k")
	found, _ := l.leases.Load(balanceName{"p", "k"})
	b := found.(*lease)
	if n := testing.AllocsPerRun(100, func() {
		b.mu.Lock()
		b.left, b.until = 100, time.Now().Add(time.Hour)
		b.mu.Unlock()
		if d := mustTake(t, l, charges); d.Source != limits.FromLease {
			t.Fatal(d.Source)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	b.mu.Lock()
	b.left = 0
	b.mu.Unlock()
}
