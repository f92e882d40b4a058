package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/limits"
)

func inParts(t *testing.T, name string, n int, r limits.Rule, options ...limits.Option) *limits.Policy {
	t.Helper()
	return named(t, name, r, append(options, limits.InSubBuckets(n))...)
}

// TestPartsAdmitTheWholeAndNoMore, in a long run of every pace: at a pace above the rate all of it.
func TestPartsAdmitTheWholeAndNoMore(t *testing.T) {
	for _, n := range []int{2, 8, 16} {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(n), 7))
			s, err := NewSubBuckets(newFake(t))
			if err != nil {
				t.Fatal(err)
			}
			s.pick = random.IntN
			const capacity, rate = 101, 1000
			p := inParts(t, "p", n, limits.TokenBucket{Capacity: capacity, Refill: limits.PerSecond(rate)})
			begin, passed := time.Now(), int64(0)
			for time.Since(begin) < 5*time.Second {
				if d := mustTake(t, s, single(p, "", 1)); d.Allowed {
					passed++
					if most := capacity + int64(time.Since(begin)*rate/time.Second); passed > most {
						t.Fatalf("%d of at most %d passed", passed, most)
					}
				}
				time.Sleep(500 * time.Microsecond) // twice the rate
			}
			if least := int64(capacity+5*rate) * 99 / 100; passed < least {
				t.Errorf("%d parts: %d passed, want at least %d", n, passed, least)
			}
			if tries := s.Report().SecondTries; tries == 0 {
				t.Error("nobody was asked a second time")
			}
		})
	}
}

// TestSomebodyMayBeRefusedWhileOthersHaveSome: two parts are asked, and no more.
func TestSomebodyMayBeRefusedWhileOthersHaveSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		s, _ := NewSubBuckets(f)
		p := inParts(t, "p", 4, limits.TokenBucket{Capacity: 10, Refill: limits.PerSecond(1)})
		next := []int{0}
		s.pick = func(n int) int { i := next[0]; next = next[1:]; return min(i, n-1) }
		for i := range 3 { // the first holds 3
			next = []int{0}
			if d := mustTake(t, s, single(p, "", 1)); !d.Allowed || d.At(0).Policy != p || d.At(0).Key != "/0" || d.At(0).Remaining != min(10, int64(2-i)*4) {
				t.Fatalf("%+v", d.At(0))
			}
		}
		next = []int{0, 0} // the second of the others is the second
		if d := mustTake(t, s, single(p, "", 3)); !d.Allowed || d.At(0).Key != "/1" {
			t.Fatalf("%+v", d.At(0))
		}
		asked := f.asked.Load()
		next = []int{1, 0}
		d := mustTake(t, s, single(p, "", 1))
		if d.Allowed || f.asked.Load() != asked+2 {
			t.Errorf("%d calls: %+v", f.asked.Load()-asked, d.At(0))
		}
		if d.At(0).RetryAfter != 4*time.Second {
			t.Errorf("retry after %v", d.At(0).RetryAfter)
		}
		next = []int{2}
		last := mustTake(t, s, single(p, "", 2))
		if err := s.Refund(context.Background(), time.Time{}, last); err != nil {
			t.Fatal(err)
		}
		next = []int{3, 2}
		if d := mustTake(t, s, single(p, "", 3)); d.Allowed || d.At(0).Reason != limits.CostTooLarge {
			t.Errorf("what no part asked can hold: %+v", d.At(0))
		}
		next = nil // nothing is chosen where the key names it
		if d := mustTake(t, s, single(p, "/2", 2)); !d.Allowed {
			t.Error("the refund is missing")
		}
		asked = f.asked.Load()
		if d := mustTake(t, s, single(p, "/2", 1)); d.Allowed || f.asked.Load() != asked+1 {
			t.Error("the part named had nothing left, and no other is asked for it")
		}
		if d, err := s.Peek(context.Background(), time.Time{}, single(p, "fresh/0", 0)); err != nil || d.At(0).Remaining != 10 {
			t.Errorf("3 in the first of 4 parts are at most 10: %+v, %v", d.Verdicts(), err)
		}
	})
}

// TestWhoComesToPartsWhenItWasSaidIsServed, whichever part is asked then.
func TestWhoComesToPartsWhenItWasSaidIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := NewSubBuckets(newFake(t))
		p := inParts(t, "p", 5, limits.LeakyBucket{Capacity: 50, Leak: limits.PerSecond(7)})
		own := named(t, "own", limits.TokenBucket{Capacity: 1000, Refill: limits.PerSecond(1000)})
		for i := range 300 {
			charges := append(single(p, "", 1+int64(i%10)), limits.Charge{Policy: own, Key: "c", Cost: 1})
			d := mustTake(t, s, charges)
			if d.Allowed {
				continue
			}
			if d.At(1).Taken != limits.NotTaken {
				t.Fatal("a refusal has charged")
			}
			time.Sleep(d.At(0).RetryAfter)
			if d := mustTake(t, s, charges); !d.Allowed {
				t.Fatalf("round %d: %+v", i, d.At(0))
			}
		}
	})
}

