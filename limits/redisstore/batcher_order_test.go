package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/limits"
)

// TestWhoComesFirstIsGrantedFirst: while a call is on its way others about the same balance gather, go in one call, and are
// granted in the order in which they came.
func TestWhoComesFirstIsGrantedFirst(t *testing.T) {
	s, p, g, open := heldDesk(t, Config{})
	costs := []int64{2, 3, 5, 1, 1, 1, 1, 2, 1} // 9 are left: 2, 3, then 5 does not fit, 1, 1, 1, 1, then none
	fits := []bool{true, true, false, true, true, true, true, false, false}
	got := make([]limits.Decision, len(costs))
	var all sync.WaitGroup
	for i, cost := range costs {
		all.Go(func() {
			d, err := s.Take(ctx, time.Time{}, one(p, "k", cost))
			if err != nil {
				t.Error(err)
			}
			got[i] = d
		})
		wait.Until(t, "it waits", func() bool { return s.batcher.waiting() == i+1 })
	}
	open()
	all.Wait()
	left := int64(9)
	for i, d := range got {
		if d.Allowed != fits[i] {
			t.Errorf("%d, of %d: allowed %v, want %v", i, costs[i], d.Allowed, fits[i])
		}
		if fits[i] {
			left -= costs[i]
		}
		if d.At(0).Remaining != left || d.Source != limits.FromRedis {
			t.Errorf("%d: remaining %d, want %d; from %v", i, d.At(0).Remaining, left, d.Source)
		}
	}
	if n := g.sent(); n != 2 {
		t.Errorf("%d messages for 10 decisions, want 2", n)
	}
}

// TestWhoLeavesInTimeIsNotCharged: a caller that gives up before its call is sent has not been charged, and knows; one that
// gives up later may have been.
func TestWhoLeavesInTimeIsNotCharged(t *testing.T) {
	s, p, g, open := heldDesk(t, Config{})
	leaving, leave := context.WithCancel(ctx)
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			_, err := s.Take(leaving, time.Time{}, one(p, "k", 2))
			wants(t, err, Cancelled, "before the call was sent")
			var e *Error
			if !errors.Is(err, context.Canceled) || errors.As(err, &e) && e.MayHaveCharged() {
				t.Errorf("left in time: %v", err)
			}
		})
		wait.Until(t, "it waits", func() bool { return s.batcher.waiting() == i+1 })
	}
	leave()
	all.Wait()
	open()
	wait.Until(t, "the first call is back", func() bool { s.batcher.mu.Lock(); defer s.batcher.mu.Unlock(); return s.batcher.inFlight == 0 })
	if d, err := s.Take(ctx, time.Time{}, one(p, "k", 1)); err != nil || d.At(0).Remaining != 8 {
		t.Errorf("remaining %d, %v; want 8", d.At(0).Remaining, err)
	}
	if n := g.sent(); n != 2 {
		t.Errorf("%d messages, want 2: who has left is not sent", n)
	}

	g.close()
	leaving, leave = context.WithCancel(ctx)
	all.Go(func() { _, _ = s.Take(ctx, time.Time{}, one(p, "k", 1)) })
	wait.Until(t, "a call is on its way", func() bool { return g.sent() == 1 })
	all.Go(func() {
		_, err := s.Take(leaving, time.Time{}, one(p, "k", 1))
		wants(t, err, Cancelled, "may have been carried out")
	})
	wait.Until(t, "it waits", func() bool { return s.batcher.waiting() == 1 })
	second := g.closeBehind()
	wait.Until(t, "the second call is on its way", func() bool { return g.sent() == 1 })
	leave()
	wait.Until(t, "it has left", func() bool {
		s.batcher.mu.Lock()
		defer s.batcher.mu.Unlock()
		for _, h := range s.batcher.heads {
			for _, w := range h.waiters {
				if w.gone {
					return true
				}
			}
		}
		return false
	})
	second()
	all.Wait()
}

// TestCallsGoTogether: calls about different balances that come while as many messages are on their way as may be are one message.
func TestCallsGoTogether(t *testing.T) {
	s, p, g, open := heldDesk(t, Config{})
	var all sync.WaitGroup
	take := func(key string) {
		all.Go(func() {
			if d, err := s.Take(ctx, time.Time{}, one(p, key, 1)); err != nil || !d.Allowed || d.At(0).Remaining != 9 {
				t.Errorf("%s: %+v, %v", key, d, err)
			}
		})
	}
	for i := 1; i < mostInFlight; i++ {
		take(fmt.Sprint("busy", i))
		wait.Until(t, "it is on its way", func() bool { return g.sent() == i+1 })
	}
	for i := range 20 {
		take(fmt.Sprint("key", i))
		wait.Until(t, "it waits", func() bool { return s.batcher.waiting() == i+1 })
	}
	open()
	all.Wait()
	if n := g.sent(); n > mostInFlight+1 {
		t.Errorf("%d messages, want %d", n, mostInFlight+1)
	}
}

