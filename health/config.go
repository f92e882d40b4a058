package health

import (
	"fmt"
	"math"
	"time"
)

// Thresholds map a measured value to a pressure: 0 up to Low, 1 from High on, linear between. The zero value stands for
// the default of the signal it belongs to.
type Thresholds struct {
	Low, High float64
}

// Pressure is the pressure that x means: clamp((x − Low) ÷ (High − Low), 0, 1). x must be a number; the zero Thresholds
// give 1 for everything above 0.
func (t Thresholds) Pressure(x float64) float64 {
	switch {
	case x <= t.Low:
		return 0
	case x >= t.High:
		return 1
	}
	return (x - t.Low) / (t.High - t.Low)
}

// Config chooses what is watched. The zero value watches the process's own CPU, 0.75 to 0.95 of what it may use, and how
// often its cgroup is throttled, 0.10 to 0.50 of the periods.
type Config struct {
	// CPU bounds own CPU time ÷ (elapsed time × cores this process may use); the zero value means {0.75, 0.95}.
	CPU Thresholds
	// Throttle bounds throttled periods ÷ periods under the CPU quota; the zero value means {0.10, 0.50}.
	Throttle Thresholds
	// CPULimit is how many cores this process may use, where nothing in the system says so (Kubernetes requests without
	// limits leave no trace) or where it says something else; fractions are fine. With it the process's own CPU time is
	// rated, whatever the cgroup's quota. Zero means the smallest quota of the cgroup and its ancestors, at most the CPUs
	// of the affinity mask.
	CPULimit float64
	// WarmUp is how long after Start health only observes; zero means 60 s, negative none. Programs that replay a log or
	// fill caches while starting would otherwise be capped for it.
	WarmUp time.Duration
	// Off switches health off: no goroutine, no file is opened, the pressure is never known.
	Off bool
}

const (
	defaultWarmUp = 60 * time.Second
	maxCPULimit   = 1 << 16 // the kernel's own bound on CPUs is far below
)

var (
	defaultCPU      = Thresholds{Low: 0.75, High: 0.95}
	defaultThrottle = Thresholds{Low: 0.10, High: 0.50}
)

// withDefaults fills what is left zero and refuses what can not be meant.
func (c Config) withDefaults() (Config, error) {
	var err error
	if c.CPU, err = c.CPU.orElse("cpu", defaultCPU); err != nil {
		return c, err
	}
	if c.Throttle, err = c.Throttle.orElse("throttle", defaultThrottle); err != nil {
		return c, err
	}
	// Written so that NaN, for which every comparison is false, is refused as well.
	if c.CPULimit != 0 && !(c.CPULimit > 0 && c.CPULimit <= maxCPULimit) {
		return c, fmt.Errorf("health: CPULimit %v is not a number of cores; use a value above 0, or 0 for what the system says",
			c.CPULimit)
	}
	switch {
	case c.WarmUp == 0:
		c.WarmUp = defaultWarmUp
	case c.WarmUp < 0:
		c.WarmUp = 0
	}
	return c, nil
}

// orElse is t, or def if t is zero. Both signals are fractions of a whole, so bounds outside [0,1] could never be met.
func (t Thresholds) orElse(signal string, def Thresholds) (Thresholds, error) {
	if t == (Thresholds{}) {
		return def, nil
	}
	if math.IsNaN(t.Low) || math.IsNaN(t.High) || t.Low < 0 || t.High > 1 {
		return t, fmt.Errorf("health: %s thresholds {low: %v, high: %v} are not fractions; use numbers from 0 to 1, e.g. {low: %v, high: %v}",
			signal, t.Low, t.High, def.Low, def.High)
	}
	if t.Low >= t.High {
		return t, fmt.Errorf("health: %s thresholds need low < high, have low %v and high %v; e.g. {low: %v, high: %v}",
			signal, t.Low, t.High, def.Low, def.High)
	}
	return t, nil
}