// TestPartsLiveOnDifferentServers, and several instances that take all they get take the whole and no more; a control with
// undivided parts takes several times that.
func TestPartsLiveOnDifferentServers(t *testing.T) {
	nodes := redistest.SharedCluster(t)
	client, err := Open("redis+cluster://"+nodes.Addrs()[0], Options{Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	const capacity, n = 1000, 8
	p := inParts(t, fmt.Sprint("site ", time.Now().UnixNano()), n, limits.TokenBucket{Capacity: capacity, Refill: limits.Rate{Amount: 1, Per: limits.Day}})
	crowd := func(take func(s limits.Store, i int) bool) (passed int64) {
		var sum atomic.Int64
		var all sync.WaitGroup
		for range 3 {
			s, err := NewSubBuckets(guarded(t, client, GuardConfig{Timeout: patient}))
			if err != nil {
				t.Fatal(err)
			}
			for range 4 {
				all.Go(func() {
					for i := range 400 {
						if take(s, i) {
							sum.Add(1)
						}
					}
				})
			}
		}
		all.Wait()
		return sum.Load()
	}
	passed := crowd(func(s limits.Store, _ int) bool { return mustTake(t, s, single(p, "", 1)).Allowed })
	if passed > capacity || passed < capacity*99/100 {
		t.Errorf("%d of %d passed", passed, capacity)
	}
	owners := map[string]bool{}
	for i := range n {
		owner, _ := nodes.Owner(t, "{"+tag(fmt.Sprint("/", i))+"}")
		owners[owner.Addr] = true
	}
	if len(owners) < 2 {
		t.Error("all parts live on one server")
	}
	whole := named(t, p.Name()+" control", p.Rule())
	if passed := crowd(func(s limits.Store, i int) bool {
		return mustTake(t, s, single(whole, fmt.Sprint("/", i%n), 1)).Allowed
	}); passed <= capacity {
		t.Errorf("the control passed %d", passed)
	}
}

// TestPartsWithoutRedis: each is decided by its policy, and errors name the whole.
func TestPartsWithoutRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		g := guard(t, f, GuardConfig{Instances: 2})
		s, _ := NewSubBuckets(g)
		strict := inParts(t, "strict", 2, limits.TokenBucket{Capacity: 10, Refill: limits.PerHour(1)}, limits.Strict())
		local := inParts(t, "local", 2, limits.TokenBucket{Capacity: 40, Refill: limits.PerHour(1)})
		cut(t, f, g)
		var u *limits.UnavailableError
		if _, err := s.Take(context.Background(), time.Time{}, single(strict, "", 1)); !errors.As(err, &u) || u.Policy != strict {
			t.Errorf("strict: %v", err)
		}
		passed := 0
		for range 200 {
			if mustTake(t, s, single(local, "", 1)).Allowed {
				passed++
			}
		}
		if passed != 20 {
			t.Errorf("%d passed by a share of one half, want 20", passed)
		}
	})
}

// TestRedisIsLostBetweenTwoParts: whoever is refused then is told the policy, and not the part.
func TestRedisIsLostBetweenTwoParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		s, _ := NewSubBuckets(guard(t, f, GuardConfig{}))
		p := inParts(t, "p", 2, limits.TokenBucket{Capacity: 2, Refill: limits.PerHour(1)}, limits.Strict())
		mustTake(t, s, single(p, "/0", 1))
		s.pick = func(n int) int {
			if n == 1 { // there is one other
				f.set(refused, 0)
			}
			return 0
		}
		var u *limits.UnavailableError
		if _, err := s.Take(context.Background(), time.Time{}, single(p, "", 1)); !errors.As(err, &u) || u.Policy != p {
			t.Errorf("%v", err)
		}
	})
}

