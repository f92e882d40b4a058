package redisstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

func TestEachPolicyGetsWhatItWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		g := guard(t, f, GuardConfig{Instances: 3})
		open := named(t, "open", bucket, limits.WhenStoreFails(limits.Open))
		closed := named(t, "closed", bucket, limits.WhenStoreFails(limits.Closed))
		strict := named(t, "strict", bucket, limits.WhenStoreFails(limits.Open), limits.Strict())
		local := named(t, "local", bucket) // the default
		if d, _ := g.take(t, single(closed, "k", 1)); !d.Allowed || d.Source != limits.FromRedis {
			t.Fatalf("while all is well: %+v", d)
		}
		f.set(refused, 0)
		for i := range 100 {
			if d, out := g.take(t, single(open, "k", 1)); out || !d.Allowed || d.Source != limits.FromOpen || d.At(0).Policy != open {
				t.Fatalf("open: %v %v", d.Source, d.Allowed)
			}
			if d, out := g.take(t, single(closed, "k", 1)); !out || d.Allowed || d.Source != limits.FromClosed {
				t.Fatalf("closed: %v %v", d.Source, d.Allowed)
			}
			if _, out := g.take(t, single(strict, "k", 1)); !out {
				t.Fatal("strict passes")
			}
			d, out := g.take(t, single(local, "k", 1))
			if want := i < 4; out || d.Allowed != want || d.Source != limits.FromLocal || d.At(0).Policy != local {
				t.Fatalf("local, %d: %v %v", i, d.Source, d.Allowed)
			}
			if i == 4 && d.At(0).RetryAfter != time.Second {
				t.Errorf("a third of 3/s gives one after %v", d.At(0).RetryAfter)
			}
		}
		both := []limits.Charge{{Policy: open, Key: "k", Cost: 1}, {Policy: local, Key: "other", Cost: 4}}
		if d, _ := g.take(t, both); !d.Allowed || d.Source != limits.FromLocal || d.Len() != 2 || d.At(0).Policy != open || d.At(1).Remaining != 0 {
			t.Errorf("open and local: %+v", d)
		}
		if d, _ := g.take(t, both); d.Allowed || d.Binding().Policy != local {
			t.Errorf("open and local, used up: %+v", d)
		}
		shadow := []limits.Charge{{Policy: closed, Key: "k", Cost: 1, Shadow: true}, {Policy: open, Key: "k", Cost: 1}}
		if d, out := g.take(t, shadow); out || !d.Allowed {
			t.Error("a shadow that is closed refuses")
		}
		if d, out := g.take(t, single(closed, "k", 0)); out || !d.Allowed {
			t.Error("a cost of 0 is refused by a closed policy")
		}
	})
}

func TestWhatCanNeverFitIsNeverPromised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		g := guard(t, f, GuardConfig{Instances: 3})
		cut(t, f, g)
		open := named(t, "open", bucket, limits.WhenStoreFails(limits.Open))
		none := named(t, "none", limits.TokenBucket{Refill: limits.PerSecond(1)})
		local := named(t, "local", bucket)
		for _, c := range [][]limits.Charge{single(open, "k", 13), single(local, "k", 13), single(none, "k", 1)} {
			if d, out := g.take(t, c); out || d.Allowed || d.Binding().Reason != limits.CostTooLarge {
				t.Errorf("%v: %+v", c[0].Policy, d)
			}
		}
		// 5 fits into 12, but not into a third of it: that is nobody's fault, and will pass.
		if d, out := g.take(t, single(local, "k", 5)); !out || d.Allowed {
			t.Errorf("above the share: %+v", d)
		}
		sum := append(single(local, "k", 3), single(local, "k", 3)...)
		if _, out := g.take(t, sum); !out {
			t.Error("above the share in sum: refused for ever")
		}
		if d, _ := g.take(t, single(local, "k", 4)); !d.Allowed {
			t.Error("what was refused was charged")
		}
	})
}

func TestTheLocalBalanceIsWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		g := guard(t, f, GuardConfig{Instances: 3})
		p := named(t, "p", bucket)
		g.take(t, single(p, "k", 3)) // of its 4
		g.take(t, single(p, "big", 5))
		d, _ := g.take(t, single(p, "back", 4))
		if err := g.Refund(context.Background(), time.Time{}, d); err != nil {
			t.Fatal(err)
		}
		cut(t, f, g)
		admitted := func(key string) (n int) {
			for range 20 {
				if d, _ := g.take(t, single(p, key, 1)); d.Allowed {
					n++
				}
			}
			return n
		}
		for key, want := range map[string]int{"k": 1, "big": 0, "back": 4, "new": 4} {
			if got := admitted(key); got != want {
				t.Errorf("%s: %d pass without Redis, want %d", key, got, want)
			}
		}
		time.Sleep(2 * time.Second)
		if got := admitted("k"); got != 2 {
			t.Errorf("after 2 s a third of 3/s gives %d", got)
		}
	})
}

