package health_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/spillway-go/spillway/health"
)

// A sampler has an owner who starts and stops it. Until it has seen enough it has no opinion, which is neither 0 nor 1.
func Example() {
	s, err := health.New(health.Config{CPU: health.Thresholds{Low: 0.6, High: 0.9}})
	if err != nil {
		fmt.Println(err)
		return
	}
	s.Start()
	defer s.Close()

	if p, known := s.Pressure(); known {
		fmt.Println("pressure", p)
	} else {
		fmt.Println("go on as if there were no health:", s.State())
	}
	// Output: go on as if there were no health: warming
}

// Thresholds turn what was measured into a pressure.
func ExampleThresholds_Pressure() {
	cpu := health.Thresholds{Low: 0.75, High: 0.95}
	for _, used := range []float64{0.30, 0.80, 0.97} {
		fmt.Printf("%.0f %% of the CPU: pressure %.2f\n", 100*used, cpu.Pressure(used))
	}
	// Output:
	// 30 % of the CPU: pressure 0.00
	// 80 % of the CPU: pressure 0.25
	// 97 % of the CPU: pressure 1.00
}

// What can not be meant is refused where it is written, not noticed later as a service that never sheds.
func ExampleNew_refused() {
	_, err := health.New(health.Config{CPU: health.Thresholds{Low: 75, High: 95}})
	fmt.Println(err)
	// Output: health: cpu thresholds {low: 75, high: 95} are not fractions; use numbers from 0 to 1, e.g. {low: 0.75, high: 0.95}
}

// A dependency is scoped to the routes that need it: while payments fail, checkout is under pressure and search is not.
func ExampleSampler_PressureOf() {
	payments := new(health.Calls)
	s, err := health.New(health.Config{Dependencies: []health.Dependency{{
		Name:   "payments",
		Calls:  payments,
		Failed: health.Thresholds{Low: 0.2, High: 0.6},
		Routes: []string{"checkout"},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	s.Start()
	defer s.Close()

	payments.Done(true) // after each call: did payments let us down?

	for _, route := range []string{"checkout", "search"} {
		if p, state := s.PressureOf(route); state.Known() {
			fmt.Println(route, p)
		} else {
			fmt.Println(route, state)
		}
	}
	// Output:
	// checkout warming
	// search warming
}

// A pool takes its counters from database/sql, a check returns whatever the program can measure.
func ExampleConfig() {
	var db *sql.DB // opened elsewhere
	cfg := health.Config{
		Pools: []health.Pool{{Name: "orders_db", Stats: db.Stats, Routes: []string{"orders", "reports"}}},
		Checks: []health.Check{{
			Name:       "spool",
			Func:       func(context.Context) (float64, error) { return 0.4, nil }, // how full it is
			Thresholds: health.Thresholds{Low: 0.7, High: 0.95},
		}},
	}
	_, err := health.New(cfg)
	fmt.Println(err, cfg.Routes())
	// Output: <nil> [orders reports]
}
