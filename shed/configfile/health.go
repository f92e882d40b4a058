package configfile

import (
	"fmt"
	"time"

	"github.com/spillway-go/spillway/health"
)

var healthShape = shape{keys: []key{
	{name: "cpu", kind: kindSection, in: &fractionShape},
	{name: "throttle", kind: kindSection, in: &fractionShape},
	{name: "memory", kind: kindSection, in: &fractionShape},
	{name: "heap", kind: kindSection, in: &fractionShape},
	{name: "scheduling", kind: kindSection, in: &delayShape},
	{name: "timer_lag", kind: kindSection, in: &delayShape},
	{name: "memory_stall", kind: kindSection, in: &fractionShape},
	{name: "host_cpu", kind: kindSection, in: &fractionShape},
	{name: "cpu_limit", kind: kindNumber, min: 10, max: 65_536_000},
}}

// fractionShape bounds what is a share of a whole, delayShape what is a time.
var (
	fractionShape = shape{keys: []key{
		{name: "low", kind: kindNumber, min: 0, max: 1000},
		{name: "high", kind: kindNumber, min: 0, max: 1000},
	}}
	delayShape = shape{keys: []key{
		{name: "low", kind: kindDuration, min: int64(time.Millisecond), max: int64(10 * time.Second)},
		{name: "high", kind: kindDuration, min: int64(time.Millisecond), max: int64(10 * time.Second)},
	}}
)

// healthSection reads the section health. What the file has no key for, such as the warm-up, pools and checks, stays the
// program's; only health that the program has switched off comes back on, or the thresholds would mean nothing.
func healthSection(o object, program health.Config) health.Config {
	c := program
	c.Off = false
	c.CPU, _ = o.fractions("cpu")
	c.Throttle, _ = o.fractions("throttle")
	c.Memory, _ = o.fractions("memory")
	c.Heap, _ = o.fractions("heap")
	c.Scheduling, c.TimerLag = o.delays("scheduling"), o.delays("timer_lag")
	// These two are off unless they are there, if only as {}.
	c.MemoryStall, c.HostCPU = o.optIn("memory_stall"), o.optIn("host_cpu")
	c.CPULimit, _ = o.number("cpu_limit")
	return c
}

// fractions returns the thresholds under a key, zero for the library's default, and whether they are there. The library has
// defaults for both together only, so one that is missing is filled in here.
func (o object) fractions(name string) (health.Thresholds, bool) {
	s, ok := o.section(name)
	if !ok || len(s.fields) == 0 {
		return health.Thresholds{}, ok
	}
	t, _ := health.DefaultThresholds(name)
	before := len(s.found)
	if low, ok := s.number("low"); ok {
		t.Low = low
	}
	if high, ok := s.number("high"); ok {
		t.High = high
	}
	if t.Low >= t.High && len(s.found) == before {
		s.notRising(fmt.Sprintf("%g", t.Low), fmt.Sprintf("%g", t.High))
	}
	return t, true
}

// optIn returns the thresholds under a key, the library's if it is empty, and zero if it is not there.
func (o object) optIn(name string) health.Thresholds {
	t, there := o.fractions(name)
	if there && t == (health.Thresholds{}) {
		t, _ = health.DefaultThresholds(name)
	}
	return t
}

// delays is fractions for times.
func (o object) delays(name string) health.Delays {
	s, ok := o.section(name)
	if !ok || len(s.fields) == 0 {
		return health.Delays{}
	}
	t, _ := health.DefaultThresholds(name)
	d := health.Delays{Low: inSeconds(t.Low), High: inSeconds(t.High)}
	before := len(s.found)
	if s.has("low") {
		d.Low = s.duration("low")
	}
	if s.has("high") {
		d.High = s.duration("high")
	}
	if d.Low >= d.High && len(s.found) == before {
		s.notRising(compact(d.Low), compact(d.High))
	}
	return d
}

func inSeconds(s float64) time.Duration {
	return time.Duration(s*float64(time.Second) + 0.5)
}

func (o object) notRising(low, high string) {
	o.fail("low "+low+" must be below high "+high, "pressure rises from low to high: set both")
}
