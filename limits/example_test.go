package limits_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// noon is a time like any other. Programs pass time.Now().
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func Example() {
	perClient, err := limits.NewPolicy("per-client", limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(5)})
	if err != nil {
		log.Fatal(err)
	}
	store, err := limits.NewMemory(limits.MemoryConfig{})
	if err != nil {
		log.Fatal(err)
	}

	charges := []limits.Charge{{Policy: perClient, Key: "customer-42", Cost: 8}}
	for range 3 {
		decision, err := store.Take(context.Background(), noon, charges)
		if err != nil {
			log.Fatal(err)
		}
		v := decision.Binding()
		fmt.Println(v.Reason, "- remaining", v.Remaining, "- retry after", v.RetryAfter)
	}
	// Output:
	// allowed - remaining 12 - retry after 0s
	// allowed - remaining 4 - retry after 0s
	// over_limit - remaining 4 - retry after 800ms
}

// The bucket starts full and admits bursts; over time it admits its rate.
func ExampleTokenBucket() {
	p := must(limits.NewPolicy("example", limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(5)}))
	store := must(limits.NewMemory(limits.MemoryConfig{}))
	pass := func(now time.Time) (n int) {
		for must(store.Take(context.Background(), now, []limits.Charge{{Policy: p, Key: "k", Cost: 1}})).Allowed {
			n++
		}
		return n
	}
	fmt.Println(pass(noon), "at once")
	fmt.Println(pass(noon.Add(time.Second)), "one second later")
	fmt.Println(pass(noon.Add(time.Hour)), "after an idle hour")
	// Output:
	// 20 at once
	// 5 one second later
	// 20 after an idle hour
}

// A capacity and a rate of 17 per 30 s admit up to 34 in the first 30 s: the capacity, and what comes back meanwhile.
func ExampleTokenBucket_capacityAndRate() {
	p := must(limits.NewPolicy("example", limits.TokenBucket{Capacity: 17, Refill: must(limits.ParseRate("17/30s"))}))
	store := must(limits.NewMemory(limits.MemoryConfig{}))
	passed := 0
	for ms := range 30_001 {
		now := noon.Add(time.Duration(ms) * time.Millisecond)
		if must(store.Take(context.Background(), now, []limits.Charge{{Policy: p, Key: "k", Cost: 1}})).Allowed {
			passed++
		}
	}
	fmt.Println(passed)
	// Output: 34
}

// As a meter the bucket refuses what would overflow it.
func ExampleLeakyBucket() {
	p := must(limits.NewPolicy("uploads", limits.LeakyBucket{Capacity: 1 << 20, Leak: must(limits.ParseRate("64KiB/s"))}))
	store := must(limits.NewMemory(limits.MemoryConfig{}))
	for _, bytes := range []int64{800_000, 300_000, 2_000_000} {
		d := must(store.Take(context.Background(), noon, []limits.Charge{{Policy: p, Key: "k", Cost: bytes}}))
		v := d.Binding()
		fmt.Println(bytes, v.Reason, v.RetryAfter.Round(time.Millisecond))
	}
	// Output:
	// 800000 allowed 0s
	// 300000 over_limit 785ms
	// 2000000 cost_too_large 0s
}

// As a queue the leaky bucket lets nothing run ahead of its turn. Capacity is how many may wait.
func ExampleDelay() {
	p := must(limits.NewPolicy("smooth", limits.Delay{Rule: limits.LeakyBucket{Capacity: 2, Leak: limits.PerSecond(10)}}))
	store := must(limits.NewMemory(limits.MemoryConfig{}))
	for range 4 {
		d := must(store.Take(context.Background(), noon, []limits.Charge{{Policy: p, Key: "k", Cost: 1}}))
		if d.Allowed {
			fmt.Println("starts after", d.Delay())
		} else {
			fmt.Println("refused, accepted after", d.Binding().RetryAfter)
		}
	}
	// Output:
	// starts after 0s
	// starts after 100ms
	// starts after 200ms
	// refused, accepted after 100ms
}

// On a token bucket what the tokens do not cover waits.
func ExampleDelay_tokenBucket() {
	p := must(limits.NewPolicy("patient", limits.Delay{
		Rule:    limits.TokenBucket{Capacity: 2, Refill: limits.PerSecond(1)},
		MaxWait: time.Second,
	}))
	store := must(limits.NewMemory(limits.MemoryConfig{}))
	for range 4 {
		d := must(store.Take(context.Background(), noon, []limits.Charge{{Policy: p, Key: "k", Cost: 1}}))
		fmt.Println(d.Allowed, d.Delay())
	}
	// Output:
	// true 0s
	// true 0s
	// true 1s
	// false 0s
}

// One Take charges all policies or none. The binding verdict names the one that refuses.
func ExampleMemory_Take() {
	perClient := must(limits.NewPolicy("per-client", limits.TokenBucket{Capacity: 3, Refill: limits.PerMinute(1)}))
	site := must(limits.NewPolicy("site", limits.TokenBucket{Capacity: 100, Refill: limits.PerSecond(100)}))
	store := must(limits.NewMemory(limits.MemoryConfig{}))

	report := []limits.Charge{{Policy: site, Key: "", Cost: 2}, {Policy: perClient, Key: "customer-42", Cost: 2}}
	for range 2 {
		d := must(store.Take(context.Background(), noon, report))
		fmt.Println(d.Allowed, "by", d.Binding().Policy.Name(), "- site has", d.At(0).Remaining)
	}
	// Output:
	// true by per-client - site has 98
	// false by per-client - site has 98
}

// Peek shows where a client stands; a cost of 0 asks for nothing.
func ExampleMemory_Peek() {
	p := must(limits.NewPolicy("daily", limits.TokenBucket{Capacity: 5, Refill: limits.PerDay(5)}))
	store := must(limits.NewMemory(limits.MemoryConfig{}))
	must(store.Take(context.Background(), noon, []limits.Charge{{Policy: p, Key: "k", Cost: 2}}))
	d := must(store.Peek(context.Background(), noon.Add(time.Hour), []limits.Charge{{Policy: p, Key: "k", Cost: 0}}))
	v := d.At(0)
	fmt.Println(v.Remaining, "left, one more in", v.NextAfter, "all in", v.ResetAfter)
	// Output: 3 left, one more in 3h48m0s all in 8h36m0s
}

// Work that did not happen gives its quota back.
func ExampleMemory_Refund() {
	p := must(limits.NewPolicy("exports", limits.TokenBucket{Capacity: 1, Refill: limits.PerHour(1)}))
	store := must(limits.NewMemory(limits.MemoryConfig{}))
	charges := []limits.Charge{{Policy: p, Key: "k", Cost: 1}}

	d := must(store.Take(context.Background(), noon, charges))
	if err := store.Refund(context.Background(), noon, d); err != nil { // the export failed
		log.Fatal(err)
	}
	d = must(store.Take(context.Background(), noon, charges))
	fmt.Println(d.Allowed)
	// Output: true
}

func ExampleParseRate() {
	for _, text := range []string{"5/s", "1/13s", "65536B/s", "5/sec"} {
		r, err := limits.ParseRate(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(r, r.Amount, r.Per)
	}
	// Output:
	// 5/s 5 1s
	// 1/13s 1 13s
	// 64KiB/s 65536 1s
	// limits: rate "5/sec": unknown unit of time "sec"; use ms, s, min, h or day, as in 5/s or 10/2min
}
