package middleware_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// A paid service allows two calls a day, and nobody waits until tomorrow.
func ExampleTransport() {
	paid := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	defer paid.Close()
	transport, err := middleware.NewTransport(middleware.TransportConfig{
		Limits:   []shed.Limit{{Name: "contract", Rule: limits.TokenBucket{Capacity: 2, Refill: limits.PerDay(2)}}},
		Parallel: 4,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer transport.Close()
	client := http.Client{Transport: transport}
	for range 3 {
		answer, err := client.Get(paid.URL)
		if refused, ok := errors.AsType[*middleware.CallError](err); ok {
			fmt.Println("not called:", refused.Reason, "by", refused.Rule)
			continue
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		answer.Body.Close() // its place is free from here on
		fmt.Println(answer.Status)
	}
	// Output:
	// 200 OK
	// 200 OK
	// not called: over_limit by contract
}
