package health

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPressureRisesFromLowToHighAndStaysInside(t *testing.T) {
	cpu := Thresholds{Low: 0.75, High: 0.95}
	for _, tc := range []struct{ x, want float64 }{
		{-1, 0}, {0, 0}, {0.75, 0}, {0.80, 0.25}, {0.85, 0.5}, {0.90, 0.75}, {0.95, 1}, {1, 1}, {40, 1},
	} {
		if got := cpu.Pressure(tc.x); !near(got, tc.want, 1e-9) {
			t.Errorf("Pressure(%v) = %v, want %v", tc.x, got, tc.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(0, 0.99).Draw(t, "low")
		th := Thresholds{Low: low, High: rapid.Float64Range(math.Nextafter(low, 1), 1).Draw(t, "high")}
		a, b := rapid.Float64Range(-2, 2).Draw(t, "a"), rapid.Float64Range(-2, 2).Draw(t, "b")
		pa, pb := th.Pressure(min(a, b)), th.Pressure(max(a, b))
		if !(pa >= 0 && pa <= pb && pb <= 1) {
			t.Fatalf("%+v: pressure of %v is %v, of %v it is %v", th, min(a, b), pa, max(a, b), pb)
		}
	})
}

func TestImpossibleConfigurationIsRefusedWithWhatAndHow(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		cfg  Config
		want string
	}{
		{Config{CPU: Thresholds{0.9, 0.8}}, "health: cpu thresholds need low < high, have low 0.9 and high 0.8; e.g. {low: 0.75, high: 0.95}"},
		{Config{CPU: Thresholds{0.9, 0.9}}, "cpu thresholds need low < high"},
		{Config{CPU: Thresholds{Low: 0.5}}, "cpu thresholds need low < high"},
		{Config{CPU: Thresholds{nan, 0.9}}, "cpu thresholds {low: NaN, high: 0.9} are not fractions"},
		{Config{CPU: Thresholds{0.1, nan}}, "are not fractions"},
		{Config{CPU: Thresholds{-0.1, 0.9}}, "use numbers from 0 to 1"},
		{Config{CPU: Thresholds{75, 95}}, "use numbers from 0 to 1"},
		{Config{CPU: Thresholds{0.1, math.Inf(1)}}, "use numbers from 0 to 1"},
		{Config{Throttle: Thresholds{0.5, 0.1}}, "health: throttle thresholds need low < high"},
		{Config{CPULimit: -1}, "health: CPULimit -1 is not a number of cores"},
		{Config{CPULimit: nan}, "health: CPULimit NaN"},
		{Config{CPULimit: math.Inf(1)}, "health: CPULimit +Inf"},
		{Config{CPU: Thresholds{0.9, 0.8}, Off: true}, "cpu thresholds need low < high"},
	} {
		s, err := New(tc.cfg)
		if err == nil || s != nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("New(%+v): sampler %v, error %v, want one with %q", tc.cfg, s, err, tc.want)
		}
	}
}

func TestZeroFieldsMeanTheDocumentedDefaults(t *testing.T) {
	got := must[Config](t)(Config{}.withDefaults())
	want := Config{CPU: Thresholds{0.75, 0.95}, Throttle: Thresholds{0.1, 0.5}, Memory: Thresholds{0.85, 0.95}, Heap: Thresholds{0.7, 0.9},
		Scheduling: Delays{ms(20), ms(100)}, TimerLag: Delays{ms(50), ms(100)}, WarmUp: time.Minute}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the zero Config means %+v, want %+v", got, want)
	}
	set := Config{CPU: Thresholds{0, 1}, Throttle: Thresholds{0.2, 0.3}, Memory: Thresholds{0.3, 0.4}, Heap: Thresholds{0.4, 0.5},
		Scheduling: Delays{0, 1}, TimerLag: Delays{1, 2}, MemoryStall: Thresholds{0.5, 0.6}, HostCPU: Thresholds{0.6, 0.7},
		CPULimit: 0.12, WarmUp: time.Second}
	if got := must[Config](t)(set.withDefaults()); !reflect.DeepEqual(got, set) {
		t.Errorf("%+v became %+v", set, got)
	}
	if got := must[Config](t)(Config{WarmUp: -1}.withDefaults()); got.WarmUp != 0 {
		t.Errorf("a negative WarmUp means %v, want none", got.WarmUp)
	}
}
