package health

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheFirstPressureComesAfterThreeIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := newService(2, 0, time.Now)
		sv.use(2, 0)
		s := watch(t, sv, Config{})
		pass(2 * interval)
		unknown(t, s, Warming, "after a baseline and two spans")
		pass(interval)
		pressed(t, s, 1, "after three spans")
	})
}

func TestAQuotaThatIsUsedUpIsFullPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := newService(2, 0.2, time.Now)
		sv.use(2, 0) // two busy goroutines
		s := watch(t, sv, Config{})
		pass(5 * time.Second)
		pressed(t, s, 1, "two busy goroutines under a fifth of a core")
		if cpu := signalNamed(t, s, "cpu"); cpu.Value < 0.95 || !strings.Contains(cpu.Source, "0.2 cores (quota of cgroup /pod/app)") {
			t.Errorf("cpu reads %+v", cpu)
		}
		if th := signalNamed(t, s, "throttle"); th.Value < 0.9 || th.Pressure != 1 {
			t.Errorf("throttle reads %+v", th)
		}
		sv.limit(4) // in place: two CPUs are now all there is, and still all used
		pass(5 * time.Second)
		if cpu := signalNamed(t, s, "cpu"); cpu.Value < 0.95 || !strings.Contains(cpu.Source, "of 2 cores (below the quota of cgroup /pod/app, 4)") {
			t.Errorf("under a larger quota cpu reads %+v", cpu)
		}
		sv.limit(0)
		pass(5 * time.Second)
		if th := signalNamed(t, s, "throttle"); th.State != Absent {
			t.Errorf("without a quota throttle reads %+v", th)
		}
		pressed(t, s, 1, "without a quota")
	})
}

// The host is full of others: beside us, in the same cgroup, in a tighter parent. None of it is ours to shed. The control
// is the same load as our own.
func TestTheLoadOfOthersIsNoPressure(t *testing.T) {
	for name, tc := range map[string]struct {
		quota, own, sidecar float64
		want                float64
	}{
		"neighbours on the host":               {0, 0.03, 0, 0},
		"neighbours in the cgroup":             {0, 0.03, 1.9, 0},
		"neighbours fill the cgroup's quota":   {1, 0.03, 3, 0},
		"0.12 core on a host at 90 %":          {0.12, 0.01, 0, 0},
		"control: the load is our own":         {1, 3, 0.03, 1},
		"control: our own, without any quota":  {0, 1.95, 0, 1},
		"our own under what neighbours leave":  {2, 0.9, 1.05, 0},
		"our children's load is ours to limit": {1, 0.7, 0.29, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sv := newService(2, tc.quota, time.Now)
				sv.use(tc.own, tc.sidecar)
				s := watch(t, sv, Config{})
				for range 40 {
					pass(time.Second)
					pressed(t, s, tc.want, "while it lasts")
				}
			})
		})
	}
}

func TestANeighbourThatStartsNeverShedsUs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := newService(4, 1, time.Now)
		sv.use(0.6, 0)
		s := watch(t, sv, Config{})
		pass(30 * time.Second)
		pressed(t, s, 0, "alone at 60 %")
		sv.use(0.1, 3)
		for range 100 {
			pass(100 * time.Millisecond)
			pressed(t, s, 0, "after the neighbour started")
		}
	})
}

func TestAStepUpIsSeenWithinASecondAndAHalfAndAStepDownEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := newService(2, 1, time.Now)
		sv.use(0.3, 0)
		s := watch(t, sv, Config{})
		pass(10 * time.Second)
		pressed(t, s, 0, "at 30 %")
		sv.use(1.5, 0)
		pass(1500 * time.Millisecond)
		if p, _ := s.Pressure(); p <= 0.5 { // the band in which a cap is cut
			t.Errorf("after 1.5 s the pressure is %v", p)
		}
		pass(5 * time.Second)
		pressed(t, s, 1, "at the quota")
		sv.use(0.3, 0)
		last := 1.0
		for range 40 { // monotone, no overshoot
			pass(interval)
			p, known := s.Pressure()
			if !known || p > last {
				t.Fatalf("on the way down: %v (known %v) after %v", p, known, last)
			}
			last = p
		}
		pressed(t, s, 0, "10 s after the load ended")
	})
}

