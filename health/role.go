package health

import (
	"slices"
	"time"
)

// Role says what a signal's pressure counts for.
type Role string

// The roles.
const (
	// Primary: it is part of Sampler.Pressure.
	Primary Role = "primary"
	// Supporting: it is part of Sampler.Pressure only while cpu or throttle is OK and its pressure above 0. What it measures can
	// be made by neighbours on the same machine as well, and their load is not ours to shed.
	Supporting Role = "supporting"
	// Scoped: it is about a dependency and part of Sampler.PressureOf for the routes that need it, and of nothing else.
	// Shedding everything because one dependency is short would be an outage of our own making.
	Scoped Role = "scoped"
	// Observing: it is shown and counts for nothing.
	Observing Role = "observing"
)

// watched is a signal with what its values mean and what they count for. The zero role is Primary.
type watched struct {
	signal
	thresholds Thresholds
	role       Role
	routes     []string // of Scoped
	own        bool     // its pressure is the load we make: supporting signals count while there is some
}

// fold is the maximum of pressures, since one exhausted resource is enough. One that has no opinion is not part of it. Where
// none has one, the state is what most promises an answer: warming, else failed, else absent.
type fold struct {
	pressure float64
	state    State
}

func (f *fold) add(p float64, st State) {
	switch {
	case !st.Known():
		if !f.state.Known() && rank[st] > rank[f.state] {
			f.state = st
		}
	case !f.state.Known() || p > f.pressure || p == f.pressure && st == OK:
		f.pressure, f.state = p, st
	}
}

// rank orders the states without a pressure by how much they promise one.
var rank = [...]int{Warming: 2, Failed: 1, Absent: 0, OK: 3, Stale: 3}

// total folds the signals that are about us.
func (s *snapshot) total(now time.Time) (float64, State) {
	if st, out := s.out(now); out {
		return 0, st
	}
	f := fold{state: Absent}
	busy := s.busy(now)
	for i := range s.tracks {
		if t := &s.tracks[i]; t.role == Primary || t.role == Supporting && busy {
			f.add(t.pressure(), t.state(now))
		}
	}
	return f.pressure, f.state
}

// of folds the signals that are about what route needs.
func (s *snapshot) of(route string, now time.Time) (float64, State) {
	if st, out := s.out(now); out {
		return 0, st
	}
	f := fold{state: Absent}
	for i := range s.tracks {
		if t := &s.tracks[i]; slices.Contains(t.routes, route) {
			f.add(t.pressure(), t.state(now))
		}
	}
	return f.pressure, f.state
}

// out reports whether nothing counts at now, whatever the signals say, and as what that reads.
func (s *snapshot) out(now time.Time) (State, bool) {
	switch {
	case s.warmUntil.IsZero():
		return Absent, true
	case now.Before(s.warmUntil):
		return Warming, true
	}
	return OK, false
}

// busy reports whether there is load of our own. A stale value is no evidence: what holds must not let others in.
func (s *snapshot) busy(now time.Time) bool {
	for i := range s.tracks {
		if t := &s.tracks[i]; t.own && t.state(now) == OK && t.pressure() > 0 {
			return true
		}
	}
	return false
}