// TestOneBalanceTwiceIsOnePart: two charges of the same balance are one decision about one part.
func TestOneBalanceTwiceIsOnePart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := NewSubBuckets(newFake(t))
		next := []int{2, 3, 0, 1, 1, 1}
		s.pick = func(int) int { i := next[0]; next = next[1:]; return i }
		p := inParts(t, "p", 4, limits.TokenBucket{Capacity: 20, Refill: limits.PerHour(1)})
		if d := mustTake(t, s, append(single(p, "a", 1), limits.Charge{Policy: p, Key: "b", Cost: 1})); d.At(0).Key != "a/2" || d.At(1).Key != "b/3" {
			t.Errorf("two balances of one policy: %+v", d.Verdicts())
		}
		d := mustTake(t, s, append(single(p, "k", 2), limits.Charge{Policy: p, Key: "k", Cost: 3}))
		if !d.Allowed || d.At(0).Key != "k/0" || d.At(1).Key != "k/0" {
			t.Errorf("%+v", d.Verdicts())
		}
		if d := mustTake(t, s, append(single(p, "k/0", 1), limits.Charge{Policy: p, Key: "other", Cost: 3})); d.Allowed || d.At(1).Taken != limits.NotTaken {
			t.Errorf("5 of 5 are taken: %+v", d.Verdicts())
		}
		if d, err := s.Peek(context.Background(), time.Time{}, single(p, "other/1", 5)); err != nil || !d.Allowed {
			t.Errorf("the refusal has charged the other: %+v, %v", d.Verdicts(), err)
		}
		if d := mustTake(t, s, single(p, "other/1", 5)); !d.Allowed {
			t.Errorf("a Peek has charged: %+v", d.Verdicts())
		}
	})
}

// TestTheTimeOfAPartIsThatOfTheSlowest: where a rate cannot be divided exactly some parts have less of it.
func TestTheTimeOfAPartIsThatOfTheSlowest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := NewSubBuckets(newFake(t))
		p := inParts(t, "p", 7, limits.TokenBucket{Capacity: 8, Refill: limits.Rate{Amount: 8, Per: 17_000 * limits.Day}})
		first, _ := p.SubBuckets()[0].Meter()
		second, _ := p.SubBuckets()[6].Meter()
		if first.Drain*second.Unit <= second.Drain*first.Unit {
			t.Fatalf("the parts are equally fast: %+v, %+v", first, second)
		}
		mustTake(t, s, single(p, "k/0", 2))
		d := mustTake(t, s, single(p, "k/0", 1))
		own := time.Duration(ceil(first.Unit, first.Drain)) * first.Tick
		if slow := time.Duration(ceil(second.Unit, second.Drain)) * second.Tick; d.Allowed || d.At(0).RetryAfter != slow || slow <= own {
			t.Errorf("retry after %v, want %v, the other part takes %v", d.At(0).RetryAfter, slow, own)
		}
	})
}

// TestWindowsInParts end together, so that who comes then is served by any.
func TestWindowsInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := NewSubBuckets(newFake(t))
		p := inParts(t, "p", 3, limits.FixedWindow{Quota: limits.PerMinute(10)})
		for range 3 {
			for i, want := range []int64{4, 3, 3} {
				key := fmt.Sprint("/", i)
				if d := mustTake(t, s, single(p, key, want)); !d.Allowed {
					t.Fatalf("part %d: %+v", i, d.At(0))
				}
				if d := mustTake(t, s, single(p, key, 1)); d.Allowed || d.At(0).Remaining != 0 {
					t.Fatalf("part %d holds more than its part: %+v", i, d.At(0))
				}
			}
			d := mustTake(t, s, single(p, "", 1))
			if d.Allowed {
				t.Fatalf("all is taken: %+v", d.At(0))
			}
			time.Sleep(d.At(0).RetryAfter)
		}
	})
}

// TestPartsThatCannotBe: what is no decision about parts is not given back to any.
func TestPartsThatCannotBe(t *testing.T) {
	if _, err := NewSubBuckets(nil); err == nil {
		t.Error("no store is accepted")
	}
	f := newFake(t)
	s, _ := NewSubBuckets(f)
	p := inParts(t, "p", 3, limits.FixedWindow{Quota: limits.PerMinute(10)})
	var d limits.Decision
	d.Allowed = true
	d.Append(limits.Verdict{Policy: p, Key: "/3", Cost: 1, Taken: 1})
	var e *Error
	if err := s.Refund(context.Background(), time.Time{}, d); !errors.As(err, &e) || e.Kind != Malformed {
		t.Errorf("a part that is none: %v", err)
	}
	for _, key := range []string{"", "k", "/", "k/x", "/-1", "k/3"} {
		if part, n := partOf(p, key); part != nil || n != -1 || base(p, key) != key {
			t.Errorf("%q names part %d", key, n)
		}
	}
	for _, key := range []string{"/0", "k/2", "a/b/1"} {
		if part, n := partOf(p, key); part != p.SubBuckets()[n] || base(p, key)+"/"+fmt.Sprint(n) != key {
			t.Errorf("%q names part %d", key, n)
		}
	}
}
