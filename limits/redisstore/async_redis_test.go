package redisstore

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/limits"
)

// TestMergedDebtsAreExact: where nobody else has charged a balance meanwhile, what is owed after a merge is what would be owed
// had each charge been made at the store when it was admitted; and it is no less otherwise.
func TestMergedDebtsAreExact(t *testing.T) {
	client := redistest.Shared(t)
	for i, rule := range []limits.Rule{
		limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(700)},
		limits.TokenBucket{Capacity: 9, Refill: limits.Rate{Amount: 10, Per: 13 * time.Second}},
		limits.LeakyBucket{Capacity: 999_983, Leak: limits.Rate{Amount: 999_983, Per: limits.Day}}, // counts in ms
	} {
		store := open(t, client, Config{})
		random := rand.New(rand.NewPCG(uint64(i), 9))
		p := async(t, fmt.Sprint("exact ", i), rule)
		m, _ := p.Meter()
		at := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
		store.clock = func(time.Time) string { return strconv.FormatInt(at, 10) }
		truth, others := p.Account(0, 0, 0, nil), 0
		pause := func() { // none, or a few tokens' worth, or many
			few := 3*m.Unit*m.Tick.Microseconds()/m.Drain + 2
			at += random.Int64N(few) * []int64{0, 0, 0, 1, 1, 1, 1, 1, 10, 40}[random.IntN(10)]
		}
		for step := range 400 {
			pause()
			if random.IntN(3) == 0 { // somebody asks
				cost := random.Int64N(3)
				d, err := store.Take(ctx, time.Time{}, single(p, "k", cost))
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed {
					truth.Owe(at, cost)
				}
			}
			pause()
			one := &merging{policy: p, key: "k", began: at, alone: p.Account(0, 0, 0, nil)}
			meanwhile := false
			for range random.IntN(4) {
				cost := 1 + random.Int64N(4)
				one.amount += cost
				one.alone.Owe(at, cost)
				truth.Owe(at, cost)
				pause()
				if step > 300 && random.IntN(5) == 0 && at > one.began {
					if d, err := store.Take(ctx, time.Time{}, single(p, "k", 1)); err == nil && d.Allowed {
						truth.Owe(at, 1)
						meanwhile = true
						others++
					}
				}
			}
			if err := store.merge(ctx, []*merging{one}); err != nil || !one.same {
				t.Fatalf("step %d: %v, same %v", step, err, one.same)
			}
			truth.Owe(at, 0)
			owed, last, since := truth.Numbers()
			if one.last != last || !meanwhile && (one.owed != owed || one.since != since) || one.owed < owed {
				t.Fatalf("%v, step %d: %d owed at %d since %d, want %d at %d since %d", p, step, one.owed, one.last, one.since, owed, last, since)
			}
			if meanwhile { // what it is more than it need be
				truth = p.Account(one.owed, one.last, one.since, nil)
			}
		}
		if others == 0 {
			t.Error("nobody has charged it meanwhile")
		}
	}
}

// TestAMergeAfterTheClockWentBack: what was owed is owed still, for the time until the charges has not been.
func TestAMergeAfterTheClockWentBack(t *testing.T) {
	store := open(t, redistest.Shared(t), Config{})
	p := async(t, "p", limits.TokenBucket{Capacity: 100, Refill: limits.PerSecond(1)})
	at := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	store.clock = func(time.Time) string { return strconv.FormatInt(at, 10) }
	if _, err := store.Take(ctx, time.Time{}, single(p, "back", 50)); err != nil {
		t.Fatal(err)
	}
	one := &merging{policy: p, key: "back", amount: 5, began: at + time.Hour.Microseconds(), alone: p.Account(0, 0, 0, nil)}
	one.alone.Owe(one.began, 5)
	m, _ := p.Meter()
	if err := store.merge(ctx, []*merging{one}); err != nil || !one.same || one.owed != 55*m.Unit {
		t.Errorf("%d units are owed, want %d: %v", one.owed, 55*m.Unit, err)
	}
}

