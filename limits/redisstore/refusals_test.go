package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/limits"
)

// remembered wraps a fake store that is never slow.
func remembered(t *testing.T, most int) (*Refusals, *fake) {
	t.Helper()
	f := newFake(t)
	r, err := NewRefusals(f, most)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, f
}

func mustTake(t *testing.T, s limits.Store, charges []limits.Charge) limits.Decision {
	t.Helper()
	d, err := s.Take(context.Background(), time.Time{}, charges)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAFloodOfRefusalsIsAnsweredFromMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := remembered(t, 0)
		p := policy(t, "p", limits.TokenBucket{Capacity: 4, Refill: limits.PerSecond(5)})
		mustTake(t, r, single(p, "k", 4))
		for i := range 200 {
			d := mustTake(t, r, single(p, "k", 1))
			want := 200*time.Millisecond - time.Duration(i)*time.Millisecond
			if v := d.At(0); d.Allowed || v.RetryAfter != want || v.Reason != limits.OverLimit || v.Remaining != 0 {
				t.Fatalf("after %d ms: allowed %v, %+v; want a refusal for %v", i, d.Allowed, v, want)
			}
			if want := limits.FromCache; i > 0 && d.Source != want {
				t.Fatalf("after %d ms: from %v, want %v", i, d.Source, want)
			}
			time.Sleep(time.Millisecond)
		}
		if n := f.asked.Load(); n != 2 {
			t.Errorf("200 refusals asked %d times", n-1)
		}
		if d := mustTake(t, r, single(p, "k", 1)); !d.Allowed || d.Source != limits.FromRedis {
			t.Errorf("who came when RetryAfter said: %+v", d)
		}
		if n := r.Report().Decisions["cache"]; n != 199 {
			t.Errorf("%d answers from memory are counted, want 199", n)
		}
	})
}

func TestARefusalIsBelievedForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rule := range []limits.Rule{limits.TokenBucket{Capacity: 1, Refill: limits.PerHour(1)}, limits.SlidingLog{Quota: limits.PerHour(1)}} {
			r, f := remembered(t, 0)
			p := policy(t, "p", rule)
			charges := single(p, "k", 1)
			mustTake(t, r, charges)
			mustTake(t, r, charges)
			time.Sleep(refusalLasts - 1)
			if d := mustTake(t, r, charges); d.Source != limits.FromCache {
				t.Errorf("%v: just before: from %v", rule, d.Source)
			}
			time.Sleep(time.Nanosecond)
			if d := mustTake(t, r, charges); d.Source != limits.FromRedis || f.asked.Load() != 3 {
				t.Errorf("%v: after a second: from %v", rule, d.Source)
			}
		}
	})
}

func TestARefusalAnswersNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := remembered(t, 0)
		p := policy(t, "p", limits.TokenBucket{Capacity: 10, Refill: limits.PerSecond(1)})
		mustTake(t, r, single(p, "k", 8))
		mustTake(t, r, single(p, "k", 3))
		if d := mustTake(t, r, single(p, "k", 5)); d.Source != limits.FromCache || d.At(0).RetryAfter != 3*time.Second || d.At(0).Remaining != 2 {
			t.Errorf("a dearer charge: %+v", d)
		}
		if d := mustTake(t, r, single(p, "k", 11)); d.Allowed || d.At(0).Reason != limits.CostTooLarge || d.At(0).RetryAfter != 0 {
			t.Errorf("a charge that can never fit: %+v", d)
		}
		if d := mustTake(t, r, single(p, "other", 3)); !d.Allowed {
			t.Error("another key is refused")
		}
		shadow := single(p, "k", 3)
		shadow[0].Shadow = true
		if d := mustTake(t, r, shadow); !d.Allowed {
			t.Error("a shadow refuses")
		}
		raised := policy(t, "p", limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(1)})
		if d := mustTake(t, r, single(raised, "k", 3)); !d.Allowed {
			t.Error("the refusal outlives its rule")
		}
		before := f.asked.Load()
		if d := mustTake(t, r, single(p, "k", 2)); d.Source != limits.FromRedis || f.asked.Load() != before+1 {
			t.Errorf("a cheaper charge: %+v", d)
		}
		if _, err := r.Take(context.Background(), time.Time{}, single(p, "k", -1)); err == nil {
			t.Error("a negative cost is no error")
		}
		done, cancel := context.WithCancel(context.Background())
		cancel()
		if d, _ := r.Take(done, time.Time{}, single(p, "k", 4)); d.Source == limits.FromCache {
			t.Error("who is gone is answered")
		}
	})
}

func TestARefundEndsRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := remembered(t, 0)
		all := policy(t, "all", limits.FixedWindow{Quota: limits.PerDay(2)})
		each := policy(t, "each", limits.TokenBucket{Capacity: 9, Refill: limits.PerDay(9)})
		charges := func(key string) []limits.Charge {
			return []limits.Charge{{Policy: each, Key: key, Cost: 1}, {Policy: all, Cost: 1}}
		}
		first := mustTake(t, r, charges("a"))
		mustTake(t, r, charges("b"))
		mustTake(t, r, charges("a"))
		d := mustTake(t, r, charges("a"))
		if d.Source != limits.FromCache || d.Binding().Policy != all || d.At(0).Reason != limits.Allowed || d.At(0).Remaining != 8 || d.At(0).Taken != limits.NotTaken {
			t.Errorf("two rules, of which one refuses: %+v", d)
		}
		if err := r.Refund(context.Background(), time.Time{}, first); err != nil {
			t.Fatal(err)
		}
		if d := mustTake(t, r, charges("c")); !d.Allowed {
			t.Error("what was given back is not there")
		}
		if d := mustTake(t, r, charges("a")); d.Source != limits.FromRedis {
			t.Errorf("after a refund: from %v", d.Source)
		}
		// A call that was asked before the refund and is answered after it is not remembered.
		f.set(nil, time.Millisecond)
		go func() { mustTake(t, r, charges("a")) }()
		synctest.Wait()
		f.set(nil, 0)
		if err := r.Refund(context.Background(), time.Time{}, mustTake(t, r, single(each, "a", 1))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond)
		if d := mustTake(t, r, charges("a")); d.Source != limits.FromRedis {
			t.Errorf("asked before a refund: from %v", d.Source)
		}
	})
}

func TestOnlyWhatRedisRefusedIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		g, err := NewGuard(f, GuardConfig{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewRefusals(g, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		synctest.Wait()
		cut(t, f, g)
		p := policy(t, "p", limits.TokenBucket{Capacity: 1, Refill: limits.PerHour(1)})
		for range 3 {
			if d := mustTake(t, r, single(p, "k", 1)); d.Source != limits.FromLocal {
				t.Errorf("while Redis is away: from %v", d.Source)
			}
		}
		if rep := r.Report(); rep.State != "down" || rep.Decisions["local"] != 3 || rep.Decisions["cache"] != 0 {
			t.Errorf("reports %+v", rep)
		}
	})
}

func TestRefusalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := remembered(t, 160)
		p := policy(t, "p", limits.TokenBucket{Capacity: 0, Refill: limits.PerSecond(1)})
		for i := range 5000 {
			mustTake(t, r, single(p, fmt.Sprint(i), 1))
		}
		n := 0
		for i := range r.shards {
			n += len(r.shards[i].all)
		}
		if n > 160 || n < 100 {
			t.Errorf("%d are remembered, want about 160", n)
		}
		if d := mustTake(t, r, single(p, "4999", 1)); d.Source != limits.FromCache {
			t.Error("the newest is forgotten")
		}
	})
	for _, bad := range []func() error{
		func() error { _, err := NewRefusals(nil, 0); return err },
		func() error { _, err := NewRefusals(newFake(t), -1); return err },
	} {
		if bad() == nil {
			t.Error("a bad configuration is accepted")
		}
	}
}

