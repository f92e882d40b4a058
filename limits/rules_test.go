package limits_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// row is one call in the life of a balance.
type row struct {
	at        time.Duration // since noon
	cost      int64
	want      limits.Reason
	remaining int64
	wait      time.Duration // RetryAfter of a refusal, Delay of an admission
	why       string
}

// follow plays rows against one balance of rule.
func follow(t *testing.T, rule limits.Rule, rows []row) {
	t.Helper()
	p := must(limits.NewPolicy("followed", rule))
	m := newMemory(t, limits.MemoryConfig{})
	for i, r := range rows {
		d, err := m.Take(context.Background(), noon.Add(r.at), []limits.Charge{{Policy: p, Key: "k", Cost: r.cost}})
		if err != nil {
			t.Fatal(err)
		}
		v := d.At(0)
		if v.Reason != r.want || v.Remaining != r.remaining || v.RetryAfter+v.Delay != r.wait {
			t.Errorf("%v, row %d (%s): %v, remaining %d, wait %v; want %v, %d, %v",
				rule, i, r.why, v.Reason, v.Remaining, v.RetryAfter+v.Delay, r.want, r.remaining, r.wait)
		}
	}
}

func TestTokenBucketAccruesFractionsAndNeedsWholeTokens(t *testing.T) {
	follow(t, limits.TokenBucket{Capacity: 3, Refill: limits.Rate{Amount: 1, Per: 2 * time.Second}}, []row{
		{0, 3, limits.Allowed, 0, 0, "starts full"},
		{1999 * time.Millisecond, 1, limits.OverLimit, 0, time.Millisecond, "almost a token is none"},
		{2000 * time.Millisecond, 1, limits.Allowed, 0, 0, "exactly one"},
		{5000 * time.Millisecond, 1, limits.Allowed, 0, 0, "one, and half a one is kept"},
		{6000 * time.Millisecond, 1, limits.Allowed, 0, 0, "the other half"},
		{6000 * time.Millisecond, 2, limits.OverLimit, 0, 4 * time.Second, "a cost of 2 waits for two"},
		{time.Hour, 4, limits.CostTooLarge, 3, 0, "never, so no time is promised"},
		{time.Hour, 0, limits.Allowed, 3, 0, "looking takes nothing"},
		{time.Hour, 3, limits.Allowed, 0, 0, "an hour fills it to its capacity and no further"},
		{time.Hour, 0, limits.Allowed, 0, 0, "looking is free also when there is nothing"},
	})
}

func TestFractionalRateBelowOneStillAdmitsItsCapacity(t *testing.T) {
	follow(t, limits.TokenBucket{Capacity: 1, Refill: limits.Rate{Amount: 1, Per: 2 * time.Second}}, []row{
		{0, 1, limits.Allowed, 0, 0, "0.5/s with a capacity of 1"},
		{0, 1, limits.OverLimit, 0, 2 * time.Second, ""},
		{2 * time.Second, 1, limits.Allowed, 0, 0, ""},
	})
}

func TestNoAdmissionHalfAnIntervalEarly(t *testing.T) {
	p := must(limits.NewPolicy("p", limits.TokenBucket{Capacity: 1, Refill: limits.Rate{Amount: 1, Per: 10 * time.Second}}))
	m := newMemory(t, limits.MemoryConfig{})
	var passed []time.Duration
	for at := time.Duration(0); at <= 20*time.Second; at += 200 * time.Millisecond {
		if must(m.Take(context.Background(), noon.Add(at), []limits.Charge{{Policy: p, Key: "k", Cost: 1}})).Allowed {
			passed = append(passed, at)
		}
	}
	if len(passed) != 3 || passed[1] != 10*time.Second || passed[2] != 20*time.Second {
		t.Errorf("polled every 200ms one per 10s passes at %v", passed)
	}
}

func TestZeroCapacityRefusesAllAndPromisesNoTime(t *testing.T) {
	for _, rule := range []limits.Rule{
		limits.TokenBucket{Refill: limits.PerSecond(1)},
		limits.LeakyBucket{Leak: limits.PerSecond(1)},
		limits.Delay{Rule: limits.LeakyBucket{Leak: limits.PerSecond(1)}},
		limits.Delay{Rule: limits.TokenBucket{Refill: limits.PerSecond(1)}},
	} {
		follow(t, rule, []row{
			{0, 1, limits.CostTooLarge, 0, 0, "a first charge"},
			{time.Hour, 1, limits.CostTooLarge, 0, 0, "an hour later"},
			{time.Hour, math.MaxInt64, limits.CostTooLarge, 0, 0, "a huge cost"},
			{time.Hour, 0, limits.Allowed, 0, 0, "looking"},
		})
	}
}

