package health

import (
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

const gib = 1 << 30

func TestGarbageIsNoHeapPressureAndALiveHeapIs(t *testing.T) {
	now := goStats{hasMemory: true, limit: gib}
	h := &heap{runtime: &runtimeLook{read: func() goStats { return now }}}
	for _, tc := range []struct {
		why         string
		live, stack uint64
		used        uint64
		want        float64
	}{
		{"at rest", gib / 10, 0, gib / 5, 0},
		{"GOGC high, garbage up to the limit", gib / 10, 0, gib, 0},
		{"live heap at 95 %", gib / 100 * 95, 0, gib, 1},
		{"stacks count as well", gib / 2, gib / 100 * 45, gib, 1},
		{"half way", gib / 10 * 8, 0, gib, 0.5},
	} {
		now.live, now.stacks, now.used = tc.live, tc.stack, tc.used
		x, _, err := h.measure(noon.Add(time.Duration(tc.live) + time.Duration(tc.stack) + time.Duration(tc.used)))
		th, _ := DefaultThresholds("heap")
		if p := th.Pressure(x); err != nil || !near(p, tc.want, 0.001) {
			t.Errorf("%s: pressure %v, error %v, want %v", tc.why, p, err, tc.want)
		}
	}
}

// The real runtime, with the collector off: what it uses grows by garbage alone, then the same amount stays alive.
func TestTheGarbageOfARealRuntimeIsNoPressureAndItsLiveHeapIs(t *testing.T) {
	r := newGoReader()
	h := &heap{runtime: &runtimeLook{read: r.read}}
	th, _ := DefaultThresholds("heap")
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64 - 1)) // set, and never reached
	const block, blocks = 1 << 20, 64
	limit := uint64(0)
	look := func(i int) (pressure, used float64) {
		g := h.runtime.at(noon.Add(time.Duration(i) * interval))
		g.limit = limit
		x, _, err := h.measure(h.runtime.round)
		if err != nil {
			t.Fatal(err)
		}
		return th.Pressure(x), float64(g.used) / float64(limit)
	}
	var alive [blocks][]byte
	for range blocks {
		alive[0] = make([]byte, block)
	}
	limit = r.read().used * 100 / 95
	if p, used := look(1); p != 0 || used < 0.9 {
		t.Errorf("with %.2f of the limit in use, most of it garbage, the pressure is %v", used, p)
	}
	for i := range alive {
		alive[i] = make([]byte, block)
	}
	runtime.GC()
	limit = r.read().live * 100 / 95
	if p, _ := look(2); p != 1 {
		t.Errorf("with 0.95 of the limit alive the pressure is %v", p)
	}
	runtime.KeepAlive(&alive)
}

func TestWithoutALimitOrAMetricThereIsNoOpinion(t *testing.T) {
	for why, g := range map[string]goStats{"no GOMEMLIMIT": {hasMemory: true, live: gib}, "kind Bad": {}} {
		look := &runtimeLook{read: func() goStats { return g }}
		if _, _, err := (&heap{runtime: look}).measure(noon); !errors.Is(err, errAbsent) {
			t.Errorf("%s: heap says %v", why, err)
		}
		if _, _, err := (&gcLimiter{runtime: look}).measure(noon); !errors.Is(err, errAbsent) {
			t.Errorf("%s: gc_limiter says %v", why, err)
		}
		if _, _, err := newScheduling(look).measure(noon); !errors.Is(err, errAbsent) {
			t.Errorf("%s: scheduling says %v", why, err)
		}
	}
}

func TestTheLimiterOfTheCollectorIsAnEventThatHoldsForAWhile(t *testing.T) {
	g := goStats{hasLimiter: true, limiter: 7} // it was on before we looked
	look := &runtimeLook{read: func() goStats { return g }}
	tr := track{role: Primary, thresholds: Thresholds{0, 1}}
	l := &gcLimiter{runtime: look}
	now := noon
	step := func() float64 {
		now = now.Add(interval)
		v, dt, err := l.measure(now)
		tr.add(now, v, dt, err)
		return tr.pressure()
	}
	for range 10 {
		if p := step(); p != 0 {
			t.Fatalf("from before we looked the pressure is %v", p)
		}
	}
	g.limiter = 8
	for passed := time.Duration(0); passed < limiterHolds; passed += interval {
		if p := step(); p < 0.99 {
			t.Fatalf("%v after the event the pressure is %v", passed, p)
		}
	}
	if p := step(); p > 0.01 {
		t.Errorf("after %v the pressure is %v", limiterHolds, p)
	}
}

