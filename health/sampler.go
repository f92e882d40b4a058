package health

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Sampler asks every signal four times a second and keeps what they say. All methods are safe for concurrent use.
type Sampler struct {
	off     bool
	warmUp  time.Duration
	clock   func() time.Time
	signals []signal
	release func()          // lets go of what the signals share
	expect  func(time.Time) // told when the next round is due
	latest  atomic.Pointer[snapshot]

	mu      sync.Mutex // guards what follows; held over nothing that waits
	started bool
	closed  bool
	stop    chan struct{} // closed by the first Close
	done    chan struct{} // closed when nothing runs any more
}

// snapshot is what was known after one round. It is never changed once it is published.
type snapshot struct {
	warmUntil time.Time
	tracks    []track
}

// New checks cfg and makes a Sampler that knows nothing yet. It starts nothing and opens nothing: Start does.
func New(cfg Config) (*Sampler, error) { return newSampler(cfg, realSystem()) }

func newSampler(cfg Config, sys system) (*Sampler, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	list, expect, release := signals(cfg, sys)
	s := assemble(cfg, sys.clock, release, list...)
	s.expect = expect
	return s, nil
}

// signals are those that cfg asks for, in the order of Status; expect is told when the next round is due, and release lets go
// of everything they hold open.
func signals(cfg Config, sys system) (list []watched, expect func(time.Time), release func()) {
	look := &looker{system: sys, cgroups: cgroups{fsys: sys.files}, limit: cfg.CPULimit}
	shared := &account{look: look.look}
	inside := &runtimeLook{read: sys.runtime}
	held := &memory{cgroups: cgroups{fsys: sys.files, kind: memoryLimit}, runtime: inside}
	lag := newTimerLag()
	closers := []func(){look.cgroups.close, held.close}
	list = []watched{
		{signal: &cpu{account: shared}, thresholds: cfg.CPU, own: true},
		{signal: &throttle{account: shared}, thresholds: cfg.Throttle, own: true},
		{signal: held, thresholds: cfg.Memory},
		{signal: &heap{runtime: inside}, thresholds: cfg.Heap},
		{signal: &gcLimiter{runtime: inside}, thresholds: Thresholds{Low: 0, High: 1}},
		{signal: newScheduling(inside), thresholds: cfg.Scheduling.seconds(), role: Supporting},
		{signal: lag, thresholds: cfg.TimerLag.seconds(), role: Supporting},
	}
	if cfg.MemoryStall != (Thresholds{}) {
		stall := newMemoryStall(sys.files)
		closers = append(closers, stall.cgroups.close)
		list = append(list, watched{signal: stall, thresholds: cfg.MemoryStall})
	}
	if cfg.HostCPU != (Thresholds{}) {
		host := newHostReader(sys.files)
		closers = append(closers, host.close)
		list = append(list, watched{signal: &hostCPU{read: host.read}, thresholds: cfg.HostCPU, role: Observing})
	}
	for _, p := range cfg.Pools {
		list = append(list, watched{signal: &pool{label: p.Name, stats: p.Stats, queued: p.Queued}, thresholds: p.Queued,
			role: Scoped, routes: p.Routes})
	}
	for _, d := range cfg.Dependencies {
		list = append(list, watched{signal: newFailures(d), thresholds: d.Failed, role: Scoped, routes: d.Routes})
	}
	for _, k := range cfg.Checks {
		w := watched{signal: &check{Check: k, clock: sys.clock}, thresholds: k.Thresholds, routes: k.Routes}
		if len(k.Routes) > 0 {
			w.role = Scoped
		}
		list = append(list, w)
	}
	return list, lag.expect, func() {
		for _, c := range closers {
			c()
		}
	}
}

// assemble makes a Sampler of signals; cfg has its defaults.
func assemble(cfg Config, clock func() time.Time, release func(), list ...watched) *Sampler {
	s := &Sampler{
		off:     cfg.Off,
		warmUp:  cfg.WarmUp,
		clock:   clock,
		release: release,
		expect:  func(time.Time) {},
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	first := &snapshot{tracks: make([]track, len(list))}
	for i, w := range list {
		s.signals = append(s.signals, w.signal)
		first.tracks[i] = track{name: w.name(), thresholds: w.thresholds, role: w.role, routes: w.routes, own: w.own}
		if w.role == "" {
			first.tracks[i].role = Primary
		}
	}
	s.latest.Store(first)
	return s
}

// Start begins sampling on one goroutine. The first call counts; after Close, or with Config.Off, it does nothing.
func (s *Sampler) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off || s.started || s.closed {
		return
	}
	s.started = true
	now := s.clock()
	first := *s.latest.Load()
	first.warmUntil = now.Add(s.warmUp)
	s.latest.Store(&first)
	go s.run()
}

