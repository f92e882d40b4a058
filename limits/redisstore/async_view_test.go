package redisstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// TestWhatWasNotToldIsToldInTheRuleOfNow: what was admitted before a reload is owed in the units of the rule after it, also if a
// merge of it was on its way then, and failed.
func TestWhatWasNotToldIsToldInTheRuleOfNow(t *testing.T) {
	for _, onItsWay := range []bool{false, true} {
		known(t, limits.TokenBucket{Capacity: 100, Refill: limits.PerHour(1)}, func(t *testing.T, s *books, a *Async, p *limits.Policy) {
			mustTake(t, a, single(p, "k", 10))
			found, _ := a.views.Load(balanceName{"p", "k"})
			w := found.(*view)
			var first *merging
			if onItsWay {
				first = w.tell("k", time.Now(), time.Now())
			}
			q := async(t, "p", limits.TokenBucket{Capacity: 100, Refill: limits.PerMinute(7)})
			mustTake(t, a, single(q, "k", 0))
			if onItsWay {
				w.hear(first, true, false, time.Now(), every, 1)
			}
			m := w.tell("k", time.Now(), time.Now())
			meter, _ := q.Meter()
			if owed, _, _ := m.alone.Numbers(); m.policy != q || m.amount != 10 || owed != 10*meter.Unit {
				t.Errorf("on its way: %v: %d are told, and %d units owed, want 10 and %d", onItsWay, m.amount, owed, 10*meter.Unit)
			}
		})
	}
}

// TestARefundLeavesWhatIsOwedBesides, and no more.
func TestARefundLeavesWhatIsOwedBesides(t *testing.T) {
	known(t, limits.TokenBucket{Capacity: 10, Refill: limits.PerHour(1)}, func(t *testing.T, s *books, a *Async, p *limits.Policy) {
		back := mustTake(t, a, single(p, "k", 3))
		mustTake(t, a, single(p, "k", 2))
		if err := a.Refund(t.Context(), time.Time{}, back); err != nil {
			t.Fatal(err)
		}
		settled()
		if n := s.owed(p, "k"); n != 3 {
			t.Errorf("%d are owed, want 3", n)
		}
	})
}

// TestARefundOfWhatCouldNotBeTold is no affair of the store, also where more was admitted while the message was on its way.
func TestARefundOfWhatCouldNotBeTold(t *testing.T) {
	known(t, limits.TokenBucket{Capacity: 20, Refill: limits.PerHour(1)}, func(t *testing.T, s *books, a *Async, p *limits.Policy) {
		s.set(away, false)
		s.delay(every / 2)
		back := mustTake(t, a, single(p, "k", 10))
		settled() // the message is on its way
		mustTake(t, a, single(p, "k", 1))
		time.Sleep(every / 2)
		synctest.Wait()
		s.delay(0)
		s.set(nil, false)
		if err := a.Refund(t.Context(), time.Time{}, back); err != nil {
			t.Fatal(err)
		}
		settled()
		if n := s.owed(p, "k"); n != 2 {
			t.Errorf("%d are owed, want 2", n)
		}
	})
}

// TestWhatWasToldIsNotToldAgain with what was admitted while the message was on its way.
func TestWhatWasToldIsNotToldAgain(t *testing.T) {
	known(t, limits.TokenBucket{Capacity: 20, Refill: limits.PerHour(1)}, func(t *testing.T, s *books, a *Async, p *limits.Policy) {
		mustTake(t, a, single(p, "k", 10))
		found, _ := a.views.Load(balanceName{"p", "k"})
		w := found.(*view)
		m := w.tell("k", time.Now(), time.Now())
		mustTake(t, a, single(p, "k", 4))
		time.Sleep(every / 20)
		if err := s.merge(t.Context(), []*merging{m}); err != nil {
			t.Fatal(err)
		}
		w.hear(m, false, false, time.Now(), every, 1)
		next := w.tell("k", time.Now(), time.Now())
		meter, _ := p.Meter()
		if owed, _, _ := next.alone.Numbers(); next.amount != 4 || owed != 4*meter.Unit || next.began != m.now {
			t.Errorf("%d are told from %d on, and %d units owed; want 4 from %d on, and %d", next.amount, next.began, owed, m.now, 4*meter.Unit)
		}
	})
}

