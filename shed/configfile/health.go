package configfile

import (
	"fmt"

	"github.com/spillway-go/spillway/health"
)

var healthShape = shape{keys: []key{
	{name: "cpu", kind: kindSection, in: &cpuShape},
}}

var cpuShape = shape{keys: []key{
	{name: "low", kind: kindNumber, min: 0, max: 1000},
	{name: "high", kind: kindNumber, min: 0, max: 1000},
}}

// defaultCPU is what health.Thresholds means by its zero value. It is needed here because only both thresholds together
// have one.
var defaultCPU = health.Thresholds{Low: 0.75, High: 0.95}

// healthSection reads the section health. What the file has no key for, such as the warm-up, stays the program's; only
// health that the program has switched off comes back on, or the thresholds would mean nothing.
func healthSection(o object, program health.Config) health.Config {
	c := program
	c.CPU, c.Off = health.Thresholds{}, false
	cpu, ok := o.section("cpu")
	if !ok || len(cpu.fields) == 0 {
		return c
	}
	c.CPU = defaultCPU
	if low, ok := cpu.number("low"); ok {
		c.CPU.Low = low
	}
	if high, ok := cpu.number("high"); ok {
		c.CPU.High = high
	}
	if c.CPU.Low >= c.CPU.High {
		cpu.fail(fmt.Sprintf("low %g must be below high %g", c.CPU.Low, c.CPU.High), "pressure rises from low to high: set both")
	}
	return c
}
