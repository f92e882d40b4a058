package shed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

func TestTwentyOfTwentyFivePassAndRetryAfterIsTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(100, Queue{})
		cfg.Limits = []Limit{bucket("per-client", 20, 5)}
		s := open(t, cfg)
		for range 20 {
			admitted(t, s, Request{Client: "a"}).Done(Success)
		}
		for range 5 {
			r := refused(t, s, Request{Client: "a"}, OverLimit)
			if r.Rule != "per-client" || r.RetryAfter != 200*ms || r.Verdicts[0].Remaining != 0 {
				t.Fatalf("rule %q, retry after %v", r.Rule, r.RetryAfter)
			}
		}
		admitted(t, s, Request{Client: "b"}).Done(Success) // another client is not concerned
		time.Sleep(200*ms - time.Microsecond)
		refused(t, s, Request{Client: "a"}, OverLimit)
		time.Sleep(time.Microsecond)
		admitted(t, s, Request{Client: "a"}).Done(Success)
	})
}

func TestAllRulesAreChargedOrNone(t *testing.T) {
	cfg := fixed(100, Queue{})
	global := bucket("site", 3, 1)
	global.Per = Global
	cfg.Limits = []Limit{bucket("per-client", 10, 1), global}
	s := open(t, cfg)
	for i := range 3 {
		admitted(t, s, Request{Client: fmt.Sprint("c", i)}).Done(Success)
	}
	if r := refused(t, s, Request{Client: "d"}, OverLimit); r.Rule != "site" || r.Verdicts[0].Remaining != 10 {
		t.Fatalf("refused by %q, the client has %d left of 10", r.Rule, r.Verdicts[0].Remaining)
	}
}

func TestDelayedExcessStartsInOrderAtItsTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(100, Queue{})
		cfg.Limits = []Limit{{
			Name: "smooth", Rule: limits.LeakyBucket{Capacity: 40, Leak: limits.PerSecond(20)}, Excess: Delay, Routes: []string{"orders"},
		}}
		cfg.Routes = []Route{{Name: "orders", Match: "POST /orders"}}
		s := open(t, cfg)
		start := time.Now()
		var mu sync.Mutex
		var order []int
		var all sync.WaitGroup
		for i := range 15 {
			all.Go(func() {
				time.Sleep(time.Duration(i)) // arrive one after the other
				p := admitted(t, s, Request{Client: "a", Route: "orders"})
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				if due, at := time.Duration(i)*50*ms, time.Since(start); at < due || at > due+ms {
					t.Errorf("order %d started at %v, its turn was %v", i, at, due)
				}
				p.Done(Success)
			})
		}
		all.Wait()
		for i, got := range order {
			if i != got {
				t.Fatalf("started in order %v", order)
			}
		}
		if st := s.Status(); st.Rules[0].Delayed != 14 || st.Parked != 0 {
			t.Fatalf("%d delayed, %d parked", st.Rules[0].Delayed, st.Parked)
		}
	})
}

func TestWhoLeavesTheTurnGivesItOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(100, Queue{})
		cfg.Limits = []Limit{{Name: "smooth", Rule: limits.LeakyBucket{Capacity: 10, Leak: limits.PerSecond(1)}, Excess: Delay, MaxWait: time.Minute}}
		s := open(t, cfg)
		admitted(t, s, Request{Client: "a"}).Done(Success)
		ctx, leave := context.WithCancel(t.Context())
		start := time.Now()
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := s.Admit(ctx, Request{Client: "a"}); !errors.Is(err, context.Canceled) {
				t.Errorf("who left: %v", err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			admitted(t, s, Request{Client: "a"}).Done(Success)
			if took := time.Since(start); took != time.Second {
				t.Errorf("the next in line started after %v, want the turn that became free, 1s", took)
			}
		})
		synctest.Wait()
		leave()
		all.Wait()
		if p, err := s.Admit(t.Context(), Request{Client: "a"}); err != nil || time.Since(start) != 2*time.Second {
			t.Fatalf("and the one after it at %v: %v", time.Since(start), err)
		} else {
			p.Done(Success)
		}
	})
}
