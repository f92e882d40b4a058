package limits_test

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// TestSubBucketsAreTheWholeTogether: capacities, quotas and rates add up to what was divided.
func TestSubBucketsAreTheWholeTogether(t *testing.T) {
	large := limits.Rate{Amount: 999_983, Per: limits.Day}
	for _, c := range []struct {
		rule limits.Rule
		n    int
		at   []int64 // what some hold at once
	}{
		{limits.TokenBucket{Capacity: 10, Refill: limits.PerSecond(7)}, 4, []int64{3, 3, 2, 2}},
		{limits.LeakyBucket{Capacity: 1000, Leak: limits.PerMinute(10)}, 3, []int64{334, 333, 333}},
		{limits.FixedWindow{Quota: limits.PerMinute(101)}, 2, []int64{51, 50}},
		{limits.TokenBucket{Capacity: 9_000_000, Refill: large}, 256, nil},
	} {
		p := mustPolicy(t, "p", c.rule, limits.InSubBuckets(c.n), limits.Strict())
		parts, held, amount := p.SubBuckets(), int64(0), int64(0)
		if len(parts) != c.n {
			t.Fatalf("%v: %d parts", c.rule, len(parts))
		}
		for i, part := range parts {
			if held += part.Quota(); i < len(c.at) && part.Quota() != c.at[i] {
				t.Errorf("%v: part %d holds %d, want %d", c.rule, i, part.Quota(), c.at[i])
			}
			if !part.Strict() || part.SubBuckets() != nil || part.Name() == p.Name() {
				t.Errorf("%v: part %v", c.rule, part)
			}
			n, whole := part.Numbers(), p.Numbers()
			if n.Arithmetic == limits.CountsDebt { // what it brings in a time that all rates are whole in
				amount += n.Meter.Drain * (whole.Meter.Unit * int64(c.n) / n.Meter.Unit) * int64(whole.Meter.Tick/n.Meter.Tick)
			}
		}
		if held != p.Quota() {
			t.Errorf("%v: the parts hold %d", c.rule, held)
		}
		if m, ok := p.Meter(); ok && amount != m.Drain*int64(c.n) && c.n < 256 {
			t.Errorf("%v: the parts bring %d, want %d", c.rule, amount, m.Drain*int64(c.n))
		}
	}
}

func TestSubBucketsThatCannotBe(t *testing.T) {
	bucket := limits.TokenBucket{Capacity: 10, Refill: limits.PerSecond(7)}
	for i, c := range []struct {
		rule limits.Rule
		n    int
	}{
		{bucket, 1}, {bucket, -1}, {bucket, limits.MaxSubBuckets + 1}, {bucket, 11},
		{limits.Delay{Rule: bucket, MaxWait: time.Second}, 2}, {limits.InFlight{Max: 9}, 2}, {limits.SlidingLog{Quota: limits.PerSecond(9)}, 2},
		{limits.TokenBucket{Capacity: 4, Refill: limits.Rate{Amount: 1, Per: 49 * 365 * limits.Day}}, 4},
	} {
		if _, err := limits.NewPolicy("p", c.rule, limits.InSubBuckets(c.n)); err == nil {
			t.Errorf("%d: %v in %d is accepted", i, c.rule, c.n)
		}
	}
}
