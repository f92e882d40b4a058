package limits

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestPolicyTellsWhatItIs(t *testing.T) {
	for _, v := range []struct {
		rule   Rule
		print  string
		quota  int64
		window time.Duration
	}{
		{TokenBucket{20, PerSecond(5)}, "token_bucket: {capacity: 20, refill: 5/s}", 20, 4 * time.Second},
		{TokenBucket{1, PerSecond(3)}, "token_bucket: {capacity: 1, refill: 3/s}", 1, 333_334 * time.Microsecond},
		{TokenBucket{0, PerSecond(3)}, "token_bucket: {capacity: 0, refill: 3/s}", 0, 0},
		{LeakyBucket{100, PerMinute(50)}, "leaky_bucket: {capacity: 100, leak: 50/min}", 100, 2 * time.Minute},
		{TokenBucket{999_983, PerDay(999_983)}, "token_bucket: {capacity: 999983, refill: 999983/day}", 999_983, Day},
		{Delay{Rule: LeakyBucket{40, PerSecond(20)}}, "leaky_bucket: {capacity: 40, leak: 20/s}, excess: delay, max_wait: 2s", 40, 2 * time.Second},
		{Delay{TokenBucket{4, PerSecond(2)}, time.Minute}, "token_bucket: {capacity: 4, refill: 2/s}, excess: delay, max_wait: 1m0s", 4, 2 * time.Second},
	} {
		p, err := NewPolicy("p", v.rule)
		if err != nil {
			t.Errorf("%v: %v", v.rule, err)
			continue
		}
		if p.Name() != "p" || p.Rule() != v.rule || p.String() != "p: "+v.print || p.Quota() != v.quota || p.Window() != v.window {
			t.Errorf("%q is %q of %d in %v, want %q of %d in %v", p.Name(), p, p.Quota(), p.Window(), v.print, v.quota, v.window)
		}
	}
}

func TestImpossiblePoliciesAreRefusedWithAWayToMendThem(t *testing.T) {
	good := TokenBucket{Capacity: 1, Refill: PerSecond(1)}
	for _, v := range []struct {
		name string
		rule Rule
		want string
	}{
		{"", good, `limits: policy "": the name is empty; metrics, headers and refusals need one`},
		{"per client\n", good, `limits: policy "per client\n": the name contains the byte 0x0a; use printable ASCII`},
		{"pro-Gerät", good, "the name contains the byte 0xc3; use printable ASCII"},
		{"p\x7f", good, "the byte 0x7f"},
		{"p", nil, `limits: policy "p": there is no rule; give one, such as limits.TokenBucket{`},
		{"p", (*TokenBucket)(nil), "rules are values; give limits.TokenBucket instead of a pointer to it"},
		{"p", &good, "rules are values"},
		{"p", TokenBucket{}, `limits: policy "p": token_bucket: no rate is given; write one, such as 5/s`},
		{"p", TokenBucket{-1, PerSecond(1)}, "token_bucket: capacity -1 is negative; use 0 to refuse all, or more"},
		{"p", TokenBucket{1, PerSecond(0)}, "token_bucket: a rate of 0 never lets anything through"},
		{"p", TokenBucket{1, PerSecond(-3)}, "a rate of -3 is negative; use at least 1"},
		{"p", TokenBucket{1, Rate{Amount: 1}}, "a period of 0s is not positive"},
		{"p", TokenBucket{1, Rate{Amount: 1, Per: -time.Second}}, "a period of -1s is not positive"},
		{"p", TokenBucket{1, Rate{Amount: 1, Per: 1500 * time.Microsecond}}, "a period of 1.5ms is not whole milliseconds; multiply amount and period alike"},
		{"p", LeakyBucket{1, Rate{}}, "leaky_bucket: no rate is given"},
		{"p", LeakyBucket{-9, PerSecond(1)}, "leaky_bucket: capacity -9 is negative"},
		{"p", TokenBucket{math.MaxInt64, PerSecond(1)}, "capacity 9223372036854775807 at 1/s needs numbers above 2^53; lower the capacity"},
		{"p", TokenBucket{1, Rate{Amount: math.MaxInt64, Per: time.Millisecond}}, "needs numbers above 2^53"},
		{"p", TokenBucket{1_000_000, PerDay(1)}, "would take more than 50 years to be full again; lower the capacity or raise the rate"},
		{"p", Delay{}, "excess: delay: there is no rule to delay"},
		{"p", Delay{Rule: Delay{Rule: good}}, "excess: delay: only token buckets and leaky buckets can give turns, not token_bucket:"},
		{"p", Delay{Rule: &good}, "excess: delay: only token buckets"},
		{"p", Delay{Rule: good, MaxWait: -1}, "max_wait: -1ns is negative; use a positive time, or 0 for 2s"},
		{"p", Delay{Rule: TokenBucket{}}, "token_bucket: no rate is given"},
		{"p", Delay{Rule: TokenBucket{1, PerSecond(1_000_000_000)}, MaxWait: 9000 * time.Hour}, "needs numbers above 2^53; lower the capacity or the wait"},
	} {
		p, err := NewPolicy(v.name, v.rule)
		if err == nil {
			t.Errorf("%q with %v is accepted: %v", v.name, v.rule, p)
		} else if !strings.Contains(err.Error(), v.want) || !strings.HasPrefix(err.Error(), "limits: policy ") {
			t.Errorf("%q with %v: %v\nwant ... %s ...", v.name, v.rule, err, v.want)
		}
	}
}

func TestRatesAreReducedToWholeUnits(t *testing.T) {
	for _, v := range []struct {
		rule        Rule
		tick        time.Duration
		drain, unit int64
	}{
		{TokenBucket{1, PerSecond(100)}, time.Microsecond, 1, 10_000},
		{TokenBucket{1, PerSecond(7)}, time.Microsecond, 7, 1_000_000},
		{TokenBucket{1, Rate{Amount: 10, Per: 13 * time.Second}}, time.Microsecond, 1, 1_300_000},
		{TokenBucket{1, PerSecond(1_000_000_000)}, time.Microsecond, 1000, 1},
		{TokenBucket{1, PerSecond(600_000_000)}, time.Microsecond, 600, 1},
		{TokenBucket{1_000_000, PerDay(1_000_000)}, time.Microsecond, 1, 86_400},
		{TokenBucket{999_983, PerDay(999_983)}, time.Millisecond, 999_983, 86_400_000},
		{TokenBucket{104_249, PerDay(999_983)}, time.Microsecond, 999_983, 86_400_000_000}, // the last that fits 2^53
		{TokenBucket{104_250, PerDay(999_983)}, time.Millisecond, 999_983, 86_400_000},
	} {
		p, err := NewPolicy("p", v.rule)
		if err != nil {
			t.Errorf("%v: %v", v.rule, err)
			continue
		}
		m, ok := p.Meter()
		if !ok || m.Tick != v.tick || m.Drain != v.drain || m.Unit != v.unit {
			t.Errorf("%v: %d units per %v, %d per token; want %d per %v, %d", v.rule, m.Drain, m.Tick, m.Unit, v.drain, v.tick, v.unit)
		}
		if m.Bound > Exact {
			t.Errorf("%v: debts up to %d", v.rule, m.Bound)
		}
	}
}
