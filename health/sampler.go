package health

import (
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
	release func() // lets go of what the signals share
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
	look := &looker{system: sys, cgroups: cgroups{fsys: sys.files}, limit: cfg.CPULimit}
	shared := &account{look: look.look}
	return assemble(cfg, sys.clock, look.cgroups.close,
		watched{&cpu{account: shared}, cfg.CPU},
		watched{&throttle{account: shared}, cfg.Throttle}), nil
}

// watched is a signal with its thresholds.
type watched struct {
	signal
	thresholds Thresholds
}

// assemble makes a Sampler of signals; cfg has its defaults.
func assemble(cfg Config, clock func() time.Time, release func(), list ...watched) *Sampler {
	s := &Sampler{
		off:     cfg.Off,
		warmUp:  cfg.WarmUp,
		clock:   clock,
		release: release,
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	first := &snapshot{tracks: make([]track, len(list))}
	for i, w := range list {
		s.signals = append(s.signals, w.signal)
		first.tracks[i] = track{name: w.name(), thresholds: w.thresholds}
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

// Close ends sampling and returns when the goroutine is gone and every file closed; from then on no pressure is known. It
// may be called at any time, from several goroutines, and again.
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
	pause := time.NewTimer(interval)
	defer pause.Stop()
	for {
		s.sample()
		pause.Reset(interval)
		select {
		case <-s.stop:
			return
		case <-pause.C:
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
	for i := range snap.tracks {
		st.Signals[i] = snap.tracks[i].reading(now)
		if now.Before(snap.warmUntil) && st.Signals[i].State.Known() {
			st.Signals[i].State = Warming
		}
	}
	return st
}

// total folds the signals: the maximum, since one exhausted resource is enough. One that has no opinion is not part of
// it. Where none has one, the state is what most promises an answer: warming, else failed, else absent.
func (s *snapshot) total(now time.Time) (float64, State) {
	if s.warmUntil.IsZero() {
		return 0, Absent
	}
	if now.Before(s.warmUntil) {
		return 0, Warming
	}
	total, state := 0.0, Absent
	for i := range s.tracks {
		t := &s.tracks[i]
		st := t.state(now)
		switch p := t.pressure(); {
		case !st.Known():
			if !state.Known() && rank[st] > rank[state] {
				state = st
			}
		case !state.Known() || p > total || p == total && st == OK:
			total, state = p, st
		}
	}
	return total, state
}

// rank orders the states without a pressure by how much they promise one.
var rank = [...]int{Warming: 2, Failed: 1, Absent: 0, OK: 3, Stale: 3}
