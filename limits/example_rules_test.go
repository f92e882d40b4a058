package limits_test

import (
	"context"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// counting returns a function that takes charges of 1 from one balance of rule until one is refused, and says how many
// passed and when the next would.
func counting(rule limits.Rule) (pass func(at time.Duration) string) {
	p := must(limits.NewPolicy("example", rule))
	store := must(limits.NewMemory(limits.MemoryConfig{}))
	return func(at time.Duration) string {
		for n := 0; ; n++ {
			d := must(store.Take(context.Background(), noon.Add(at), []limits.Charge{{Policy: p, Key: "k", Cost: 1}}))
			if !d.Allowed {
				return fmt.Sprintf("%d pass, the next in %v", n, d.Binding().RetryAfter)
			}
		}
	}
}

// Windows begin on the clock: what is used at the end of one is there again a moment later.
func ExampleFixedWindow() {
	pass := counting(limits.FixedWindow{Quota: limits.PerMinute(100)})
	fmt.Println("12:00:59:", pass(59*time.Second))
	fmt.Println("12:01:00:", pass(60*time.Second))
	// Output:
	// 12:00:59: 100 pass, the next in 1s
	// 12:01:00: 100 pass, the next in 1m0s
}

// The log knows when each charge was made: never more than the quota in any 60 seconds.
func ExampleSlidingLog() {
	pass := counting(limits.SlidingLog{Quota: limits.PerMinute(100)})
	fmt.Println("12:00:59:", pass(59*time.Second))
	fmt.Println("12:01:00:", pass(60*time.Second))
	fmt.Println("12:01:59:", pass(119*time.Second))
	// Output:
	// 12:00:59: 100 pass, the next in 1m0s
	// 12:01:00: 0 pass, the next in 59s
	// 12:01:59: 100 pass, the next in 1m0s
}

// Two counters come close to the log: the window before counts for as much as the last 60 seconds still cover of it.
func ExampleSlidingWindow() {
	pass := counting(limits.SlidingWindow{Quota: limits.PerMinute(100)})
	fmt.Println("12:00:59:", pass(59*time.Second))
	fmt.Println("12:01:00:", pass(60*time.Second))
	fmt.Println("12:01:15:", pass(75*time.Second)) // 100 × 45/60 still count
	// Output:
	// 12:00:59: 100 pass, the next in 1.6s
	// 12:01:00: 0 pass, the next in 600ms
	// 12:01:15: 25 pass, the next in 600ms
}

// What passes above Soft is debt, which the following periods pay.
func ExampleBurst() {
	p := must(limits.NewPolicy("site", limits.Burst{Soft: limits.PerSecond(100), Hard: limits.PerSecond(200)}))
	store := must(limits.NewMemory(limits.MemoryConfig{}))
	take := func(at time.Duration, cost int64) {
		d := must(store.Take(context.Background(), noon.Add(at), []limits.Charge{{Policy: p, Key: "", Cost: cost}}))
		v := d.At(0)
		fmt.Printf("second %d: %d %v, over soft: %v, %d remain\n", at/time.Second, cost, v.Reason, v.OverSoft, v.Remaining)
	}
	take(0, 120)
	take(1*time.Second, 81)
	take(1*time.Second, 80)
	take(2*time.Second, 200)
	take(3*time.Second, 1)
	take(4*time.Second, 1)
	// Output:
	// second 0: 120 allowed, over soft: true, 80 remain
	// second 1: 81 over_limit, over soft: false, 80 remain
	// second 1: 80 allowed, over soft: false, 0 remain
	// second 2: 200 allowed, over soft: true, 0 remain
	// second 3: 1 over_limit, over soft: false, 0 remain
	// second 4: 1 allowed, over soft: false, 199 remain
}

// A total caps what bursts add up to, over every 60 periods in a row.
func ExampleBurst_total() {
	pass := counting(limits.Burst{Soft: limits.PerSecond(100), Hard: limits.PerSecond(200), Total: limits.PerMinute(300)})
	fmt.Println("second 0:", pass(0))
	fmt.Println("second 2:", pass(2*time.Second))
	fmt.Println("second 60:", pass(60*time.Second))
	// Output:
	// second 0: 200 pass, the next in 2s
	// second 2: 100 pass, the next in 58s
	// second 60: 200 pass, the next in 2s
}

// Work counts while it runs: Refund ends it.
func ExampleInFlight() {
	p := must(limits.NewPolicy("parallel", limits.InFlight{Max: 2}))
	store := must(limits.NewMemory(limits.MemoryConfig{}))
	begin := func() limits.Decision {
		d := must(store.Take(context.Background(), noon, []limits.Charge{{Policy: p, Key: "customer-42", Cost: 1}}))
		fmt.Println(d.Binding().Reason)
		return d
	}
	first := begin()
	begin()
	begin()
	if err := store.Refund(context.Background(), noon, first); err != nil { // the first has ended
		fmt.Println(err)
	}
	begin()
	// Output:
	// allowed
	// allowed
	// in_flight
	// allowed
}

// A shadow is judged and counted as if it acted, and does not act.
func ExampleCharge_shadow() {
	acts := must(limits.NewPolicy("acts", limits.FixedWindow{Quota: limits.PerMinute(100)}))
	tried := must(limits.NewPolicy("tried", limits.FixedWindow{Quota: limits.PerMinute(1)}))
	store := must(limits.NewMemory(limits.MemoryConfig{}))
	for range 2 {
		d := must(store.Take(context.Background(), noon, []limits.Charge{
			{Policy: acts, Key: "k", Cost: 1}, {Policy: tried, Key: "k", Cost: 1, Shadow: true},
		}))
		fmt.Println(d.Allowed, "- tried says", d.At(1).Reason)
	}
	// Output:
	// true - tried says allowed
	// true - tried says over_limit
}
