package telemetry_test

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/telemetry"
)

func Example() {
	metrics := telemetry.New()
	s, err := shed.New(shed.Config{Observer: metrics})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	metrics.Watch(s)

	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		if f.GetName() == "spillway_limit" {
			fmt.Println(f.GetName(), f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	// Output: spillway_limit 20
}