// TestMergesAndOtherValues: a balance that is counted in another rule is charged in that, and nothing else is touched.
func TestMergesAndOtherValues(t *testing.T) {
	client := redistest.Shared(t)
	store := open(t, client, Config{})
	was := named(t, "p", limits.TokenBucket{Capacity: 100, Refill: limits.PerHour(1)})
	is := named(t, "p", limits.TokenBucket{Capacity: 100, Refill: limits.PerHour(2)})
	if _, err := store.Take(ctx, time.Time{}, single(was, "k", 10)); err != nil {
		t.Fatal(err)
	}
	changed := &merging{policy: is, key: "k", amount: 5, alone: is.Account(0, 0, 0, nil)}
	window := named(t, "w", limits.FixedWindow{Quota: limits.PerDay(10)})
	if _, err := store.Take(ctx, time.Time{}, single(window, "k", 1)); err != nil {
		t.Fatal(err)
	}
	bucket := named(t, "w", limits.TokenBucket{Capacity: 100, Refill: limits.PerHour(1)})
	counted := &merging{policy: bucket, key: "k", amount: 5, alone: bucket.Account(0, 0, 0, nil)}
	foreign := &merging{policy: named(t, "x", bucket.Rule()), key: "k", amount: 5, alone: bucket.Account(0, 0, 0, nil)}
	client.Set(ctx, store.key("x", "k"), "somebody's", 0)
	looked := &merging{policy: named(t, "y", bucket.Rule()), key: "k", alone: bucket.Account(0, 0, 0, nil)}
	if err := store.merge(ctx, []*merging{changed, counted, foreign, looked}); err != nil {
		t.Fatal(err)
	}
	if changed.same || counted.same || foreign.same || !looked.same || looked.owed != 0 {
		t.Errorf("%v %v %v, and %v with %d", changed.same, counted.same, foreign.same, looked.same, looked.owed)
	}
	if d, err := store.Peek(ctx, time.Time{}, single(is, "k", 0)); err != nil || d.At(0).Remaining != 85 {
		t.Errorf("%d are left, want 85: %v", d.At(0).Remaining, err)
	}
	if n := client.Exists(ctx, store.key("y", "k")).Val(); n != 0 {
		t.Error("a look has written")
	}
	if v := client.Get(ctx, store.key("x", "k")).Val(); v != "somebody's" {
		t.Errorf("%q", v)
	}
	if ttl := client.PTTL(ctx, store.key("p", "k")).Val(); ttl <= 0 {
		t.Errorf("the key stays for %v", ttl)
	}
}

// TestAsynchronousInstancesShareOneRedis lets three instances with a crowd each take all they get of one key on a real server,
// whose scripts are flushed meanwhile, and then stops the server for a while.
func TestAsynchronousInstancesShareOneRedis(t *testing.T) {
	server := redistest.Single(t)
	const capacity, rate, n = 500, 2000, 3
	const every = 50 * time.Millisecond
	p := async(t, "p", limits.TokenBucket{Capacity: capacity, Refill: limits.PerSecond(rate)})
	var all [n]*Async
	for i := range all {
		g := guarded(t, server.Client(t, func(o *redis.Options) { o.PoolSize = 16 }), GuardConfig{Timeout: patient, Instances: n})
		l := leased(t, g, LeaseConfig{})
		all[i] = asynchronous(t, l, AsyncConfig{Every: every})
	}
	now := func() int64 { return server.Client(t).Time(ctx).Val().UnixMicro() }
	var passed, here, others atomic.Int64
	var stop atomic.Bool
	begin, began := now(), time.Now()
	var crowd sync.WaitGroup
	for _, a := range all {
		for range 4 {
			crowd.Go(func() {
				for !stop.Load() {
					d, err := a.Take(ctx, time.Time{}, single(p, "hot", 1))
					if err != nil {
						t.Error(err)
						return
					}
					if d.Source != limits.FromAsync {
						others.Add(1)
					}
					if d.Allowed {
						passed.Add(1)
						if d.Source == limits.FromAsync {
							here.Add(1)
						}
					} else {
						time.Sleep(100 * time.Microsecond)
					}
				}
			})
		}
	}
	for range 20 {
		time.Sleep(50 * time.Millisecond)
		server.Do(t, "SCRIPT", "FLUSH")
	}
	stop.Store(true)
	crowd.Wait()
	took, span := now()-begin, time.Since(began)
	// Merges may be late on a busy machine: what was heard is believed for three intervals.
	most := capacity + took*rate/1e6 + n*(capacity+int64(2*staleAfter*every*rate/time.Second))
	if got := passed.Load(); got > most {
		t.Errorf("%d passed, want at most %d", got, most)
	}
	if here.Load() < passed.Load()/2 {
		t.Errorf("only %d of %d were admitted without asking", here.Load(), passed.Load())
	}
	for _, a := range all {
		a.Close()
	}
	t.Logf("%d passed in %v, %d of them here; %d asked; %+v", passed.Load(), span, here.Load(), others.Load(), all[0].Report().Merges)
}

