package limits

import "fmt"

// TokenBucket allows bursts up to Capacity and Refill on average. The bucket starts full; a charge of cost c takes c whole
// tokens; tokens come back continuously, fractions included, up to Capacity. With Capacity 20 and Refill 5/s 20 pass at
// once, one second later 5 more, and after an idle hour 20 again.
//
// Over any span of time the bucket admits at most Capacity + Refill × span, so in the first period after an idle time up
// to a capacity and a refill together: 17 per 30 s with capacity 17 lets up to 34 through in 30 s.
//
// The zero value has no Refill and is refused by NewPolicy. A Capacity of 0 refuses everything.
type TokenBucket struct {
	Capacity int64
	Refill   Rate
}

// String returns the rule as the configuration file spells it.
func (b TokenBucket) String() string {
	return fmt.Sprintf("token_bucket: {capacity: %d, refill: %v}", b.Capacity, b.Refill)
}

func (b TokenBucket) compile() (arithmetic, error) { return b.meter(nil) }

// meter compiles the bucket, with turns if wait is given.
func (b TokenBucket) meter(wait *turns) (*Meter, error) {
	m, err := newMeter(b.Capacity, b.Refill, wait)
	if err != nil {
		return nil, fmt.Errorf("token_bucket: %w", err)
	}
	return m, nil
}
