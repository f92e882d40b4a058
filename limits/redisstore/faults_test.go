package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/limits"
)

// patient is a timeout for tests that are about something else, on a machine that may be busy.
const patient = 5 * time.Second

// guarded makes a Guard on a client and lets it greet: what a test breaks afterwards is seen by the test's own calls. What it
// tells is collected.
func guarded(t *testing.T, client redis.UniversalClient, cfg GuardConfig) *told {
	t.Helper()
	s, err := New(client, Config{})
	if err != nil {
		t.Fatal(err)
	}
	told := &told{}
	cfg.OnChange, cfg.Warn = told.change, told.warn
	if told.Guard, err = NewGuard(s, cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { told.Close() })
	<-told.greeted
	return told
}

// opened makes a Guard on an address.
func opened(t *testing.T, address string, o Options, cfg GuardConfig) *told {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = cfg.Timeout
	}
	client, err := Open(address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return guarded(t, client, cfg)
}

func at(s *redistest.Server) string { return "redis://" + s.Addr }

// told is a Guard and what it has told.
type told struct {
	*Guard
	mu       sync.Mutex
	changes  []Change
	warnings []string
}

func (o *told) change(c Change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes = append(o.changes, c)
}

func (o *told) warn(w string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.warnings = append(o.warnings, w)
}

// hears waits until the store is in a state.
func (o *told) hears(t *testing.T, s State) {
	t.Helper()
	wait.Until(t, "the state "+string(s), func() bool { return o.Report().State == string(s) })
}

// warned waits for a warning with all words.
func (o *told) warned(t *testing.T, words ...string) {
	t.Helper()
	wait.Until(t, fmt.Sprint("a warning with ", words), func() bool {
		for _, w := range o.Report().Warnings {
			all := true
			for _, word := range words {
				all = all && strings.Contains(w, word)
			}
			if all {
				return true
			}
		}
		return false
	})
}

// tally is what became of many decisions.
type tally struct {
	by                 [limits.FromClosed + 1]atomic.Int64 // all decisions
	admitted           [limits.FromClosed + 1]atomic.Int64 // units
	unavailable, wrong atomic.Int64
	longest            atomic.Int64
}

func (c *tally) one(t *testing.T, g *told, charges []limits.Charge) limits.Source {
	begin := time.Now()
	d, err := g.Take(context.Background(), time.Time{}, charges)
	for took := int64(time.Since(begin)); ; {
		if was := c.longest.Load(); took <= was || c.longest.CompareAndSwap(was, took) {
			break
		}
	}
	var u *limits.UnavailableError
	switch {
	case errors.As(err, &u):
		c.unavailable.Add(1)
	case err != nil:
		if c.wrong.Add(1) < 5 {
			t.Errorf("an error reached the caller: %v", err)
		}
	case d.Allowed:
		c.admitted[d.Source].Add(charges[0].Cost)
	}
	c.by[d.Source].Add(1)
	return d.Source
}

// load asks from many callers until stop is called.
func (c *tally) load(t *testing.T, g *told, callers int, charges func(caller, i int) []limits.Charge) (stop func()) {
	var wg sync.WaitGroup
	done := make(chan struct{})
	for n := range callers {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
					c.one(t, g, charges(n, i))
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	var once sync.Once
	stop = func() { once.Do(func() { close(done); wg.Wait() }) }
	t.Cleanup(stop)
	return stop
}

// always asks about the same.
func always(p *limits.Policy, key string) func(int, int) []limits.Charge {
	charges := single(p, key, 1)
	return func(int, int) []limits.Charge { return charges }
}

// slow is a rule whose balance shows how often it was charged: it hardly gives anything back.
var slow = limits.TokenBucket{Capacity: 40_000, Refill: limits.Rate{Amount: 1, Per: 10 * time.Hour}}

// charged is how much of a slow rule is used, as Redis has it.
func charged(t *testing.T, client redis.UniversalClient, p *limits.Policy, key string) int64 {
	t.Helper()
	s, err := New(client, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := s.Peek(context.Background(), time.Time{}, single(p, key, 0))
	if err != nil {
		t.Fatal(err)
	}
	return p.Quota() - d.At(0).Remaining
}