// nginx with burst=5 and rate=10r/s lets one request through and five more ahead of the rate: a capacity of 6 here.
func TestLeakyBucketComparesToNginxWithNodelay(t *testing.T) {
	rows := []row{}
	for i := range int64(6) {
		rows = append(rows, row{0, 1, limits.Allowed, 5 - i, 0, "within the burst"})
	}
	rows = append(rows,
		row{0, 1, limits.OverLimit, 0, 100 * time.Millisecond, "the seventh"},
		row{100 * time.Millisecond, 1, limits.Allowed, 0, 0, "one has leaked"},
	)
	follow(t, limits.LeakyBucket{Capacity: 6, Leak: limits.PerSecond(10)}, rows)
}

// nginx with burst=5 and no delay parameter: the first starts at once and five wait for their turns. Here Capacity counts
// those who wait, so it is the same 5.
func TestQueueGivesTheTurnsOfNginx(t *testing.T) {
	follow(t, limits.Delay{Rule: limits.LeakyBucket{Capacity: 5, Leak: limits.PerSecond(10)}}, []row{
		{0, 1, limits.Allowed, 5, 0, "starts"},
		{0, 1, limits.Allowed, 4, 100 * time.Millisecond, "waits"},
		{0, 1, limits.Allowed, 3, 200 * time.Millisecond, "waits"},
		{0, 1, limits.Allowed, 2, 300 * time.Millisecond, "waits"},
		{0, 1, limits.Allowed, 1, 400 * time.Millisecond, "waits"},
		{0, 1, limits.Allowed, 0, 500 * time.Millisecond, "the fifth to wait"},
		{0, 1, limits.OverLimit, 0, 100 * time.Millisecond, "no place"},
		{100 * time.Millisecond, 1, limits.Allowed, 0, 500 * time.Millisecond, "a place has become free"},
	})
}

// nginx with burst=5 and delay=3: four run at once, two wait. A token bucket of 4 that lets 200 ms wait says the same.
func TestTokenBucketWithTurnsComparesToNginxWithDelay(t *testing.T) {
	follow(t, limits.Delay{Rule: limits.TokenBucket{Capacity: 4, Refill: limits.PerSecond(10)}, MaxWait: 200 * time.Millisecond}, []row{
		{0, 1, limits.Allowed, 4, 0, "at once"},
		{0, 1, limits.Allowed, 4, 0, "at once"},
		{0, 1, limits.Allowed, 3, 0, "at once"},
		{0, 1, limits.Allowed, 2, 0, "at once"},
		{0, 1, limits.Allowed, 1, 100 * time.Millisecond, "waits"},
		{0, 1, limits.Allowed, 0, 200 * time.Millisecond, "waits"},
		{0, 1, limits.OverLimit, 0, 100 * time.Millisecond, "would wait for longer than allowed"},
	})
}

func TestFixedWindowStartsAnewOnTheMinute(t *testing.T) {
	follow(t, limits.FixedWindow{Quota: limits.PerMinute(100)}, []row{
		{59 * time.Second, 100, limits.Allowed, 0, 0, "all at the end of a minute"},
		{59 * time.Second, 1, limits.OverLimit, 0, time.Second, "a second before the next"},
		{60*time.Second - time.Nanosecond, 1, limits.OverLimit, 0, time.Microsecond, "a moment before the next"},
		{60 * time.Second, 100, limits.Allowed, 0, 0, "and all again"},
		{30 * time.Second, 1, limits.OverLimit, 0, 90 * time.Second, "who read the clock before is in that minute too"},
		{3 * time.Minute, 101, limits.CostTooLarge, 100, 0, "never"},
	})
}

func TestSlidingLogGivesEachChargeBackAfterItsOwnTime(t *testing.T) {
	follow(t, limits.SlidingLog{Quota: limits.PerMinute(10)}, []row{
		{50 * time.Second, 6, limits.Allowed, 4, 0, "starts empty"},
		{70 * time.Second, 4, limits.Allowed, 0, 0, "in the next minute of the clock"},
		{70 * time.Second, 1, limits.OverLimit, 0, 40 * time.Second, "the first six come back at 1:50"},
		{70 * time.Second, 7, limits.OverLimit, 0, 60 * time.Second, "for seven the four have to come back too"},
		{110*time.Second - time.Microsecond, 1, limits.OverLimit, 0, time.Microsecond, "not quite"},
		{110 * time.Second, 6, limits.Allowed, 0, 0, "there they are"},
		{130 * time.Second, 4, limits.Allowed, 0, 0, "and the four"},
	})
}