// Close ends sampling and returns when every goroutine is gone and every file closed; from then on no pressure is known. It
// may be called at any time, from several goroutines, and again. Only a Check that ignores the end of its context can outlive
// it: Close waits a second for it.
func (s *Sampler) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	if first {
		close(s.stop)
		if !s.started {
			close(s.done)
		}
	}
	s.mu.Unlock()
	<-s.done
}

// run samples until Close. It sleeps between samples, rather than following a ticker, so that late samples do not pile up
// into a burst of short ones.
func (s *Sampler) run() {
	defer close(s.done)
	defer s.release()
	defer s.latest.Store(&snapshot{})
	defer s.background()()
	pause := time.NewTimer(interval)
	defer pause.Stop()
	for {
		s.sample()
		s.expect(s.clock().Add(interval))
		pause.Reset(interval)
		select {
		case <-s.stop:
			return
		case <-pause.C:
		}
	}
}

// background lets signals that work between samples do so, until the function that it returns has been called.
func (s *Sampler) background() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all []chan struct{}
	for _, sig := range s.signals {
		b, ok := sig.(interface{ run(context.Context) })
		if !ok {
			continue
		}
		gone := make(chan struct{})
		all = append(all, gone)
		go func() {
			defer close(gone)
			b.run(ctx)
		}()
	}
	return func() {
		cancel()
		patience := time.NewTimer(closeGrace)
		defer patience.Stop()
		for _, gone := range all {
			select {
			case <-gone:
			case <-patience.C:
				return
			}
		}
	}
}

// sample asks every signal once and publishes the result.
func (s *Sampler) sample() {
	old := s.latest.Load()
	next := &snapshot{warmUntil: old.warmUntil, tracks: make([]track, len(old.tracks))}
	copy(next.tracks, old.tracks)
	round := s.clock()
	for i, sig := range s.signals {
		value, dt, err := sig.measure(round)
		t := &next.tracks[i]
		t.source = sig.source()
		t.add(s.clock(), value, dt, err)
	}
	s.latest.Store(next)
}

// Pressure is the maximum over the signals that have one, in [0,1], and whether there is any. Unknown is neither 0 nor 1:
// the caller goes on as if there were no health. It takes no lock and does not allocate.
func (s *Sampler) Pressure() (total float64, known bool) {
	total, state := s.latest.Load().total(s.clock())
	return total, state.Known()
}

// PressureOf is the maximum over the signals that are scoped to the named route (pools, dependencies, checks), and what it rests
// on. It counts only if State.Known(); while Stale, hold. Without such signals it is Absent. What is about the whole process
// is in Pressure and not in here. It takes no lock and does not allocate.
func (s *Sampler) PressureOf(route string) (float64, State) {
	return s.latest.Load().of(route, s.clock())
}

// State says what Pressure rests on. While it is Stale, the pressure is that of a moment ago: hold, neither cut nor raise
// because of it. It takes no lock and does not allocate.
func (s *Sampler) State() State {
	_, state := s.latest.Load().total(s.clock())
	return state
}

// Status is everything that is known, for people and metrics.
func (s *Sampler) Status() Status {
	now, snap := s.clock(), s.latest.Load()
	var st Status
	st.Pressure, st.State = snap.total(now)
	if snap.warmUntil.IsZero() {
		return st
	}
	st.Signals = make([]Reading, len(snap.tracks))
	busy := snap.busy(now)
	for i := range snap.tracks {
		r := &st.Signals[i]
		*r = snap.tracks[i].reading(now)
		if now.Before(snap.warmUntil) && r.State.Known() {
			r.State = Warming
		}
		r.Counts = r.State.Known() && (r.Role == Primary || r.Role == Scoped || r.Role == Supporting && busy)
	}
	return st
}
