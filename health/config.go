package health

import (
	"fmt"
	"time"
)

// Config chooses what is watched. The zero value watches what we use of what we may use: CPU time, throttling, memory, heap,
// the garbage collector, and how late goroutines and timers are.
type Config struct {
	// CPU bounds own CPU time ÷ (elapsed time × cores this process may use); the zero value means {0.75, 0.95}.
	CPU Thresholds
	// Throttle bounds throttled periods ÷ periods under the CPU quota; the zero value means {0.10, 0.50}.
	Throttle Thresholds
	// Memory bounds the working set of the cgroup ÷ its memory limit; the zero value means {0.85, 0.95}.
	Memory Thresholds
	// Heap bounds (live heap + stacks) ÷ GOMEMLIMIT; the zero value means {0.70, 0.90}. Without GOMEMLIMIT the signal is
	// absent.
	Heap Thresholds
	// Scheduling bounds the 99th percentile of what runnable goroutines wait; the zero value means {20 ms, 100 ms}. It counts
	// only while there is pressure from CPU or Throttle.
	Scheduling Delays
	// TimerLag bounds the worst delay of the sampler's own timer; the zero value means {50 ms, 100 ms}. It counts only while
	// there is pressure from CPU or Throttle.
	TimerLag Delays
	// MemoryStall bounds the share of the last 10 s in which every task of our cgroup waited for memory (pressure stall
	// information); {0.10, 0.25} is a start. The zero value leaves it off.
	MemoryStall Thresholds
	// HostCPU bounds the share of the host's CPU time that is in use. It is shown and counts for nothing, since most of it is
	// not ours; {0.75, 0.95} is a start. The zero value leaves it off.
	HostCPU Thresholds

	// Pools are the database connection pools that routes need, Dependencies what else they call, Checks whatever else there
	// is. Their names are unique, also among the signals above.
	Pools        []Pool
	Dependencies []Dependency
	Checks       []Check

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

// Routes are the names of the routes that pools, dependencies and checks are scoped to, each once, in the order of Config. Who
// knows all routes can refuse a name that is none of them: a dependency scoped to a route that does not exist protects
// nothing.
func (c Config) Routes() []string {
	var all []string
	seen := make(map[string]bool)
	for _, s := range c.scoped() {
		for _, route := range s.routes {
			if !seen[route] {
				seen[route] = true
				all = append(all, route)
			}
		}
	}
	return all
}

// withDefaults fills what is left zero and refuses what can not be meant.
func (c Config) withDefaults() (Config, error) {
	for _, err := range []error{
		c.CPU.orDefault("cpu"), c.Throttle.orDefault("throttle"), c.Memory.orDefault("memory"), c.Heap.orDefault("heap"),
		c.Scheduling.orDefault("scheduling"), c.TimerLag.orDefault("timer_lag"),
	} {
		if err != nil {
			return c, err
		}
	}
	for name, t := range map[string]Thresholds{"memory_stall": c.MemoryStall, "host_cpu": c.HostCPU} {
		if t == (Thresholds{}) {
			continue
		}
		if err := t.check(name); err != nil {
			return c, err
		}
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
	return c.withScoped()
}
