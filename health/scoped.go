package health

import (
	"fmt"
	"slices"
	"strings"
)

// builtIn are the names of the signals that are not configured by name.
var builtIn = [...]string{"cpu", "throttle", "memory", "heap", "gc_limiter", "scheduling", "timer_lag", "memory_stall", "host_cpu"}

// maxName bounds the names that become labels of metrics.
const maxName = 64

// named is what pools, dependencies and checks have in common.
type named struct {
	what, name string
	routes     []string
}

func (c Config) scoped() []named {
	var all []named
	for _, p := range c.Pools {
		all = append(all, named{"pool", p.Name, p.Routes})
	}
	for _, d := range c.Dependencies {
		all = append(all, named{"dependency", d.Name, d.Routes})
	}
	for _, k := range c.Checks {
		all = append(all, named{"check", k.Name, k.Routes})
	}
	return all
}

// Clone returns a copy that shares no slice with c.
func (c Config) Clone() Config {
	c.Pools, c.Dependencies, c.Checks = slices.Clone(c.Pools), slices.Clone(c.Dependencies), slices.Clone(c.Checks)
	for i := range c.Pools {
		c.Pools[i].Routes = slices.Clone(c.Pools[i].Routes)
	}
	for i := range c.Dependencies {
		c.Dependencies[i].Routes = slices.Clone(c.Dependencies[i].Routes)
	}
	for i := range c.Checks {
		c.Checks[i].Routes = slices.Clone(c.Checks[i].Routes)
	}
	return c
}

// withScoped is withDefaults for pools, dependencies and checks. What it returns shares no slice with c.
func (c Config) withScoped() (Config, error) {
	seen := make(map[string]bool)
	for _, n := range c.scoped() {
		switch {
		case n.name == "" || len(n.name) > maxName || strings.TrimSpace(n.name) != n.name:
			return c, fmt.Errorf("health: a %s is named %.80q; give it a name of 1 to %d characters, it is what metrics call it",
				n.what, n.name, maxName)
		case slices.Contains(builtIn[:], n.name):
			return c, fmt.Errorf("health: %s %s has the name of a built-in signal; give it another", n.what, n.name)
		case seen[n.name]:
			return c, fmt.Errorf("health: two signals are named %s; give one of them another name", n.name)
		case n.what != "check" && len(n.routes) == 0:
			return c, fmt.Errorf("health: %s %s has no Routes; name the routes that need it, for all others go on without it",
				n.what, n.name)
		case slices.Contains(n.routes, ""):
			return c, fmt.Errorf("health: %s %s has a route without a name; name it or remove it", n.what, n.name)
		}
		seen[n.name] = true
	}
	c = c.Clone()
	for i := range c.Pools {
		if err := c.Pools[i].prepare(); err != nil {
			return c, err
		}
	}
	for i := range c.Dependencies {
		if err := c.Dependencies[i].prepare(); err != nil {
			return c, err
		}
	}
	for i := range c.Checks {
		if err := c.Checks[i].prepare(); err != nil {
			return c, err
		}
	}
	return c, nil
}
