package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// forgetful is a store that forgets what it is told: the control.
type forgetful struct{ among }

func (f forgetful) merge(ctx context.Context, all []*merging) error {
	for _, m := range all {
		m.amount = 0
	}
	return f.among.merge(ctx, all)
}

// play lets instances at each of which there is more or less to do share a bucket for ten seconds, and returns by how much
// what was admitted was ever above capacity and rate. It begins with the worst that can be: each has heard that the bucket is as good
// as full, and then all take what they get for some seconds.
func play(t *testing.T, seed uint64, faults bool, store func(*books, int) limits.Store, capacity, rate int64, n int) (worst int64) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 4))
		s := newBooks()
		p := async(t, "p", limits.TokenBucket{Capacity: capacity, Refill: limits.PerSecond(rate)})
		all := make([]*Async, n)
		start := func(i int) { all[i] = asynchronous(t, store(s, n), AsyncConfig{Every: every}) }
		for i := range all {
			start(i)
		}
		begin, passed := time.Now(), int64(0)
		var held []limits.Decision
		busy, hardly := make([]int, n), false
		for _, a := range all {
			if mustTake(t, a, single(p, "k", 1)).Allowed {
				passed++
			}
		}
		for time.Since(begin) < 10*time.Second {
			switch e := time.Since(begin); {
			case e < every+every/2:
			case e < 3*time.Second:
				for i := range busy {
					busy[i] = 40
				}
			case random.IntN(50) == 0:
				kind := random.IntN(3) // all take what they get, or hardly anything, or each as it comes
				hardly = kind == 1
				for i := range busy {
					busy[i] = [...]int{40, 1, random.IntN(40) * random.IntN(2)}[kind]
				}
			}
			for i, a := range all {
				much := busy[i]
				if hardly && random.IntN(10) > 0 {
					much = 0
				}
				for range much {
					cost := 1 + random.Int64N(3)
					d, err := a.Take(context.Background(), time.Time{}, single(p, "k", cost))
					if err == nil && d.Allowed {
						passed += cost
						worst = max(worst, passed-capacity-int64(time.Since(begin)*time.Duration(rate)/time.Second))
						if random.IntN(30) == 0 {
							held = append(held, d)
						}
					}
				}
				if len(held) > 0 && random.IntN(10) == 0 && a.Refund(context.Background(), time.Time{}, held[0]) == nil {
					passed -= held[0].At(0).Cost
					held = held[1:]
				}
			}
			if faults {
				s.delay(time.Duration(random.IntN(10)) * time.Millisecond)
				switch random.IntN(100) {
				case 0:
					s.set(away, false)
				case 1:
					s.set(&Error{Kind: Unknown, Op: "merge", Sent: true, Err: errors.New("EOF")}, true)
				case 2, 3, 4, 5, 6, 7:
					s.set(nil, false)
				case 8:
					i := random.IntN(n)
					all[i].Close()
					start(i)
				}
			}
			time.Sleep(time.Duration(1+random.IntN(10)) * time.Millisecond)
			if random.IntN(200) == 0 {
				time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
			}
		}
	})
	return worst
}

// TestWhatIsAdmittedHereIsBounded plays instances that come and go, with refunds and with times at which the store does not
// answer, or does what it is told and does not say so, and holds what they admit against the stated bound.
func TestWhatIsAdmittedHereIsBounded(t *testing.T) {
	const capacity, rate, n = 100, 1000, 3
	shared := func(s *books, n int) limits.Store { return among{s, n} }
	bound := func(e time.Duration) int64 { return n * (capacity + int64(2*e*rate/time.Second)) }
	above := int64(0)
	for seed := range uint64(8) {
		worst := play(t, seed, false, shared, capacity, rate, n)
		if above = max(above, worst); worst > bound(every) {
			t.Errorf("seed %d: %d above capacity and rate, want at most %d", seed, worst, bound(every))
		}
		if worst := play(t, seed, true, shared, capacity, rate, n); worst > bound(staleAfter*every) {
			t.Errorf("seed %d, with faults: %d above capacity and rate, want at most %d", seed, worst, bound(staleAfter*every))
		}
	}
	if above == 0 {
		t.Error("nothing was ever too much, so this tests nothing")
	}
	control := play(t, 1, false, func(s *books, n int) limits.Store { return forgetful{among{s, 1}} }, capacity, rate, n)
	if control <= bound(staleAfter*every) {
		t.Errorf("the control, in which nobody hears of anybody, is %d above, which the bound of %d must not allow", control, bound(staleAfter*every))
	}
	t.Logf("at most %d above, the bound is %d; without merges %d", above, bound(every), control)
}

// TestAllThatIsPromisedIsAdmitted: where all instances take what they get, it is the whole rate after the first moments, in every
// second, and over a longer time no more.
func TestAllThatIsPromisedIsAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const capacity, rate, n = 300, 1000, 3
		s := newBooks()
		p := async(t, "p", limits.TokenBucket{Capacity: capacity, Refill: limits.PerSecond(rate)})
		var all [n]*Async
		for i := range all {
			all[i] = asynchronous(t, among{s, n}, AsyncConfig{Every: every})
		}
		var by [n]int64
		second := func() (passed int64) {
			for range 1000 {
				for i, a := range all {
					for range 4 {
						if mustTake(t, a, single(p, "k", 1)).Allowed {
							passed++
							by[i]++
						}
					}
				}
				time.Sleep(time.Millisecond)
			}
			return passed
		}
		const between = rate/10 + n // what one interval brings, and a token that each has not got whole
		if passed := second(); passed < capacity+rate-between || passed > capacity+rate+n*(capacity+2*rate/10) {
			t.Errorf("%d passed in the first second", passed)
		}
		second() // what was too much is paid back
		by = [n]int64{}
		// What an interval brings and one leaves, each may take; that is paid back with the next.
		const twice = n * rate / 10
		var all5 int64
		for range 5 {
			passed := second()
			if all5 += passed; passed < rate-twice || passed > rate+twice {
				t.Errorf("%d passed in a second, want %d", passed, rate)
			}
		}
		if all5 < 5*rate-twice || all5 > 5*rate+twice {
			t.Errorf("%d passed in 5s, want %d", all5, 5*rate)
		}
		for i, b := range by {
			if b < 5*rate/n*7/10 {
				t.Errorf("instance %d admitted %d of %d", i, b, 5*rate)
			}
		}
	})
}

// TestAnInstanceHasItsPartOfTheRate: of what comes in after a merge each of n takes one n-th, until the next.
func TestAnInstanceHasItsPartOfTheRate(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		synctest.Test(t, func(t *testing.T) {
			a := asynchronous(t, among{newBooks(), n}, AsyncConfig{Every: time.Second})
			p := async(t, "p", limits.TokenBucket{Capacity: 200, Refill: limits.PerSecond(100)})
			mustTake(t, a, single(p, "k", 1))
			time.Sleep(time.Second)
			synctest.Wait()
			found, _ := a.views.Load(balanceName{"p", "k"})
			m, _ := p.Meter()
			now := time.Now().UnixMicro()
			all := &merging{policy: p, same: true, owed: 200 * m.Unit, last: now, since: now, now: now}
			found.(*view).hear(all, false, false, time.Now(), time.Second, n)
			time.Sleep(400 * time.Millisecond)
			passed := 0
			for mustTake(t, a, single(p, "k", 1)).Allowed {
				passed++
			}
			if passed != 40/n {
				t.Errorf("one of %d admitted %d of the 40 that came in, want %d", n, passed, 40/n)
			}
		})
	}
}