// TestRefusalsFromMemoryAreTrue plays traffic of one process against every kind of rule and holds each answer from memory
// against what the store says at that moment. Times that are told may be a tick late, and never early. What is taken by charges
// of another shape is as if somebody else had taken it: then the truth may be worse.
func TestRefusalsFromMemoryAreTrue(t *testing.T) {
	rules := append([]limits.Rule{
		limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(7)},
		limits.Delay{Rule: limits.TokenBucket{Capacity: 5, Refill: limits.PerSecond(30)}, MaxWait: 100 * time.Millisecond},
		limits.FixedWindow{Quota: limits.PerSecond(9)}, limits.SlidingLog{Quota: limits.PerSecond(9)}, limits.SlidingWindow{Quota: limits.PerSecond(9)},
	}, everyKind...)
	synctest.Test(t, func(t *testing.T) {
		hits := int64(0)
		for seed := range uint64(40) {
			random := rand.New(rand.NewPCG(seed, 1))
			r, f := remembered(t, 0)
			var all []*limits.Policy
			for i := range 3 {
				all = append(all, policy(t, fmt.Sprint("p", i), rules[random.IntN(len(rules))]))
			}
			var held []limits.Decision
			alone := seed%2 == 0 // all charges have one shape
			shaped := []limits.Charge{{Policy: all[0], Key: "a"}, {Policy: all[1]}, {Policy: all[2], Key: "a", Shadow: seed%4 == 0}}
			for range 600 {
				charges := make([]limits.Charge, 1+random.IntN(3))
				if alone {
					charges = slices.Clone(shaped)
				}
				for i := range charges {
					if alone {
						charges[i].Cost = random.Int64N(6)
						continue
					}
					charges[i] = limits.Charge{Policy: all[random.IntN(3)], Key: []string{"", "a"}[random.IntN(2)],
						Cost: random.Int64N(6), Shadow: random.IntN(5) == 0}
				}
				truth, err := f.Memory.Peek(context.Background(), time.Time{}, charges)
				if err != nil {
					t.Fatal(err)
				}
				d := mustTake(t, r, charges)
				if d.Source == limits.FromCache {
					if truth.Allowed {
						t.Fatalf("seed %d: refused from memory, and the store would accept: %+v\n%+v", seed, d, truth)
					}
					for i := range charges {
						got, want := *d.At(i), *truth.At(i)
						if !alone {
							if got.RetryAfter > want.RetryAfter+got.Policy.Grain() && want.Reason == limits.OverLimit || got.Remaining < want.Remaining {
								t.Fatalf("seed %d: from memory %+v, and it is better: %+v", seed, got, want)
							}
							continue
						}
						for _, pair := range [][2]*time.Duration{{&got.RetryAfter, &want.RetryAfter}, {&got.NextAfter, &want.NextAfter}, {&got.ResetAfter, &want.ResetAfter}} {
							if late := *pair[0] - *pair[1]; late >= 0 && late <= got.Policy.Grain() {
								*pair[0] = *pair[1]
							}
						}
						if got != want {
							t.Fatalf("seed %d: from memory %+v, want %+v", seed, got, want)
						}
					}
				} else if d.Allowed {
					held = append(held, d)
				}
				if len(held) > 0 && random.IntN(20) == 0 {
					if err := r.Refund(context.Background(), time.Time{}, held[len(held)-1]); err != nil {
						t.Fatal(err)
					}
					held = held[:len(held)-1]
				}
				time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond)
			}
			hits += r.hits.Load()
		}
		if hits < 300 {
			t.Errorf("only %d answers came from memory", hits)
		}
	})
}

// TestAFloodOfRefusalsSparesRedis counts the calls of a real server.
func TestAFloodOfRefusalsSparesRedis(t *testing.T) {
	server := redistest.Single(t)
	g := guarded(t, server.Client(t), GuardConfig{Timeout: patient})
	r, err := NewRefusals(g, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := policy(t, "p", limits.TokenBucket{Capacity: 3, Refill: limits.PerHour(1)})
	each := policy(t, "each", limits.SlidingLog{Quota: limits.PerHour(100)})
	charges := []limits.Charge{{Policy: each, Key: "k", Cost: 1}, {Policy: p, Cost: 1}}
	begin, allowed := time.Now(), 0
	for range 20_000 {
		if mustTake(t, r, charges).Allowed {
			allowed++
		}
	}
	asked := g.Report().Decisions["redis"]
	if most := 4 + int64(time.Since(begin)/refusalLasts); allowed != 3 || asked > most {
		t.Errorf("%d allowed, want 3; Redis was asked %d times in %v, want at most %d", allowed, asked, time.Since(begin), most)
	}
}