// TestAsyncWhileTheServerHangs: decisions stay in time, the shares are kept, and it goes on when the server does.
func TestAsyncWhileTheServerHangs(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t)
	g := opened(t, at(server), Options{}, GuardConfig{Instances: 4, Timeout: 100 * time.Millisecond})
	a := asynchronous(t, g, AsyncConfig{Every: 20 * time.Millisecond})
	p := async(t, "p", limits.TokenBucket{Capacity: 400, Refill: limits.PerHour(1)})
	take := func() limits.Source { return mustTake(t, a, single(p, "k", 1)).Source }
	wait.Until(t, "decisions here", func() bool { return take() == limits.FromAsync })
	server.Stop()
	wait.Until(t, "decisions by its share", func() bool { return take() == limits.FromLocal })
	d := mustTake(t, a, single(p, "k", 100))
	if d.Allowed {
		t.Errorf("more than a quarter was admitted: %+v", d.Verdicts())
	}
	server.Cont()
	wait.Until(t, "decisions here again", func() bool { return take() == limits.FromAsync })
}

// TestMergesReachEveryServer: on a cluster each balance is told the server that keeps it.
func TestMergesReachEveryServer(t *testing.T) {
	n := redistest.SharedCluster(t)
	client, err := Open("redis+cluster://"+n.Addrs()[0], Options{Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	g := guarded(t, client, GuardConfig{Timeout: patient})
	a := asynchronous(t, g, AsyncConfig{Every: longestMerge})
	p := async(t, fmt.Sprint("spread ", time.Now().UnixNano()), limits.TokenBucket{Capacity: 100, Refill: limits.PerHour(1)})
	for range 3 { // asked, then here
		for k := range 20 {
			mustTake(t, a, single(p, fmt.Sprint(k), 1))
		}
		a.round(time.Now().Add(-time.Minute))
	}
	for k := range 20 {
		if got := charged(t, client, p, fmt.Sprint(k)); got != 3 {
			t.Errorf("key %d: %d are owed, want 3", k, got)
		}
	}
	if r := a.Report(); r.Decisions["async"] != 40 || r.Merges.Failed > 0 {
		t.Errorf("%+v, %+v", r.Decisions, r.Merges)
	}
}

// TestAMergeWhoseAnswerIsLostCountsOnce.
func TestAMergeWhoseAnswerIsLostCountsOnce(t *testing.T) {
	server := redistest.Single(t)
	proxy := redistest.NewProxy(t, server.Addr)
	client := server.Client(t, func(o *redis.Options) { o.Addr = proxy.Addr })
	g := guarded(t, client, GuardConfig{Timeout: patient})
	a := asynchronous(t, g, AsyncConfig{Every: longestMerge})
	p := async(t, "p", limits.TokenBucket{Capacity: 100, Refill: limits.PerHour(1)})
	mustTake(t, a, single(p, "k", 1))
	a.round(time.Now().Add(-time.Minute))
	mustTake(t, a, single(p, "k", 10))
	trap := proxy.CutAfter(mergeScript.digest)
	a.round(time.Now().Add(-time.Minute))
	<-trap.Sprung()
	mustTake(t, a, single(p, "k", 3))
	wait.Until(t, "the next merge", func() bool {
		a.round(time.Now().Add(-time.Minute))
		return charged(t, server.Client(t), p, "k") >= 14
	})
	if n := charged(t, server.Client(t), p, "k"); n != 14 {
		t.Errorf("%d are owed, want 14", n)
	}
}
