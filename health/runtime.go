package health

import (
	"errors"
	"fmt"
	"math"
	"runtime/metrics"
	"time"
)

// goStats is what the Go runtime says about itself. What a version of Go does not have reads as absent, never as 0.
type goStats struct {
	hasMemory bool
	limit     uint64 // GOMEMLIMIT in bytes; 0: not set
	live      uint64 // heap that the last GC cycle found alive
	stacks    uint64
	used      uint64 // what GOMEMLIMIT counts, close to the resident set; garbage included

	hasLimiter bool
	limiter    uint64 // the last GC cycle in which the collector was kept from using more than half of the CPU time; 0: none

	// waits counts how long goroutines were runnable before they ran, in buckets between bounds (one more than buckets).
	// Both belong to the reader and are overwritten by the next read: keep copies.
	waits  []uint64
	bounds []float64
}

// collectable is what is neither alive nor a stack: it goes with the next GC cycle.
func (g *goStats) collectable() uint64 {
	return sub(g.used, g.live+g.stacks)
}

// sub is a − b, not below 0.
func sub(a, b uint64) uint64 {
	if b > a {
		return 0
	}
	return a - b
}

// The order of the samples of a goReader.
const (
	sampleTotal = iota
	sampleReleased
	sampleLive
	sampleStacks
	sampleLimit
	sampleLimiter
	sampleWaits
)

// goReader reads runtime/metrics; runtime.ReadMemStats would stop the world for it.
type goReader struct{ samples []metrics.Sample }

func newGoReader() *goReader {
	r := new(goReader)
	for _, name := range []string{
		sampleTotal:    "/memory/classes/total:bytes",
		sampleReleased: "/memory/classes/heap/released:bytes",
		sampleLive:     "/gc/heap/live:bytes",
		sampleStacks:   "/memory/classes/heap/stacks:bytes",
		sampleLimit:    "/gc/gomemlimit:bytes",
		sampleLimiter:  "/gc/limiter/last-enabled:gc-cycle",
		sampleWaits:    "/sched/latencies:seconds",
	} {
		r.samples = append(r.samples, metrics.Sample{Name: name})
	}
	return r
}

func (r *goReader) read() goStats {
	metrics.Read(r.samples)
	var g goStats
	var n [sampleWaits]uint64
	g.hasMemory = true
	for i := range n {
		// A name that this version of Go does not know has kind Bad.
		known := r.samples[i].Value.Kind() == metrics.KindUint64
		if known {
			n[i] = r.samples[i].Value.Uint64()
		}
		if i == sampleLimiter {
			g.hasLimiter = known
		} else if !known {
			g.hasMemory = false
		}
	}
	g.used, g.live, g.stacks, g.limiter = sub(n[sampleTotal], n[sampleReleased]), n[sampleLive], n[sampleStacks], n[sampleLimiter]
	if n[sampleLimit] < math.MaxInt64 {
		g.limit = n[sampleLimit]
	}
	if v := r.samples[sampleWaits].Value; v.Kind() == metrics.KindFloat64Histogram {
		h := v.Float64Histogram()
		g.waits, g.bounds = h.Counts, h.Buckets
	}
	return g
}

// runtimeLook looks once per round, however many signals ask.
type runtimeLook struct {
	read  func() goStats // nil: there is no runtime to ask
	round time.Time
	stats goStats
}

func (l *runtimeLook) at(round time.Time) *goStats {
	if l.read != nil && (l.round.IsZero() || !round.Equal(l.round)) {
		l.round, l.stats = round, l.read()
	}
	return &l.stats
}

// heap is the memory that no GC cycle gives back, live heap and stacks, as a share of GOMEMLIMIT. What is in use would say
// nothing: under GOMEMLIMIT with a high GOGC it lies at the limit by design, most of it garbage.
type heap struct {
	runtime *runtimeLook
	pace    pace
}

func (h *heap) name() string { return "heap" }

func (h *heap) source() string { return "live heap and stacks, of GOMEMLIMIT" }

func (h *heap) measure(round time.Time) (float64, time.Duration, error) {
	g := h.runtime.at(round)
	switch {
	case !g.hasMemory:
		return 0, 0, errNoMetric
	case g.limit == 0:
		return 0, 0, errNoMemoryLimit
	}
	return float64(g.live+g.stacks) / float64(g.limit), h.pace.next(round), nil
}

// limiterHolds is how long the GC CPU limiter counts after a cycle in which it was on: cycles of a large heap are seconds
// apart.
const limiterHolds = carriedFor

// gcLimiter is 1 while the collector runs into its bound of half of the CPU time, else 0: there is more to collect than time
// to collect it, the beginning of a death spiral.
type gcLimiter struct {
	runtime *runtimeLook
	seen    bool
	last    uint64    // GC cycle
	until   time.Time // the event counts until then
}

func (l *gcLimiter) name() string { return "gc_limiter" }

func (l *gcLimiter) source() string { return "GC cycles in which the GC CPU limiter was on" }

func (l *gcLimiter) measure(round time.Time) (float64, time.Duration, error) {
	g := l.runtime.at(round)
	if !g.hasLimiter {
		return 0, 0, errNoMetric
	}
	// What happened before the first look is not news.
	if l.seen && g.limiter > l.last {
		l.until = round.Add(limiterHolds)
	}
	l.seen, l.last = true, g.limiter
	if round.Before(l.until) {
		// The time it describes is long: one event stands alone, nothing averages it away.
		return 1, limiterHolds, nil
	}
	return 0, limiterHolds, nil
}

var (
	errNoMetric      = fmt.Errorf("%w: this version of Go does not say", errAbsent)
	errNoMemoryLimit = fmt.Errorf("%w: GOMEMLIMIT is not set", errAbsent)
	errWaitsFell     = &discard{reason: CounterFell, what: "a bucket of the latency histogram went back"}
	errWaitsForm     = &discard{reason: Malformed, what: "the latency histogram has a different number of buckets than bounds",
		err: errors.New("/sched/latencies:seconds")}
)
