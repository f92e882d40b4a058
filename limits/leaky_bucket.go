package limits

import "fmt"

// LeakyBucket is the leaky bucket as a meter: every charge pours its cost in, Leak drains it continuously, and what would
// overflow Capacity is refused. Seen from outside it is the token bucket looked at from the other end, and shares its
// arithmetic. The leaky bucket as a queue, where nothing runs ahead of its turn, is Delay{Rule: LeakyBucket{...}}.
//
// Capacity counts everything that is in the bucket, also what was poured in just now: nginx's limit_req with burst=5
// compares to a Capacity of 6.
//
// The zero value has no Leak and is refused by NewPolicy. A Capacity of 0 refuses everything.
type LeakyBucket struct {
	Capacity int64
	Leak     Rate
}

// String returns the rule as the configuration file spells it.
func (b LeakyBucket) String() string {
	return fmt.Sprintf("leaky_bucket: {capacity: %d, leak: %v}", b.Capacity, b.Leak)
}

func (b LeakyBucket) compile() (arithmetic, error) { return b.meter(nil) }

// meter compiles the bucket, as a queue if wait is given.
func (b LeakyBucket) meter(wait *turns) (*Meter, error) {
	m, err := newMeter(b.Capacity, b.Leak, wait)
	if err != nil {
		return nil, fmt.Errorf("leaky_bucket: %w", err)
	}
	return m, nil
}
