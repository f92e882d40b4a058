package shed_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

// A shedder is of use without HTTP too: in a worker, a consumer, another protocol.
func Example() {
	s, err := shed.New(shed.Config{
		Limits: []shed.Limit{{Name: "per-customer", Rule: limits.TokenBucket{Capacity: 5, Refill: limits.PerMinute(1)}}},
		Routes: []shed.Route{{Name: "reports", Cost: 5, Priority: shed.Sheddable}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	report := func(customer string) error {
		permit, err := s.Admit(context.Background(), shed.Request{Client: customer, Route: "reports"})
		if err != nil {
			return err
		}
		outcome := shed.Ignored
		defer func() { permit.Done(outcome) }() // a closure: the outcome is read when the work ends, also on panic

		fmt.Println("reporting for", customer)
		outcome = shed.Success
		return nil
	}

	fmt.Println(report("customer-42"))
	var refused *shed.Rejection
	if errors.As(report("customer-42"), &refused) {
		fmt.Println(refused.Reason, "by", refused.Rule, "- again in", refused.RetryAfter.Round(time.Second))
	}
	// Output:
	// reporting for customer-42
	// <nil>
	// over_limit by per-customer - again in 5m0s
}

// Where waiting cannot help there is no RetryAfter, and the reason says so.
func ExampleRejection() {
	s, err := shed.New(shed.Config{
		Limits: []shed.Limit{{Name: "uploads", Rule: limits.TokenBucket{Capacity: 10, Refill: limits.PerSecond(1)}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	_, err = s.Admit(context.Background(), shed.Request{Client: "a", Cost: 11})
	fmt.Println(err)
	// Output: shed: refused: cost_too_large by rule uploads
}

// A configuration that cannot work is refused before anything starts.
func ExampleNew_badConfiguration() {
	_, err := shed.New(shed.Config{
		Limits: []shed.Limit{{Name: "orders", Rule: limits.TokenBucket{Capacity: 1, Refill: limits.PerSecond(1)}, Routes: []string{"order"}}},
		Routes: []shed.Route{{Name: "orders", Match: "POST /orders"}},
	})
	fmt.Println(err)
	// Output: shed: limit "orders": there is no route "order"; define it under routes
}
