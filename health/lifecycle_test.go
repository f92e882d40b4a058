package health

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestCloseIsFineAtAnyTimeAndAgain(t *testing.T) {
	for name, use := range map[string]func(*Sampler){
		"before Start":             func(s *Sampler) {},
		"before Start, then Start": func(s *Sampler) { s.Close(); s.Start() },
		"right after Start":        func(s *Sampler) { s.Start() },
		"after two Starts":         func(s *Sampler) { s.Start(); s.Start() },
		"between samples":          func(s *Sampler) { s.Start(); pass(interval / 2) },
		"at the very time of one":  func(s *Sampler) { s.Start(); time.Sleep(interval) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the bubble fails if a goroutine is left
				sv := newService(2, 1, time.Now)
				s := must[*Sampler](t)(newSampler(Config{WarmUp: -1}, sv.system()))
				use(s)
				var all sync.WaitGroup
				for range 3 {
					all.Go(s.Close)
				}
				s.Close()
				all.Wait()
				unknown(t, s, Absent, "after Close")
				if n := len(s.Status().Signals); n != 0 {
					t.Errorf("%d signals after Close", n)
				}
				if n := sv.openFiles(); n != 0 {
					t.Errorf("%d files are open after Close", n)
				}
			})
		})
	}
}

func TestCloseDuringASampleWaitsForItAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &scripted{label: "slow", block: make(chan struct{})}
		s := assemble(Config{}, time.Now, func() {}, watched{signal: slow, thresholds: Thresholds{0, 1}})
		s.Start()
		synctest.Wait() // the first sample is stuck
		closed := make(chan struct{})
		go func() { s.Close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Fatal("Close returned while the sample was running")
		default:
		}
		close(slow.block)
		synctest.Wait()
		select {
		case <-closed:
		default:
			t.Fatal("Close did not return after the sample")
		}
	})
}

func TestOffStartsNothingAndKnowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := newService(2, 1, time.Now)
		sv.use(2, 0)
		s := must[*Sampler](t)(newSampler(Config{Off: true, WarmUp: -1}, sv.system()))
		s.Start()
		pass(time.Minute)
		unknown(t, s, Absent, "while off")
		if n := sv.openFiles(); n != 0 {
			t.Errorf("%d files were opened", n)
		}
		s.Close()
	})
}

func TestNewStartsNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	must[*Sampler](t)(New(Config{}))
	if after := runtime.NumGoroutine(); after != before {
		t.Errorf("%d goroutines, were %d", after, before)
	}
}

// For the race detector: samples against readers at full speed, through Start and Close.
func TestReadersAtFullSpeedSeeWholeSnapshots(t *testing.T) {
	a := &scripted{label: "a", value: 0.5}
	s := assemble(Config{}, time.Now, func() {}, watched{signal: a, thresholds: Thresholds{0, 1}})
	first := *s.latest.Load()
	first.warmUntil = time.Now()
	s.latest.Store(&first)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if p, known := s.Pressure(); known && p != 0.5 {
					t.Errorf("pressure %v", p)
				}
				for _, r := range s.Status().Signals {
					if r.Signal != "a" || r.Measured && r.Value != 0.5 {
						t.Errorf("signal %+v", r)
					}
				}
				if p, state := s.PressureOf("a"); p != 0 || state.Known() {
					t.Errorf("route a has pressure %v, %v", p, state)
				}
				s.State()
			}
		})
	}
	for range 2000 {
		s.sample()
	}
	s.Start()
	s.Close()
	close(stop)
	readers.Wait()
}

// The machine the test runs on, whatever it is: the sources exist or are absent, and say something possible. Linux always has them.
func TestTheRealSystemAnswers(t *testing.T) {
	sys := realSystem()
	l := looker{system: sys, cgroups: cgroups{fsys: sys.files}}
	defer l.cgroups.close()
	before, err := l.look()
	if err != nil && runtime.GOOS != "linux" {
		t.Skipf("this machine does not say: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	for range 20_000_000 { // some CPU time, however long it takes
		runtime.KeepAlive(before)
	}
	after := must[counters](t)(l.look())
	if !(after.cores > 0 && after.cores <= float64(runtime.NumCPU())) {
		t.Errorf("%v cores on a machine with %d CPUs", after.cores, runtime.NumCPU())
	}
	if used, passed := after.own-before.own, after.at.Sub(before.at); used <= 0 || used > passed*time.Duration(runtime.NumCPU())+20*time.Millisecond {
		t.Errorf("%v of CPU time in %v", used, passed)
	}
}

// Every source of this machine is there in its documented form, or it is absent.
func TestNoRealSourceIsMalformed(t *testing.T) {
	s := must[*Sampler](t)(New(Config{MemoryStall: Thresholds{0.1, 0.2}, HostCPU: Thresholds{0.1, 0.2}}))
	defer s.release()
	s.sample()
	for _, tr := range s.latest.Load().tracks {
		if n := tr.discarded.byReason(); n[Malformed] > 0 || n[NotANumber] > 0 {
			t.Errorf("%s: %v", tr.name, tr.err)
		}
	}
}
