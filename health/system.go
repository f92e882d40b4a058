package health

import (
	"io/fs"
	"os"
	"runtime"
	"time"
)

// system is what CPU use is read from. Tests put a tree of fixtures and counters of their own in its place.
type system struct {
	clock       func() time.Time
	files       fs.FS                         // the root of the file system: proc, sys
	processTime func() (time.Duration, error) // CPU time of this process, cumulative
	cpus        func() int                    // CPUs in the affinity mask; 0: not known
	runtime     func() goStats                // nil: nothing to ask
}

// realSystem is the one we run on.
func realSystem() system {
	mask := new(affinity)
	return system{clock: time.Now, files: os.DirFS("/"), processTime: processTime, cpus: mask.allowedCPUs,
		runtime: newGoReader().read}
}

// looker reads counters from a system.
type looker struct {
	system
	cgroups cgroups
	limit   float64 // override in cores; 0: none
}

func (l *looker) look() (counters, error) {
	g, err := l.cgroups.read(l.clock())
	if err != nil {
		return counters{}, err
	}
	own, err := l.processTime()
	if err != nil {
		return counters{}, err
	}
	// The clock is read right after the counters: what happens between the two is counted as idle or busy wrongly.
	c := counters{at: l.clock(), own: own, group: g}
	c.cores, c.group.decides = l.cores(g)
	return c, nil
}

// cores is how many cores this process may use, and whether the quota of g decides that.
func (l *looker) cores(g group) (float64, bool) {
	if l.limit > 0 {
		return l.limit, false
	}
	n := l.cpus()
	if n <= 0 {
		n = runtime.NumCPU()
	}
	if g.name != "" && g.cores < float64(n) {
		return g.cores, true
	}
	return float64(n), false
}