// silent says nothing of any balance when it fails, as a Guard that has too many calls under way.
type silent struct {
	*books
	full atomic.Bool
}

func (s *silent) merge(ctx context.Context, all []*merging) error {
	if s.full.Load() {
		return &Error{Kind: NotExecuted, Op: "merge", Err: errBusy}
	}
	return s.books.merge(ctx, all)
}

// TestWhatNobodyWasAskedAboutIsToldLater.
func TestWhatNobodyWasAskedAboutIsToldLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &silent{books: newBooks()}
		a := asynchronous(t, s, AsyncConfig{Every: every})
		p := async(t, "p", limits.TokenBucket{Capacity: 20, Refill: limits.PerHour(1)})
		mustTake(t, a, single(p, "k", 1))
		settled()
		mustTake(t, a, single(p, "k", 10))
		s.full.Store(true)
		settled()
		s.full.Store(false)
		settled()
		if n := s.owed(p, "k"); n != 11 {
			t.Errorf("%d are owed, want 11", n)
		}
	})
}

// TestABalanceIsForgotten when it has been told and nobody wants it any more.
func TestABalanceIsForgotten(t *testing.T) {
	known(t, limits.TokenBucket{Capacity: 20, Refill: limits.PerHour(1)}, func(t *testing.T, s *books, a *Async, p *limits.Policy) {
		mustTake(t, a, single(p, "k", 10))
		time.Sleep(2 * staleAfter * every)
		synctest.Wait()
		if n := a.Report().Merges.Keys; n != 0 || s.owed(p, "k") != 11 {
			t.Errorf("%d balances are known, and %d owed, want 11", n, s.owed(p, "k"))
		}
	})
}

// TestAForgottenBalanceIsNotUsed: what would be admitted from it nobody would be told of.
func TestAForgottenBalanceIsNotUsed(t *testing.T) {
	a := asynchronous(t, newBooks(), AsyncConfig{Every: time.Second})
	c := single(async(t, "p", limits.TokenBucket{Capacity: 100, Refill: limits.PerHour(1)}), "k", 1)
	was := a.use(&c[0], time.Now())
	if !was.forget(time.Now().Add(time.Hour)) {
		t.Fatal("it is in use")
	}
	time.AfterFunc(time.Millisecond, func() { a.views.Delete(balanceName{"p", "k"}) }) // as a round does, a little later
	if a.use(&c[0], time.Now()) == was {
		t.Error("it is used though it is not in the table any more")
	}
}

// TestMessagesAreBounded: many balances are told in several.
func TestMessagesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &counting{books: newBooks()}
		a := asynchronous(t, s, AsyncConfig{Every: every})
		p := async(t, "p", limits.TokenBucket{Capacity: 100, Refill: limits.PerHour(1)})
		for k := range mostTold + 1 {
			a.use(&limits.Charge{Policy: p, Key: fmt.Sprint(k), Cost: 1}, time.Now())
		}
		settled()
		if most, all := s.most.Load(), s.all.Load(); most != mostTold || all != mostTold+1 {
			t.Errorf("%d in one message and %d in all, want %d and %d", most, all, mostTold, mostTold+1)
		}
	})
}

// TestNothingIsToldToWhoDoesNotAnswer: the Guard knows, and asks now and then by itself.
func TestNothingIsToldToWhoDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &counting{books: newBooks()}
		g := guard(t, s, GuardConfig{})
		a := asynchronous(t, g, AsyncConfig{Every: every})
		p := async(t, "p", limits.TokenBucket{Capacity: 100, Refill: limits.PerHour(1)})
		mustTake(t, a, single(p, "k", 1))
		settled()
		mustTake(t, a, single(p, "k", 1))
		s.set(away, false)
		for i := 0; !g.breaker.open(); i++ {
			mustTake(t, g, single(p, fmt.Sprint(i), 1))
		}
		before := s.all.Load()
		time.Sleep(10 * every)
		synctest.Wait()
		if n := s.all.Load() - before; n != 0 {
			t.Errorf("%d were told meanwhile", n)
		}
	})
}
