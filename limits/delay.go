package limits

import (
	"errors"
	"fmt"
	"time"
)

// DefaultMaxWait is the MaxWait of a Delay that names none.
const DefaultMaxWait = 2 * time.Second

// Delay makes excess wait for its turn instead of refusing it. Verdict.Delay says how long; the turns are first come,
// first served, and waiting for them is the caller's part.
//
// Around a LeakyBucket it is the leaky bucket as a queue. Nothing runs ahead of its turn: whoever arrives starts when all
// that is ahead has drained, so of n simultaneous charges of 1 at an idle queue the k-th starts (k-1)/Leak later. Capacity
// is how many may wait: who would have more than Capacity ahead is refused.
//
// Around a TokenBucket what the tokens cover runs at once, and what they do not cover waits until they would.
//
// In both a wait above MaxWait is refused at once as OverLimit, with a RetryAfter after which the same charge is
// accepted (and may then wait). Remaining counts what would be accepted now, waiting included. A refund gives room back
// to those who come later; to move up those who already wait is the part of whoever parks them.
type Delay struct {
	// Rule is a TokenBucket or a LeakyBucket.
	Rule Rule
	// MaxWait is the longest turn given; 0 means DefaultMaxWait.
	MaxWait time.Duration
}

// turns is how a meter treats excess that may wait.
type turns struct {
	maxWait time.Duration
	queue   bool // judge a charge by what is ahead of it alone, and let nothing run ahead of its turn
}

// String returns the rule as the configuration file spells it.
func (d Delay) String() string {
	return fmt.Sprintf("%v, excess: delay, max_wait: %v", d.Rule, d.maxWait())
}

func (d Delay) maxWait() time.Duration {
	if d.MaxWait == 0 {
		return DefaultMaxWait
	}
	return d.MaxWait
}

func (d Delay) compile() (arithmetic, error) {
	if d.MaxWait < 0 {
		return nil, fmt.Errorf("max_wait: %v is negative; use a positive time, or 0 for %v", d.MaxWait, DefaultMaxWait)
	}
	switch r := d.Rule.(type) {
	case TokenBucket:
		return r.meter(&turns{maxWait: d.maxWait()})
	case LeakyBucket:
		return r.meter(&turns{maxWait: d.maxWait(), queue: true})
	case nil:
		return nil, errors.New("excess: delay: there is no rule to delay; give a token bucket or a leaky bucket")
	}
	return nil, fmt.Errorf("excess: delay: only token buckets and leaky buckets can give turns, not %v", d.Rule)
}
