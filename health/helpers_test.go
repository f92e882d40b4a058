package health

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var defaultCPU, _ = DefaultThresholds("cpu")

// watch starts a Sampler without warm-up on sv, inside a bubble, and closes it with the test.
func watch(t *testing.T, sv *service, cfg Config) *Sampler {
	t.Helper()
	if cfg.WarmUp == 0 {
		cfg.WarmUp = -1
	}
	s := must[*Sampler](t)(newSampler(cfg, sv.system()))
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// pass lets virtual time go by and the sampler finish what it has to do by then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// pressed fails unless the pressure is known and within a rounding of want.
func pressed(t *testing.T, s *Sampler, want float64, why string) {
	t.Helper()
	if p, known := s.Pressure(); !known || !near(p, want, 0.01) {
		t.Errorf("%s: pressure %v, known %v, want %v; %+v", why, p, known, want, s.Status())
	}
}

// unknown fails unless there is no pressure, for the reason state.
func unknown(t *testing.T, s *Sampler, state State, why string) {
	t.Helper()
	if p, known := s.Pressure(); known || p != 0 || s.State() != state {
		t.Errorf("%s: pressure %v, known %v, state %v, want unknown, %v", why, p, known, s.State(), state)
	}
}

// signalNamed is one line of the status.
func signalNamed(t *testing.T, s *Sampler, name string) Reading {
	t.Helper()
	for _, r := range s.Status().Signals {
		if r.Signal == name {
			return r
		}
	}
	t.Fatalf("no signal %q in %+v", name, s.Status())
	return Reading{}
}

// scripted is a signal that says what it is told to, and may be made to block.
type scripted struct {
	mu    sync.Mutex
	label string
	value float64
	err   error
	block chan struct{}
}

func (s *scripted) set(value float64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value, s.err = value, err
}

func (s *scripted) name() string { return s.label }

func (s *scripted) measure(time.Time) (float64, time.Duration, error) {
	if s.block != nil {
		<-s.block
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value, interval, s.err
}

func (s *scripted) source() string { return "a script" }