// histogram counts waits into the buckets between bounds.
func histogram(bounds []float64, waits ...float64) []uint64 {
	counts := make([]uint64, len(bounds)-1)
	for _, w := range waits {
		for i := range counts {
			if w >= bounds[i] && w < bounds[i+1] {
				counts[i]++
			}
		}
	}
	return counts
}

var testBounds = []float64{math.Inf(-1), 0, 0.001, 0.01, 0.02, 0.1, 1, math.Inf(1)}

func TestSchedulingIsTheUpperBoundOfTheBucketOfThe99thPercentile(t *testing.T) {
	g := goStats{bounds: testBounds, waits: histogram(testBounds)}
	s := newScheduling(&runtimeLook{read: func() goStats { return g }})
	add := func(n int, wait float64) {
		for i, c := range histogram(testBounds, wait) {
			g.waits[i] += c * uint64(n)
		}
	}
	now := noon
	look := func() (float64, error) {
		now = now.Add(interval)
		v, _, err := s.measure(now)
		return v, err
	}
	look()
	for _, tc := range []struct {
		why  string
		fast int
		slow int
		wait float64
		want float64
		err  error
	}{
		{"nothing at all", 0, 0, 0, 0, errFewWaits},
		{"5 while the CPU is busy", 0, 5, 0.5, 0, errFewWaits},
		{"19", 19, 0, 0, 0, errFewWaits},
		{"20", 20, 0, 0, 0.001, nil},
		{"one of 100 is within the percentile", 99, 1, 0.5, 0.001, nil},
		{"two of 100 are not", 98, 2, 0.05, 0.1, nil},
		{"the last bucket has no upper bound", 0, 100, 5, 1, nil},
	} {
		for range 9 { // everything before has left the window
			look()
		}
		add(tc.fast, 0.0005)
		add(tc.slow, tc.wait)
		if v, err := look(); !errors.Is(err, tc.err) || v != tc.want {
			t.Errorf("%s: %v, %v, want %v, %v", tc.why, v, err, tc.want, tc.err)
		}
	}
	g.waits[1] = 0
	if _, err := look(); !errors.Is(err, errWaitsFell) {
		t.Errorf("a bucket that falls: %v", err)
	}
	add(30, 0.0005)
	if v, err := look(); err != nil || v != 0.001 {
		t.Errorf("after a bucket fell: %v, %v", v, err)
	}
	g.bounds = testBounds[1:]
	if _, err := look(); !errors.Is(err, errWaitsForm) {
		t.Errorf("a histogram without all its bounds: %v", err)
	}
}

// Against an exact model: the waits themselves, sorted.
func TestSchedulingBoundsTheExactPercentile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		waits := rapid.SliceOfN(rapid.Float64Range(0, 0.999), fewestWaits, 400).Draw(t, "waits")
		g := goStats{bounds: testBounds, waits: histogram(testBounds)}
		s := newScheduling(&runtimeLook{read: func() goStats { return g }})
		s.measure(noon)
		g.waits = histogram(testBounds, waits...)
		got, _, err := s.measure(noon.Add(interval))
		if err != nil {
			t.Fatal(err)
		}
		below, atMost := 0, 0 // by the bounds of the answer's bucket
		for _, w := range waits {
			if w < got {
				atMost++
			}
			for i := 1; i < len(testBounds); i++ {
				if testBounds[i] == got && w < testBounds[i-1] {
					below++
				}
			}
		}
		if 100*atMost < 99*len(waits) || 100*below >= 99*len(waits) {
			t.Fatalf("of %d waits %d are below %v and %d below its bucket", len(waits), atMost, got, below)
		}
	})
}

// The runtime fills the memory of a sample again; whoever keeps it sees no differences for ever.
func TestTheRuntimesOwnHistogramGivesDifferences(t *testing.T) {
	r := newGoReader()
	s := newScheduling(&runtimeLook{read: r.read})
	first := r.read()
	if len(first.waits) == 0 {
		t.Fatal("no latency histogram")
	}
	if shared := r.read(); &shared.waits[0] != &first.waits[0] {
		t.Log("this version of Go does not share the memory; the copy is still right")
	}
	s.measure(noon)
	for range 2000 { // one transition in eight is counted
		done := make(chan struct{})
		go func() { close(done) }()
		<-done
	}
	if v, _, err := s.measure(noon.Add(interval)); err != nil || v <= 0 {
		t.Errorf("after 2000 goroutines: %v, %v", v, err)
	}
}