func TestSlidingWindowWeighsTheWindowBefore(t *testing.T) {
	follow(t, limits.SlidingWindow{Quota: limits.PerMinute(100)}, []row{
		{10 * time.Second, 80, limits.Allowed, 20, 0, ""},
		{75 * time.Second, 20, limits.Allowed, 20, 0, "80 × 45/60 + 20 = 80"},
		{75 * time.Second, 21, limits.OverLimit, 20, 750 * time.Millisecond, "80 in 60s slide out one in 0.75s"},
		{75750 * time.Millisecond, 21, limits.Allowed, 0, 0, ""},
		{75750 * time.Millisecond, 100, limits.OverLimit, 0, 104250 * time.Millisecond, "when all has slid out, at 3:00"},
	})
}

func TestBurstTakesItsDebtFromTheNextPeriods(t *testing.T) {
	burst := limits.Burst{Soft: limits.PerSecond(100), Hard: limits.PerSecond(200)}
	follow(t, burst, []row{
		{0, 120, limits.Allowed, 80, 0, "20 above soft"},
		{time.Second, 81, limits.OverLimit, 80, time.Second, "80 may pass in the next"},
		{time.Second, 80, limits.Allowed, 0, 0, ""},
		{2 * time.Second, 200, limits.Allowed, 0, 0, "the debt is paid"},
		{3 * time.Second, 1, limits.OverLimit, 0, time.Second, "200 passed: none"},
		{time.Hour, 201, limits.CostTooLarge, 200, 0, "unused allowance is not saved"},
	})
	burst.Total = limits.PerMinute(250)
	follow(t, burst, []row{
		{0, 200, limits.Allowed, 0, 0, ""},
		{2 * time.Second, 51, limits.OverLimit, 50, 58 * time.Second, "the total binds"},
		{2 * time.Second, 50, limits.Allowed, 0, 0, ""},
		{59 * time.Second, 1, limits.OverLimit, 0, time.Second, ""},
		{time.Minute, 200, limits.Allowed, 0, 0, "the first second has left the run"},
	})
}

func TestZeroQuotaRefusesAllAndPromisesNoTime(t *testing.T) {
	none := limits.Rate{Per: time.Minute}
	for _, rule := range []limits.Rule{
		limits.FixedWindow{Quota: none}, limits.SlidingLog{Quota: none}, limits.SlidingWindow{Quota: none},
		limits.Burst{Soft: none, Hard: none}, limits.Burst{Soft: limits.PerMinute(1), Hard: limits.PerMinute(2), Total: limits.Rate{Per: time.Hour}},
		limits.InFlight{},
	} {
		follow(t, rule, []row{
			{0, 1, limits.CostTooLarge, 0, 0, "a first charge"},
			{time.Hour, 1, limits.CostTooLarge, 0, 0, "an hour later"},
			{time.Hour, math.MaxInt64, limits.CostTooLarge, 0, 0, "a huge cost"},
			{time.Hour, 0, limits.Allowed, 0, 0, "looking"},
		})
	}
}

func TestBindingNamesTheSmallestShareThatIsLeft(t *testing.T) {
	small := must(limits.NewPolicy("small", limits.TokenBucket{Capacity: 10, Refill: limits.PerHour(1)}))
	large := must(limits.NewPolicy("large", limits.TokenBucket{Capacity: 1000, Refill: limits.PerHour(1)}))
	m := newMemory(t, limits.MemoryConfig{})
	d := must(m.Take(context.Background(), noon, []limits.Charge{{Policy: large, Key: "k", Cost: 200}, {Policy: small, Key: "k", Cost: 1}}))
	if d.Binding().Policy != large { // 80 % left against 90 %
		t.Errorf("binding is %v", d.Binding().Policy)
	}
	d = must(m.Take(context.Background(), noon, []limits.Charge{{Policy: large, Key: "k", Cost: 1}, {Policy: small, Key: "k", Cost: 8}}))
	if d.Binding().Policy != small {
		t.Errorf("binding is %v", d.Binding().Policy)
	}
	var none limits.Decision
	if none.Binding() != nil || none.Allowed || none.Len() != 0 || none.Delay() != 0 {
		t.Error("the zero decision is not an empty refusal")
	}
}

func TestReasonsAreOneWord(t *testing.T) {
	for r, want := range map[limits.Reason]string{
		limits.Allowed: "allowed", limits.OverLimit: "over_limit", limits.CostTooLarge: "cost_too_large", limits.TooManyInFlight: "in_flight", 99: "unknown",
	} {
		if r.String() != want {
			t.Errorf("reason %d is %q, want %q", r, r, want)
		}
	}
}
