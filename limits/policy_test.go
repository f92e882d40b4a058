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
		{FixedWindow{PerMinute(60)}, "fixed_window: {quota: 60/min}", 60, time.Minute}, // not 1/s
		{FixedWindow{Rate{Per: time.Minute}}, "fixed_window: {quota: 0/min}", 0, time.Minute},
		{SlidingLog{Rate{Amount: 10, Per: 2 * time.Second}}, "sliding_log: {quota: 10/2s}", 10, 2 * time.Second},
		{SlidingWindow{PerDay(1_000_000)}, "sliding_window: {quota: 1000000/day}", 1_000_000, Day},
		{Burst{Soft: PerSecond(100), Hard: PerSecond(200)}, "burst: {soft: 100/s, hard: 200/s}", 200, time.Second},
		{Burst{PerSecond(100), PerSecond(200), PerMinute(10_000)}, "burst: {soft: 100/s, hard: 200/s, total: 10000/min}", 200, time.Second},
		{Burst{PerSecond(100), PerSecond(200), PerMinute(150)}, "burst: {soft: 100/s, hard: 200/s, total: 150/min}", 150, time.Second},
		{InFlight{8}, "in_flight: {max: 8}", 8, 0},
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
		{"p", FixedWindow{}, "fixed_window: no rate is given; write one, such as 5/s"},
		{"p", FixedWindow{Rate{Amount: -1, Per: time.Second}}, "fixed_window: a rate of -1 is negative"},
		{"p", FixedWindow{Rate{Amount: 0, Per: 1500 * time.Microsecond}}, "fixed_window: a period of 1.5ms is not whole milliseconds"},
		{"p", FixedWindow{PerSecond(math.MaxInt64)}, "fixed_window: a quota of 9223372036854775807 is above 2^53; lower it"},
		{"p", FixedWindow{Rate{Amount: 1, Per: 60 * 365 * Day}}, "fixed_window: a window of more than 50 years never passes; shorten it"},
		{"p", SlidingLog{}, "sliding_log: no rate is given"},
		{"p", SlidingLog{PerDay(5 << 20)}, "sliding_log: a quota of 5242880 would take up to 80 MB for each key; use a sliding_window, or lower it to 1048576"},
		{"p", SlidingWindow{}, "sliding_window: no rate is given"},
		{"p", SlidingWindow{PerDay(1 << 40)}, "sliding_window: a quota of 1099511627776/day needs numbers above 2^53; lower it, or use a token_bucket"},
		{"p", Burst{}, "burst: soft: no rate is given; write one, such as 5/s"},
		{"p", Burst{Soft: PerSecond(1)}, "burst: hard: no rate is given"},
		{"p", Burst{Soft: PerSecond(1), Hard: PerMinute(60)}, "burst: soft 1/s and hard 60/min have different periods; write both as N/s"},
		{"p", Burst{Soft: PerSecond(3), Hard: PerSecond(2)}, "burst: hard 2/s is below soft 3/s; raise hard, or lower soft"},
		{"p", Burst{Soft: Rate{Per: time.Second}, Hard: PerSecond(2)}, "burst: soft is 0, so that what passes is never paid back; use at least 1/s"},
		{"p", Burst{Soft: PerSecond(1), Hard: PerSecond(Exact)}, "burst: a hard rate of 9007199254740992 is above 2^52"},
		{"p", Burst{PerSecond(1), PerSecond(2), Rate{Amount: 9, Per: 1500 * time.Millisecond}}, "burst: the period of total 9/1500ms is not a multiple of that of hard 2/s; make it one"},
		{"p", Burst{PerSecond(1), PerSecond(2), Rate{Amount: 9, Per: 500 * time.Millisecond}}, "is not a multiple of that of hard 2/s"},
		{"p", Burst{PerSecond(1), PerSecond(2), PerMinute(-9)}, "burst: total: a rate of -9 is negative"},
		{"p", Burst{Rate{Amount: 1, Per: time.Millisecond}, Rate{Amount: 2, Per: time.Millisecond}, PerDay(2 << 20)}, "burst: total 2097152/day would need more than 1048576 periods of 1ms to be remembered; use longer periods"},
		{"p", InFlight{-1}, "in_flight: max -1 is negative; use 0 to refuse all, or more"},
		{"p", InFlight{math.MaxInt64}, "in_flight: max 9223372036854775807 is above 2^52; lower it"},
		{"p", Delay{Rule: FixedWindow{PerSecond(1)}}, "excess: delay: only token buckets and leaky buckets can give turns, not fixed_window: {quota: 1/s}"},
		{"p", Delay{Rule: InFlight{1}}, "excess: delay: only token buckets"},
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