func TestTheRealRuntimeSaysEverything(t *testing.T) {
	g := newGoReader().read()
	if !g.hasMemory || !g.hasLimiter || g.used == 0 || g.used < g.stacks || len(g.bounds) != len(g.waits)+1 {
		t.Errorf("it says %+v", g)
	}
	if set := debug.SetMemoryLimit(-1); set == math.MaxInt64 && g.limit != 0 || set < math.MaxInt64 && g.limit != uint64(set) {
		t.Errorf("GOMEMLIMIT is %d, and it says %d", set, g.limit)
	}
	bad := &goReader{samples: make([]metrics.Sample, sampleWaits+1)}
	if b := bad.read(); b.hasMemory || b.hasLimiter || b.waits != nil {
		t.Errorf("of kind Bad it says %+v", b)
	}
	runtime.KeepAlive(bad)
}

func TestTimerLagIsTheWorstOfTheLastTwoSeconds(t *testing.T) {
	l := newTimerLag()
	if _, _, err := l.measure(noon); !errors.Is(err, errNoNews) {
		t.Errorf("before anything was due: %v", err)
	}
	now := noon
	for i := range 20 {
		l.expect(now.Add(interval))
		now = now.Add(interval)
		if i == 3 {
			now = now.Add(310 * time.Millisecond)
		}
		got, _, err := l.measure(now)
		want := 0.0
		if i >= 3 && i < 12 {
			want = 0.31
		}
		if err != nil || !near(got, want, 1e-9) {
			t.Errorf("round %d: %v, %v, want %v", i, got, err, want)
		}
	}
}

// Timers and goroutines are late for everyone on a crowded machine. Only while we are at our own limit it is about us.
func TestLatenessThatNeighboursMakeIsNoPressure(t *testing.T) {
	for _, tc := range []struct {
		why  string
		load float64
		want float64
	}{{"idle among busy neighbours", 0.03, 0}, {"control: busy ourselves", 0.77, 1}} {
		synctest.Test(t, func(t *testing.T) {
			var late atomic.Int64
			clock := func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
			sv := newService(1, 0, clock)
			sv.use(tc.load, 0)
			sys := sv.system()
			counts := histogram(testBounds)
			sys.runtime = func() goStats {
				counts[5] += 50 // waits of 0.1 s to 1 s
				return goStats{bounds: testBounds, waits: counts}
			}
			s := must[*Sampler](t)(newSampler(Config{WarmUp: -1}, sys))
			s.Start()
			defer s.Close()
			for range 80 {
				pass(interval / 2)
				late.Add(int64(150 * time.Millisecond))
				pass(interval / 2)
			}
			pressed(t, s, tc.want, tc.why)
			for _, name := range []string{"timer_lag", "scheduling"} {
				if r := signalNamed(t, s, name); r.Pressure != 1 || r.Counts != (tc.want > 0) {
					t.Errorf("%s: %s reads %+v", tc.why, name, r)
				}
			}
		})
	}
}

// A process that was stopped for longer than 5 s says nothing about that time, and nothing from before it lives on.
func TestNothingOlderThanFiveSecondsIsCarriedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stopped atomic.Int64
		clock := func() time.Time { return time.Now().Add(time.Duration(stopped.Load())) }
		sv := newService(1, 0, clock)
		sv.use(1, 0)
		s := must[*Sampler](t)(newSampler(Config{WarmUp: -1}, sv.system()))
		s.Start()
		defer s.Close()
		pass(5*time.Second + interval/2)
		pressed(t, s, 1, "before")
		sv.use(0.3, 0)
		stopped.Add(int64(6 * time.Second))
		pass(interval)
		if s.State() != Stale {
			t.Errorf("after the stop the state is %v", s.State())
		}
		pass(2 * interval)
		if cpu := signalNamed(t, s, "cpu"); cpu.Discarded[TooLong] != 1 || !near(cpu.Value, 0.3, 0.01) {
			t.Errorf("cpu reads %+v", cpu)
		}
	})
}
