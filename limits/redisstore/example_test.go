package redisstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/redisstore"
)

// Every process that does this shares one quota: twenty at once for each client, and five more a second.
func Example() {
	client, err := redisstore.Open("redis://127.0.0.1:6379/0", redisstore.Options{})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	store, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	perClient, err := limits.NewPolicy("per-client", limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(5)})
	if err != nil {
		panic(err)
	}

	d, err := store.Take(context.Background(), time.Time{}, []limits.Charge{{Policy: perClient, Key: "customer-42", Cost: 1}})
	switch {
	case err != nil:
		fmt.Println("Redis did not decide:", err)
	case !d.Allowed:
		fmt.Println("refused, again in", d.Binding().RetryAfter)
	default:
		fmt.Println("allowed,", d.At(0).Remaining, "left")
	}
}

// An error says what it means for the quota.
func ExampleKindOf() {
	client, err := redisstore.Open("redis://127.0.0.1:1/0", redisstore.Options{}) // nobody listens there
	if err != nil {
		panic(err)
	}
	defer client.Close()
	store, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	p, err := limits.NewPolicy("per-client", limits.FixedWindow{Quota: limits.PerMinute(100)})
	if err != nil {
		panic(err)
	}

	_, err = store.Take(context.Background(), time.Time{}, []limits.Charge{{Policy: p, Key: "customer-42", Cost: 1}})
	kind, ours := redisstore.KindOf(err)
	fmt.Println(kind, ours)
	// Output: not_executed true
}

// A hot key: refusals are remembered, and quota is taken ahead for the policies that say so.
func ExampleNewLeases() {
	client, err := redisstore.Open("redis://127.0.0.1:6379/0", redisstore.Options{})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	store, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		panic(err)
	}
	guard, err := redisstore.NewGuard(store, redisstore.GuardConfig{Instances: 3})
	if err != nil {
		panic(err)
	}
	refusals, err := redisstore.NewRefusals(guard, 0)
	if err != nil {
		panic(err)
	}
	leases, err := redisstore.NewLeases(refusals, redisstore.LeaseConfig{})
	if err != nil {
		panic(err)
	}
	defer leases.Close() // gives back what was not spent, and closes the others

	site, err := limits.NewPolicy("site", limits.TokenBucket{Capacity: 5000, Refill: limits.PerSecond(2000)},
		limits.Shared(limits.SharedByLease))
	if err != nil {
		panic(err)
	}
	d, err := leases.Take(context.Background(), time.Time{}, []limits.Charge{{Policy: site, Cost: 1}})
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Allowed, d.Source) // by Redis at first, and by lease while many ask
}
