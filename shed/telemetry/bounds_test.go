package telemetry_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/telemetry"
)

func TestRoutesBeyondTheBoundShareALabel(t *testing.T) {
	m, err := telemetry.NewWithConfig(telemetry.Config{MaxRoutes: 3})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 1000 {
				route := fmt.Sprint("route-", i)
				m.Observe(shed.Event{Kind: shed.Admitted, Route: route})
				m.Observe(shed.Event{Kind: shed.Finished, Route: route, Outcome: shed.Success})
				m.Observe(shed.Event{Kind: shed.Refused, Route: route, Reason: shed.Overloaded})
			}
		})
	}
	wg.Wait()
	if n := testutil.CollectAndCount(m, "spillway_admitted_total", "spillway_refused_total", "spillway_wait_seconds", "spillway_service_seconds"); n != 4*4 {
		t.Errorf("%d series, want 4 of each of four metrics", n)
	}
	total := 0.
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "spillway_admitted_total" {
			for _, metric := range f.GetMetric() {
				total += metric.GetCounter().GetValue()
			}
		}
	}
	if total != 4000 {
		t.Errorf("%v admitted in all series, want 4000: none may be lost", total)
	}
}

func TestBoundsThatDoNotAscendAreRefused(t *testing.T) {
	for _, buckets := range [][]float64{{1, 1}, {2, 1}, {math.NaN(), 1}} {
		if _, err := telemetry.NewWithConfig(telemetry.Config{WaitBuckets: buckets}); err == nil || !strings.Contains(err.Error(), "WaitBuckets") {
			t.Errorf("%v: %v", buckets, err)
		}
	}
}

func TestTheStoreIsTimedByWhoDecided(t *testing.T) {
	m := telemetry.New()
	m.Observe(shed.Event{Kind: shed.Admitted, Store: time.Millisecond, Source: limits.FromRedis})
	m.Observe(shed.Event{Kind: shed.Refused, Reason: shed.OverLimit, Store: 50 * time.Millisecond, Source: limits.FromLocal})
	m.Observe(shed.Event{Kind: shed.Refused, Reason: shed.StoreUnavailable, Store: 50 * time.Millisecond})
	m.Observe(shed.Event{Kind: shed.Admitted}) // asked no store
	bounds := []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25}
	want := "# HELP spillway_store_seconds Time that a store outside of this process took for a decision, by who decided.\n# TYPE spillway_store_seconds histogram\n" +
		histogram("spillway_store_seconds", `source="local"`, .05, 1, bounds...) + histogram("spillway_store_seconds", `source="none"`, .05, 1, bounds...) +
		histogram("spillway_store_seconds", `source="redis"`, .001, 1, bounds...)
	if err := testutil.CollectAndCompare(m, strings.NewReader(want), "spillway_store_seconds"); err != nil {
		t.Error(err)
	}
}

func TestEveryMetricThatIsShownIsListed(t *testing.T) {
	s, m := watched(t)
	defer s.Close()
	listed := make(map[string]string)
	for _, f := range telemetry.Families() {
		listed[f.Name] = f.Kind
		if f.Help == "" || f.Kind == "" {
			t.Errorf("%s has no help or kind", f.Name)
		}
	}
	m.Observe(shed.Event{Kind: shed.Admitted, Store: 1})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if kind := listed[f.GetName()]; kind != strings.ToLower(f.GetType().String()) {
			t.Errorf("%s is a %s and listed as %q", f.GetName(), f.GetType(), kind)
		}
	}
	described := make(chan *prometheus.Desc, 100)
	m.Describe(described)
	if len(described) != len(listed) {
		t.Errorf("%d are described and %d listed", len(described), len(listed))
	}
}
