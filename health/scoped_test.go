package health

import (
	"context"
	"database/sql"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestPoolsDependenciesAndChecksThatCanNotBeMeantAreRefused(t *testing.T) {
	stats := func() sql.DBStats { return sql.DBStats{} }
	look := func(context.Context) (float64, error) { return 0, nil }
	routes := []string{"a"}
	calls := new(Calls)
	pool := func(p Pool) Config { return Config{Pools: []Pool{p}} }
	dep := func(d Dependency) Config { return Config{Dependencies: []Dependency{d}} }
	check := func(k Check) Config { return Config{Checks: []Check{k}} }
	for _, tc := range []struct {
		cfg  Config
		want string
	}{
		{pool(Pool{Stats: stats, Routes: routes}), `health: a pool is named ""; give it a name`},
		{pool(Pool{Name: strings.Repeat("x", 65), Stats: stats, Routes: routes}), "1 to 64 characters"},
		{pool(Pool{Name: " db", Stats: stats, Routes: routes}), "give it a name"},
		{pool(Pool{Name: "cpu", Stats: stats, Routes: routes}), "pool cpu has the name of a built-in signal"},
		{pool(Pool{Name: "db", Routes: routes}), "pool db has no Stats; set it to db.Stats"},
		{pool(Pool{Name: "db", Stats: stats}), "pool db has no Routes; name the routes that need it"},
		{pool(Pool{Name: "db", Stats: stats, Routes: []string{"a", ""}}), "a route without a name"},
		{pool(Pool{Name: "db", Stats: stats, Routes: routes, Queued: Thresholds{2, 1}}), "pool db thresholds need low < high"},
		{pool(Pool{Name: "db", Stats: stats, Routes: routes, Queued: Thresholds{-1, 1}}), "a low of -1"},
		{pool(Pool{Name: "db", Stats: stats, Routes: routes, Queued: Thresholds{0, math.NaN()}}), "are not numbers"},
		{pool(Pool{Name: "db", Stats: stats, Routes: routes, Queued: Thresholds{0, math.Inf(1)}}), "are not numbers"},
		{dep(Dependency{Name: "d", Routes: routes, Failed: Thresholds{0.1, 0.2}}), "dependency d has no Calls"},
		{dep(Dependency{Name: "d", Routes: routes, Calls: calls}), "dependency d has no thresholds; set Failed"},
		{dep(Dependency{Name: "d", Routes: routes, Calls: calls, Failed: Thresholds{10, 20}}), "are not fractions; use numbers from 0 to 1, e.g. {low: 0.2, high: 0.6}"},
		{dep(Dependency{Name: "d", Calls: calls, Failed: Thresholds{0.1, 0.2}}), "dependency d has no Routes"},
		{check(Check{Name: "k"}), "check k has no Func"},
		{check(Check{Name: "k", Func: look, Every: time.Millisecond}), "Every 1ms; use at least 250ms"},
		{check(Check{Name: "k", Func: look, Timeout: -1}), "use a time above 0"},
		{check(Check{Name: "k", Func: look, Thresholds: Thresholds{1, 0}}), "check k thresholds need low < high"},
		{Config{Pools: []Pool{{Name: "x", Stats: stats, Routes: routes}}, Checks: []Check{{Name: "x", Func: look}}}, "two signals are named x"},
		{Config{Scheduling: Delays{2, 1}}, "scheduling thresholds need 0 ≤ low < high, have low 2ns and high 1ns; e.g. {low: 20ms, high: 100ms}"},
		{Config{TimerLag: Delays{-1, 1}}, "timer_lag thresholds need 0 ≤ low < high"},
		{Config{MemoryStall: Thresholds{1, 2}}, "memory_stall thresholds {low: 1, high: 2} are not fractions"},
		{Config{HostCPU: Thresholds{0.5, 0.5}}, "host_cpu thresholds need low < high"},
		{Config{Heap: Thresholds{0.5, 0.5}}, "heap thresholds need low < high"},
		{Config{Memory: Thresholds{0.5, 1.5}}, "memory thresholds {low: 0.5, high: 1.5} are not fractions"},
	} {
		s, err := New(tc.cfg)
		if err == nil || s != nil || !strings.HasPrefix(err.Error(), "health: ") || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("New(%+v): sampler %v, error %v, want one with %q", tc.cfg, s, err, tc.want)
		}
	}
}

func TestTheRoutesOfAConfigAreThoseItIsScopedTo(t *testing.T) {
	cfg := Config{
		Pools:        []Pool{{Name: "db", Routes: []string{"b", "a"}}},
		Dependencies: []Dependency{{Name: "d", Routes: []string{"a", "c"}}},
		Checks:       []Check{{Name: "k"}, {Name: "l", Routes: []string{"d"}}},
	}
	if got, want := cfg.Routes(), []string{"b", "a", "c", "d"}; !reflect.DeepEqual(got, want) {
		t.Errorf("routes %v, want %v", got, want)
	}
}

func TestASamplerSharesNothingWithItsConfig(t *testing.T) {
	cfg := Config{Pools: []Pool{{Name: "db", Stats: func() sql.DBStats { return sql.DBStats{} }, Routes: []string{"a"}}}}
	s := must[*Sampler](t)(New(cfg))
	cfg.Pools[0].Routes[0] = "changed"
	tracks := s.latest.Load().tracks
	if got := tracks[len(tracks)-1].routes[0]; got != "a" {
		t.Errorf("the route became %s", got)
	}
	if cfg.Pools[0].Queued != (Thresholds{}) {
		t.Errorf("New wrote %+v into its argument", cfg.Pools[0])
	}
}

func TestOnlySignalsWithThresholdsHaveDefaults(t *testing.T) {
	for _, name := range builtIn {
		if _, ok := DefaultThresholds(name); ok == (name == "gc_limiter") {
			t.Errorf("%s: %v", name, ok)
		}
	}
	if _, ok := DefaultThresholds("mine"); ok {
		t.Error("a name that is none has defaults")
	}
}
