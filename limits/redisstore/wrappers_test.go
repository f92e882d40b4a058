package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/storetest"
)

// onTime is a Refusals whose clock goes with the times that it is told, in the whole microseconds in which balances are kept. A
// process's own clock never goes back: what comes from before goes by.
type onTime struct {
	*Refusals
	mu  sync.Mutex
	now time.Time
}

// clock is the time that it was told last.
func (o *onTime) clock() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now
}

// goOn sets the clock, unless it would go back.
func (o *onTime) goOn(at time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at.Before(o.now) {
		return false
	}
	o.now = at
	return true
}

func (o *onTime) Take(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	if !o.goOn(now.Truncate(time.Microsecond)) {
		return o.inner.Take(ctx, now, charges)
	}
	return o.Refusals.Take(ctx, now, charges)
}

// TestRefusalsKeepThePromises: what is answered from memory is what the store would have answered.
func TestRefusalsKeepThePromises(t *testing.T) {
	client := redistest.Shared(t)
	var hits atomic.Int64
	storetest.Run(t, func(t *testing.T) limits.Store {
		r, err := NewRefusals(played(open(t, client, Config{})), 0)
		if err != nil {
			t.Fatal(err)
		}
		o := &onTime{Refusals: r}
		r.clock = o.clock
		t.Cleanup(func() { hits.Add(r.hits.Load()) })
		return o
	})
	if hits.Load() == 0 {
		t.Error("nothing was answered from memory: the suite says nothing about it")
	}
}

// TestLeasesKeepThePromises: what is not leased is not touched. What is tells of balances what was known when a block was
// taken, which is not what the suite is about: see the tests of its own bound.
func TestLeasesKeepThePromises(t *testing.T) {
	client := redistest.Shared(t)
	storetest.Run(t, func(t *testing.T) limits.Store {
		l, err := NewLeases(played(open(t, client, Config{})), LeaseConfig{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	})
}