// TestFlappingHandsOutNoBursts: however often Redis goes and comes, one process alone admits its share of the capacity once and
// then its share of the rate.
func TestFlappingHandsOutNoBursts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		g := guard(t, f, GuardConfig{Instances: 3})
		p := named(t, "p", bucket)
		begin, local, stored := time.Now(), 0, 0
		for flap := range 40 {
			if flap%2 == 0 {
				f.set(refused, 0)
			} else {
				f.set(nil, 0)
			}
			for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
				switch d, _ := g.take(t, single(p, "k", 1)); {
				case d.Allowed && d.Source == limits.FromLocal:
					local++
				case d.Allowed:
					stored++
				}
			}
		}
		elapsed := time.Since(begin).Seconds()
		if most := 4 + int(elapsed) + 1; local > most {
			t.Errorf("%d were admitted here in %v s, want at most %d", local, elapsed, most)
		}
		if most := 12 + int(3*elapsed) + 1; stored > most {
			t.Errorf("%d were admitted by the store in %v s, want at most %d", stored, elapsed, most)
		}
		if local == 0 || stored == 0 {
			t.Errorf("%d local and %d stored: this tested nothing", local, stored)
		}
	})
}

func TestADecisionTakesNoLongerThanItsBudget(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t)
			f.deaf = deaf
			g := guard(t, f, GuardConfig{})
			p := named(t, "p", bucket)
			f.set(nil, time.Minute)
			for i := range failuresInARow + 3 {
				begin := time.Now()
				d, _ := g.take(t, single(p, "k", 1))
				took := time.Since(begin)
				if i < failuresInARow && (took < 45*time.Millisecond || took > 50*time.Millisecond) || i >= failuresInARow && took != 0 {
					t.Errorf("deaf %v, decision %d took %v", deaf, i, took)
				}
				if !d.Allowed || d.Source != limits.FromLocal {
					t.Errorf("deaf %v, decision %d: %+v", deaf, i, d)
				}
			}
			f.set(nil, 0)
			time.Sleep(2 * time.Minute) // what the deaf one has under way ends
		})
	}
}

func TestTheCallersContextDoesNotEndACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.set(nil, 20*time.Millisecond)
		g := guard(t, f, GuardConfig{})
		time.Sleep(time.Second)
		p := named(t, "p", bucket)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		d, err := g.Take(ctx, time.Time{}, single(p, "k", 1))
		if err != nil || !d.Allowed || d.Source != limits.FromRedis {
			t.Errorf("%+v, %v", d, err)
		}
		before := f.asked.Load()
		_, err = g.Take(ctx, time.Time{}, single(p, "k", 1))
		if kind, _ := KindOf(err); kind != Cancelled || !errors.Is(err, context.DeadlineExceeded) || f.asked.Load() != before {
			t.Errorf("a caller who has gone: %v", err)
		}
		if ctx := g.inTime(context.WithValue(context.Background(), p, 7)); ctx.Value(p) != 7 {
			t.Error("what the caller's context carries is lost")
		}
	})
}

func TestNothingPilesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.deaf = true
		g := guard(t, f, GuardConfig{MaxCalls: 30, OnFailure: limits.Open})
		p := named(t, "p", bucket)
		f.set(nil, 10*time.Second)
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				begin := time.Now()
				if d, _ := g.take(t, single(p, "k", 1)); !d.Allowed || time.Since(begin) > 50*time.Millisecond {
					t.Errorf("%v after %v", d.Allowed, time.Since(begin))
				}
			})
		}
		wg.Wait()
		time.Sleep(5 * time.Second) // the probes' calls hang too
		if most := f.most.Load(); most > 30+maxProbes {
			t.Errorf("%d calls were under way at once, want at most 30 and %d probes", most, maxProbes)
		}
		f.set(nil, 0)
		time.Sleep(20 * time.Second)
		d, _ := g.take(t, single(p, "k", 1))
		synctest.Wait() // who made the call counts it off after its answer has been passed on
		if d.Source != limits.FromRedis || g.calls.Load() != 0 {
			t.Errorf("afterwards: %v, %d calls under way", d.Source, g.calls.Load())
		}
	})
}
