package redisstore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// TestWithoutRedis: an instance goes on for three intervals, then each policy has its way, and what was admitted is told when
// Redis is back.
func TestWithoutRedis(t *testing.T) {
	for _, c := range []struct {
		f    limits.OnFailure
		then limits.Source
	}{{limits.Local, limits.FromLocal}, {limits.Open, limits.FromOpen}, {limits.Closed, limits.FromClosed}} {
		synctest.Test(t, func(t *testing.T) {
			s := newBooks()
			g := guard(t, s, GuardConfig{Instances: 4, OnFailure: c.f})
			a := asynchronous(t, g, AsyncConfig{Every: every})
			p := async(t, "p", limits.TokenBucket{Capacity: 400, Refill: limits.PerHour(1)})
			mustTake(t, a, single(p, "k", 1))
			settled()
			mustTake(t, a, single(p, "k", 100))
			settled()
			s.set(away, false)
			begin := time.Now()
			sources := map[limits.Source]int64{}
			for ; time.Since(begin) < time.Second; time.Sleep(5 * time.Millisecond) {
				d, err := a.Take(context.Background(), time.Time{}, single(p, "k", 1))
				var u *limits.UnavailableError
				if err != nil && !errors.As(err, &u) {
					t.Fatal(err)
				}
				if e := time.Since(begin); (d.Source == limits.FromAsync) != (e < 3*every-every/5) && e < 2*every || e > 3*every && d.Source != c.then {
					t.Fatalf("after %v by %v", e, d.Source)
				}
				if d.Allowed {
					sources[d.Source]++
				}
			}
			here := sources[limits.FromAsync]
			if here < 40 || here > 60 {
				t.Errorf("%d were admitted here", here)
			}
			if c.f == limits.Local && sources[limits.FromLocal] > 0 {
				t.Errorf("%d by its share, though more than that is used already", sources[limits.FromLocal])
			}
			s.set(nil, false)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if n := s.owed(p, "k"); n != 101+here {
				t.Errorf("%d are owed afterwards, want %d", n, 101+here)
			}
		})
	}
}

// TestWhatHasDrainedIsNotToldAfterAnOutage: when Redis is back another instance has used the balance, which makes of what is told
// late something that was admitted just then. What time has paid for meanwhile is not told; what it has not is, all of it.
func TestWhatHasDrainedIsNotToldAfterAnOutage(t *testing.T) {
	const capacity = 100
	for _, c := range []struct {
		last, out time.Duration // when the last was admitted after the first, and how long Redis is away
		want      int64
	}{
		{0, 1900 * time.Millisecond, capacity + 1}, // not yet: 100 tokens take 2 s
		{0, 2200 * time.Millisecond, 1},
		{200 * time.Millisecond, 2100 * time.Millisecond, capacity + 10 + 1}, // what came last has not drained, though the first has
		{200 * time.Millisecond, 2500 * time.Millisecond, 1},
	} {
		known(t, limits.TokenBucket{Capacity: capacity, Refill: limits.PerSecond(50)}, func(t *testing.T, s *books, a *Async, p *limits.Policy) {
			s.set(away, false)
			time.Sleep(every / 2) // what was asked for at first has drained
			begin := time.Now()
			if d := mustTake(t, a, single(p, "k", capacity)); !d.Allowed || d.Source != limits.FromAsync {
				t.Fatalf("%+v by %v", d.Verdicts(), d.Source)
			}
			if time.Sleep(c.last); c.last > 0 {
				if d := mustTake(t, a, single(p, "k", 10)); !d.Allowed || d.Source != limits.FromAsync {
					t.Fatalf("%+v by %v", d.Verdicts(), d.Source)
				}
			}
			time.Sleep(c.out - time.Since(begin))
			s.set(nil, false)
			mustTake(t, s, single(p, "k", 1)) // by another instance
			a.round(time.Now())
			if n := s.owed(p, "k"); n != c.want {
				t.Errorf("last after %v, away for %v: %d are owed, want %d", c.last, c.out, n, c.want)
			}
		})
	}
}

// TestALostAnswerIsNotSentAgain: what may have been counted is not counted twice.
func TestALostAnswerIsNotSentAgain(t *testing.T) {
	known(t, limits.TokenBucket{Capacity: 100, Refill: limits.PerHour(1)}, func(t *testing.T, s *books, a *Async, p *limits.Policy) {
		mustTake(t, a, single(p, "k", 10))
		s.set(&Error{Kind: Unknown, Op: "merge", Sent: true, Err: errors.New("EOF")}, true)
		settled()
		s.set(nil, false)
		time.Sleep(4 * every)
		settled()
		if n := s.owed(p, "k"); n != 11 {
			t.Errorf("%d are owed, want 11", n)
		}
		if r := a.Report(); r.Merges.Failed != 1 {
			t.Errorf("%+v", r.Merges)
		}
	})
}

// TestAnErrorTakesNothingHere: when the store cannot decide about the others, what was taken here is as if it had never been.
func TestAnErrorTakesNothingHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBooks()
		a := asynchronous(t, s, AsyncConfig{Every: every})
		wide := async(t, "wide", limits.TokenBucket{Capacity: 10, Refill: limits.PerHour(1)})
		own := named(t, "own", limits.TokenBucket{Capacity: 10, Refill: limits.PerHour(1)})
		both := []limits.Charge{{Policy: wide, Key: "", Cost: 1}, {Policy: own, Key: "c", Cost: 1}}
		mustTake(t, a, both)
		settled()
		s.set(away, false)
		if _, err := a.Take(context.Background(), time.Time{}, both); err == nil {
			t.Fatal("the store cannot decide, and nobody says so")
		}
		s.set(nil, false)
		settled()
		if n := s.owed(wide, ""); n != 1 {
			t.Errorf("%d are owed, want 1", n)
		}
	})
}
