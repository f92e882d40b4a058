// Package flawed breaks the library in named ways, so that tests can show that the criteria of scenarios see it. A criterion
// that no flaw turns red proves nothing.
package flawed

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

// The flaws.
const (
	NoQueue     = "no-queue"     // nobody waits: what does not fit now is refused
	NoRefund    = "no-refund"    // quota that was taken for a request that did not run is gone
	FloatBucket = "float-bucket" // balances are floating-point numbers, brought up to date at each look
)

// Names lists all flaws.
var Names = []string{NoQueue, NoRefund, FloatBucket}

// Break puts the flaw into cfg; "" puts none.
func Break(cfg *shed.Config, flaw string) error {
	switch flaw {
	case "":
	case NoQueue:
		cfg.Queue.Capacity = -1
	case NoRefund:
		cfg.Store = keeper{cfg.Store}
	case FloatBucket:
		cfg.Store = &floats{balances: make(map[key]*balance)}
	default:
		return fmt.Errorf("bench: flaw %q is none of %v", flaw, Names)
	}
	return nil
}

// keeper is a store that keeps what it has taken.
type keeper struct{ limits.Store }

func (keeper) Refund(context.Context, time.Time, limits.Decision) error { return nil }

// floats is the token bucket that everybody writes first: tokens are a float64, and each look adds rate × elapsed. Sums of
// fractions that binary cannot hold come out a little below what is due, so that a client that waits exactly as long as it
// should is refused.
type floats struct {
	mu       sync.Mutex
	balances map[key]*balance
}

type key struct{ policy, name string }

type balance struct {
	tokens float64
	at     time.Time
}

func (f *floats) Take(_ context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := limits.Decision{Allowed: true}
	for _, c := range charges {
		b, rate := f.look(now, c)
		v := limits.Verdict{Policy: c.Policy, Key: c.Key, Cost: c.Cost, Remaining: int64(b.tokens), Taken: limits.NotTaken}
		if b.tokens < float64(c.Cost) {
			v.Reason = limits.OverLimit
			v.RetryAfter = time.Duration((float64(c.Cost) - b.tokens) / rate * float64(time.Second))
			d.Allowed = false
		}
		d.Append(v)
	}
	if d.Allowed {
		for _, c := range charges {
			b, _ := f.look(now, c)
			b.tokens -= float64(c.Cost)
		}
	}
	return d, nil
}

// look brings the balance up to date.
func (f *floats) look(now time.Time, c limits.Charge) (*balance, float64) {
	bucket, ok := c.Policy.Rule().(limits.TokenBucket)
	if !ok {
		return &balance{tokens: 1 << 30}, 1 // other rules are not what this flaw is about
	}
	rate := float64(bucket.Refill.Amount) / bucket.Refill.Per.Seconds()
	k := key{c.Policy.Name(), c.Key}
	b := f.balances[k]
	if b == nil {
		b = &balance{tokens: float64(bucket.Capacity), at: now}
		f.balances[k] = b
	}
	b.tokens = min(float64(bucket.Capacity), b.tokens+now.Sub(b.at).Seconds()*rate)
	b.at = now
	return b, rate
}

func (f *floats) Peek(_ context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	return limits.Decision{Allowed: true}, nil
}

func (f *floats) Refund(_ context.Context, _ time.Time, d limits.Decision) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range d.Len() {
		v := d.At(i)
		if b := f.balances[key{v.Policy.Name(), v.Key}]; b != nil {
			b.tokens += float64(v.Cost)
		}
	}
	return nil
}