func TestSamplesOfTenAndNinetyPercentByTurnsDoNotFlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := newService(1, 0, time.Now)
		sv.use(0.5, 0)
		s := watch(t, sv, Config{})
		pass(5*time.Second - interval/2) // from here on every span lies in one load, up to its halves
		before := signalNamed(t, s, "cpu").Transitions
		for i := range 200 {
			sv.use([]float64{0.1, 0.9}[i%2], 0)
			pass(interval)
			pressed(t, s, 0, "in between")
		}
		if after := signalNamed(t, s, "cpu").Transitions; after != before {
			t.Errorf("the state changed %d times", after-before)
		}
	})
}

// The control: without smoothing the very same samples reach the thresholds at every other turn.
func TestControlWithoutSmoothingTenAndNinetyPercentFlap(t *testing.T) {
	flaps, last := 0, 0.0
	for i := range 200 {
		p := defaultCPU.Pressure([]float64{0.1, 0.9}[i%2])
		if (p > 0) != (last > 0) {
			flaps++
		}
		last = p
	}
	if flaps < 190 {
		t.Errorf("raw samples flap %d times in 200; the scenario provokes nothing", flaps)
	}
}

// The control: rated by the whole cgroup, as if it were always ours, the neighbours' load is full pressure.
func TestControlWithoutOwnershipNeighboursShedUs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := newService(2, 1, time.Now)
		sv.use(0.03, 3)
		look := &looker{system: sv.system(), cgroups: cgroups{fsys: sv.tree}}
		before := must[counters](t)(look.look())
		pass(interval)
		after := must[counters](t)(look.look())
		look.cgroups.close()
		s := must[span](t)((&meter{last: before}).next(after))
		if s.ours || s.utilisation() > 0.1 {
			t.Errorf("ours: %v, utilisation %v", s.ours, s.utilisation())
		}
		s.ours = true // the broken implementation
		if p := defaultCPU.Pressure(s.utilisation()); p < 1 {
			t.Errorf("by the whole cgroup the pressure is %v; the scenario provokes nothing", p)
		}
	})
}

func TestASourceThatVanishesHoldsThenIsNeutralThenIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := newService(2, 0.2, time.Now)
		sv.use(2, 0)
		s := watch(t, sv, Config{})
		pass(10 * time.Second)
		pressed(t, s, 1, "before")

		taken := sv.remove("/sys/fs/cgroup")
		pass(500 * time.Millisecond)
		pressed(t, s, 1, "for two samples")
		if s.State() != OK {
			t.Errorf("a value two intervals old is %v", s.State())
		}
		pass(2 * time.Second)
		pressed(t, s, 1, "while it holds")
		if s.State() != Stale {
			t.Errorf("a value 2.5 s old is %v", s.State())
		}
		pass(7490 * time.Millisecond)
		pressed(t, s, 1, "to the end")
		pass(10 * time.Millisecond)
		unknown(t, s, Failed, "after 10 s")
		if cpu := signalNamed(t, s, "cpu"); cpu.Discarded[Unreadable] != 40 || !strings.Contains(cpu.Error, "vanished") && !strings.Contains(cpu.Error, "no such device") {
			t.Errorf("cpu reads %+v", cpu)
		}

		sv.restore(taken)
		pass(4 * interval) // what passed meanwhile says nothing about now: a baseline, then three spans
		pressed(t, s, 1, "after it returned")
		if cpu := signalNamed(t, s, "cpu"); cpu.Transitions != 5 { // ok, stale, failed, warming, ok
			t.Errorf("%d transitions, want 5", cpu.Transitions)
		}
	})
}

func TestOneSignalThatFailsLeavesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &scripted{label: "a", value: 0.4}, &scripted{label: "b", value: 0.9}
		s := assemble(Config{}, time.Now, func() {}, watched{signal: a, thresholds: Thresholds{0, 1}}, watched{signal: b, thresholds: Thresholds{0, 1}})
		s.Start()
		defer s.Close()
		pass(10 * time.Second)
		pressed(t, s, 0.9, "the maximum, not the mean")
		b.set(0, errors.New("gone"))
		pass(5 * time.Second)
		pressed(t, s, 0.9, "while b holds")
		if s.State() != Stale {
			t.Errorf("what rests on a stale signal is %v", s.State())
		}
		pass(5 * time.Second)
		pressed(t, s, 0.4, "without b")
		if s.State() != OK {
			t.Errorf("without b it is %v", s.State())
		}
		a.set(math.NaN(), nil)
		pass(10 * time.Second)
		unknown(t, s, Failed, "without both")
		b.set(0, errAbsent)
		a.set(0, errAbsent)
		pass(interval)
		unknown(t, s, Absent, "with nothing to measure")
	})
}

