package health

import (
	"testing"
	"testing/synctest"
	"time"
)

// watchAll starts a Sampler of a script for each role and returns both.
func watchAll(t *testing.T, cfg Config) (s *Sampler, own, helper, route, shown *scripted) {
	t.Helper()
	own, helper = &scripted{label: "own"}, &scripted{label: "helper", value: 1}
	route, shown = &scripted{label: "route", value: 0.6}, &scripted{label: "shown", value: 1}
	fraction := Thresholds{0, 1}
	s = assemble(cfg, time.Now, func() {},
		watched{signal: own, thresholds: Thresholds{0.5, 1.5}, own: true},
		watched{signal: helper, thresholds: fraction, role: Supporting},
		watched{signal: route, thresholds: fraction, role: Scoped, routes: []string{"a", "c"}},
		watched{signal: shown, thresholds: fraction, role: Observing})
	s.Start()
	t.Cleanup(s.Close)
	return s, own, helper, route, shown
}

func TestSupportingSignalsCountOnlyWhileThereIsLoadOfOurOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, own, helper, _, _ := watchAll(t, Config{})
		pass(10 * time.Second)
		pressed(t, s, 0, "we are idle, whatever neighbours do to our timers")
		if r := signalNamed(t, s, "helper"); r.Counts || r.Pressure != 1 || r.State != OK {
			t.Errorf("helper reads %+v", r)
		}
		own.set(0.6, nil) // a pressure of 0.1
		pass(10 * time.Second)
		pressed(t, s, 1, "with load of our own")
		if r := signalNamed(t, s, "helper"); !r.Counts {
			t.Errorf("helper reads %+v", r)
		}
		helper.set(0, errAbsent)
		pass(interval)
		pressed(t, s, 0.1, "with a helper that does not know")
		helper.set(1, nil)
		own.set(0, errAbsent)
		pass(10 * time.Second)
		unknown(t, s, Absent, "a helper alone is no pressure")
	})
}

func TestAScopedSignalIsAboutItsRoutesAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, own, _, route, _ := watchAll(t, Config{})
		pass(10 * time.Second)
		for name, want := range map[string]float64{"a": 0.6, "c": 0.6} {
			if p, state := s.PressureOf(name); !near(p, want, 1e-9) || state != OK {
				t.Errorf("route %s: pressure %v, %v, want %v", name, p, state, want)
			}
		}
		for _, name := range []string{"b", "", "A"} {
			if p, state := s.PressureOf(name); p != 0 || state != Absent {
				t.Errorf("route %q: pressure %v, %v, want none", name, p, state)
			}
		}
		pressed(t, s, 0, "the total")
		own.set(1.5, nil)
		pass(10 * time.Second)
		pressed(t, s, 1, "the total under load")
		if p, _ := s.PressureOf("a"); !near(p, 0.6, 1e-9) {
			t.Errorf("under load of the process route a has pressure %v", p)
		}
		route.set(0, errFewCalls)
		pass(interval)
		if p, state := s.PressureOf("a"); p != 0 || state != Absent {
			t.Errorf("without an opinion route a has pressure %v, %v", p, state)
		}
	})
}

func TestWarmUpAndCloseHoldForRoutesToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _, _, _ := watchAll(t, Config{WarmUp: time.Minute})
		pass(time.Minute - 1)
		if p, state := s.PressureOf("a"); p != 0 || state != Warming {
			t.Errorf("in the first minute: %v, %v", p, state)
		}
		if r := signalNamed(t, s, "route"); r.Counts || r.State != Warming {
			t.Errorf("in the first minute route reads %+v", r)
		}
		pass(1)
		if _, state := s.PressureOf("a"); state != OK {
			t.Errorf("after a minute: %v", state)
		}
		s.Close()
		if p, state := s.PressureOf("a"); p != 0 || state != Absent {
			t.Errorf("after Close: %v, %v", p, state)
		}
	})
}