// TestNothingIsSentTogetherWithoutLeave: both can be switched off.
func TestNothingIsSentTogetherWithoutLeave(t *testing.T) {
	s, p, g, open := heldDesk(t, Config{NoCoalescing: true, NoPipelining: true})
	var all sync.WaitGroup
	for i := range 9 {
		all.Go(func() {
			if d, err := s.Take(ctx, time.Time{}, one(p, "k", 1)); err != nil || !d.Allowed {
				t.Errorf("allowed %v, %v", d.Allowed, err)
			}
		})
		wait.Until(t, "it is on its way", func() bool { return g.sent() == i+2 })
	}
	open()
	all.Wait()
}

// TestCrowd: whatever goes together, exactly as much is granted as there is.
func TestCrowd(t *testing.T) {
	client := redistest.Shared(t)
	for _, config := range []Config{{}, {NoCoalescing: true}, {NoPipelining: true}} {
		s := open(t, client, config)
		p := policy(t, "p", limits.TokenBucket{Capacity: 500, Refill: limits.PerDay(1)})
		q := policy(t, "q", limits.SlidingLog{Quota: limits.PerDay(300)})
		var mu sync.Mutex
		granted := make(map[string]int)
		var all sync.WaitGroup
		for c := range 40 {
			all.Go(func() {
				for i := range 40 {
					key := []string{"a", "b"}[(c+i)%2]
					charges := one(p, key, 1)
					if c%2 == 0 {
						charges = append(charges, one(q, key, 1)...)
					}
					d, err := s.Take(ctx, time.Time{}, charges)
					if err != nil {
						t.Error(err)
						return
					}
					if d.Allowed {
						mu.Lock()
						granted[key]++
						mu.Unlock()
					}
				}
			})
		}
		all.Wait()
		for _, key := range []string{"a", "b"} {
			if granted[key] != 500 {
				t.Errorf("%+v: %d granted for %s, want 500", config, granted[key], key)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if d, err := s.Take(ctx, time.Time{}, one(p, "after", 1)); err != nil || !d.Allowed {
			t.Errorf("after Close: allowed %v, %v", d.Allowed, err)
		}
	}
}

// TestPeeksAndRefundsShareMessages: whatever comes while as many messages are on their way as may be is one message.
func TestPeeksAndRefundsShareMessages(t *testing.T) {
	s, p, g, open := heldDesk(t, Config{})
	open()
	wait.Until(t, "nothing is in flight", func() bool { s.batcher.mu.Lock(); defer s.batcher.mu.Unlock(); return s.batcher.inFlight == 0 })
	var taken []limits.Decision
	for i := range 10 {
		d, err := s.Take(ctx, time.Time{}, one(p, fmt.Sprint("back", i), 4))
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, d)
	}
	if err := s.Refund(ctx, time.Time{}, taken[9]); err != nil { // from now on the server knows that script too
		t.Fatal(err)
	}
	taken = taken[:9]
	open = g.close()
	var all sync.WaitGroup
	for i := range mostInFlight {
		all.Go(func() { _, _ = s.Take(ctx, time.Time{}, one(p, fmt.Sprint("busy", i), 1)) })
		wait.Until(t, "it is on its way", func() bool { return g.sent() == i+1 })
	}
	leaving, leave := context.WithCancel(ctx)
	for i, d := range taken {
		all.Go(func() {
			switch {
			case i == 0: // its caller leaves
				wants(t, s.Refund(leaving, time.Time{}, d), Cancelled, "may have been carried out")
			default:
				if err := s.Refund(ctx, time.Time{}, d); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			if d, err := s.Peek(ctx, time.Time{}, one(p, fmt.Sprint("look", i), 1)); err != nil || d.At(0).Remaining != 9 {
				t.Errorf("peek: remaining %d, %v", d.At(0).Remaining, err)
			}
		})
	}
	wait.Until(t, "all wait", func() bool { return s.batcher.waiting() == 18 })
	leave()
	wait.Until(t, "one has left", func() bool {
		s.batcher.mu.Lock()
		defer s.batcher.mu.Unlock()
		for _, p := range s.batcher.ready {
			if p.waiters[0].gone {
				return true
			}
		}
		return false
	})
	open()
	all.Wait()
	wait.Until(t, "all is back", func() bool { s.batcher.mu.Lock(); defer s.batcher.mu.Unlock(); return s.batcher.inFlight == 0 })
	if n := g.sent(); n > mostInFlight+1 {
		t.Errorf("%d messages, want %d", n, mostInFlight+1)
	}
	for i := range taken {
		if d, err := s.Peek(ctx, time.Time{}, one(p, fmt.Sprint("back", i), 1)); err != nil || d.At(0).Remaining != 9 {
			t.Errorf("after the refund: remaining %d, %v; want 9, and 1 is asked about", d.At(0).Remaining, err)
		}
	}
}