func TestOfTwoThatSayTheSameTheFreshOneIsBelieved(t *testing.T) {
	now := noon.Add(time.Second)
	stale := track{role: Primary, thresholds: Thresholds{0, 1}, avg: settled(0.5), at: noon}
	fresh := track{role: Primary, thresholds: Thresholds{0, 1}, avg: settled(0.5), at: now}
	for _, tracks := range [][]track{{stale, fresh}, {fresh, stale}} {
		snap := snapshot{warmUntil: noon, tracks: tracks}
		if p, state := snap.total(now); p != 0.5 || state != OK {
			t.Errorf("pressure %v, state %v, want 0.5, ok", p, state)
		}
	}
}

func TestAFallenCounterIsDiscardedAndTheNextSampleIsFine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := newService(2, 1, time.Now)
		sv.use(0.5, 0)
		s := watch(t, sv, Config{})
		pass(10 * time.Second)
		sv.mu.Lock()
		sv.run()
		sv.all, sv.periods, sv.hit = 0, 0, 0
		sv.mu.Unlock()
		for range 40 {
			pass(interval)
			pressed(t, s, 0, "after the reset")
		}
		cpu := signalNamed(t, s, "cpu")
		if cpu.Discarded[CounterFell] != 1 || !near(cpu.Value, 0.5, 0.01) || cpu.Transitions != 1 {
			t.Errorf("cpu reads %+v", cpu)
		}
	})
}

// A sampler that does not get to run rates what passed with the time that passed.
func TestAStarvedSamplerMakesNoSpike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := newService(1, 0, time.Now)
		sv.use(0.5, 0)
		sys := sv.system()
		turn := make(chan struct{}, 1) // taken: the sampler waits for it, as virtual time may not wait for a mutex
		sys.processTime = func() (time.Duration, error) {
			turn <- struct{}{}
			defer func() { <-turn }()
			return sv.processTime()
		}
		s := must[*Sampler](t)(newSampler(Config{WarmUp: -1}, sys))
		s.Start()
		defer s.Close()
		pass(10 * time.Second)
		for range 5 {
			turn <- struct{}{}
			time.Sleep(2 * time.Second)
			if s.State() != Stale {
				t.Errorf("while the sampler is stuck the state is %v", s.State())
			}
			<-turn
			pass(interval)
			pressed(t, s, 0, "after the gap")
			if cpu := signalNamed(t, s, "cpu"); !near(cpu.Value, 0.5, 0.01) {
				t.Errorf("after the gap cpu reads %v", cpu.Value)
			}
		}
	})
}

func TestWarmUpOnlyObserves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := newService(2, 0.2, time.Now)
		sv.use(2, 0)
		s := must[*Sampler](t)(newSampler(Config{}, sv.system()))
		unknown(t, s, Absent, "before Start")
		if n := len(s.Status().Signals); n != 0 {
			t.Errorf("%d signals before Start", n)
		}
		s.Start()
		defer s.Close()
		pass(60*time.Second - 1)
		unknown(t, s, Warming, "at the end of the first minute")
		if cpu := signalNamed(t, s, "cpu"); cpu.State != Warming || !cpu.Measured || cpu.Pressure != 1 {
			t.Errorf("what is observed reads %+v", cpu)
		}
		pass(1)
		pressed(t, s, 1, "from the second minute on")
	})
}

func TestAnOverrideIsWhatWeMayUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := newService(16, 0, time.Now) // requests without limits leave no trace
		sv.use(0.5, 0)
		s := watch(t, sv, Config{CPULimit: 0.5})
		plain := watch(t, sv, Config{})
		pass(10 * time.Second)
		pressed(t, s, 1, "all of half a core")
		pressed(t, plain, 0, "half a core of sixteen")
	})
}

// Two samplers and whatever else reads the same counters have nothing in common: no state is shared in the process.
func TestSomebodyElseWhoReadsTheSameCountersChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := newService(2, 1, time.Now)
		sv.use(0.9, 0)
		s := watch(t, sv, Config{})
		for range 500 {
			other := must[*Sampler](t)(newSampler(Config{}, sv.system()))
			other.sample()
			other.release()
			sv.processTime()
			time.Sleep(2 * time.Millisecond)
			other.sample()
			other.release()
		}
		pass(5 * time.Second)
		pressed(t, s, 0.75, "at 90 %")
		if cpu := signalNamed(t, s, "cpu"); cpu.Discarded != nil {
			t.Errorf("cpu reads %+v", cpu)
		}
	})
}
