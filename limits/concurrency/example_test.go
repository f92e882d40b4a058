package concurrency_test

import (
	"fmt"
	"time"

	"github.com/spillway-go/spillway/limits/concurrency"
)

// The owner feeds what ended and reads the limit; time is the owner's.
func ExampleEstimator() {
	e, err := concurrency.New(concurrency.Config{Max: 100, Initial: 40})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("starts at", e.Limit())

	// A dependency is down: all that ends is dropped.
	now := time.Duration(0)
	for range 500 {
		now += 2 * time.Millisecond
		e.Observe(now, concurrency.Sample{InFlight: e.Limit(), Dropped: true})
	}
	fmt.Println("falls to", e.Limit(), "because of", e.Status().Change)
	// Output:
	// starts at 40
	// falls to 4 because of drops
}

func ExampleNew_badConfig() {
	_, err := concurrency.New(concurrency.Config{Algorithm: "gradiant"})
	fmt.Println(err)
	// Output: concurrency: unknown algorithm "gradiant"; use one of knee, gradient2, vegas, aimd, fixed
}

// One second of full pressure, then none: the limit falls quickly and comes back steadily.
func ExampleCap() {
	var c concurrency.Cap
	const estimate, floor = 100, 4
	for i := range 12 {
		pressure := 1.0
		if i >= 4 {
			pressure = 0
		}
		now := time.Duration(i) * 250 * time.Millisecond
		inFlight := c.Apply(estimate, floor) // saturated
		limit := c.Update(now, concurrency.Reading{
			Pressure: pressure, Known: true, Limit: estimate, InFlight: inFlight, Floor: floor,
		})
		fmt.Print(limit, " ")
	}
	// Output: 85 72 61 52 53 55 57 58 60 62 64 66
}
