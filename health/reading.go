package health

import (
	"encoding/json"
	"time"
)

// State says how far a reading can be trusted. The zero value is Warming.
type State uint8

// The states. OK and Stale have a pressure; the others have no opinion, which is neither 0 nor 1.
const (
	// Warming: too little has been seen, or the start-up time in which health only observes is not over.
	Warming State = iota
	// OK: the value is at most three intervals old.
	OK
	// Stale: the source is silent, but for less than 10 s; the last value holds: neither cut nor raise because of it.
	Stale
	// Absent: there is nothing of this kind here, e.g. no CPU quota and therefore no throttling. Not an error.
	Absent
	// Failed: the source has given nothing usable for 10 s, or has never worked.
	Failed
)

var stateNames = [...]string{"warming", "ok", "stale", "absent", "failed"}

// String is the state in one lower-case word, as in metrics and the debug view.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// MarshalText is String, so that a State reads as a word in JSON.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Known reports whether a reading in this state has a pressure.
func (s State) Known() bool { return s == OK || s == Stale }

// Reading is what one signal says.
type Reading struct {
	// Signal is the signal's name: "cpu", "throttle", ... or the name of a pool, dependency or check.
	Signal string `json:"signal"`
	// Role says what its pressure counts for, and Counts whether it does now.
	Role   Role `json:"role"`
	Counts bool `json:"counts"`
	// Routes are those that a Scoped signal is about. The caller owns it.
	Routes []string `json:"routes,omitempty"`
	// State says whether Pressure counts.
	State State `json:"state"`
	// Measured reports whether there is a Value at all; without one Value, Pressure and Age are 0 and mean nothing.
	Measured bool `json:"measured"`
	// Value is the smoothed measurement: a fraction of 1; seconds where the thresholds are Delays; callers for each connection
	// of a pool; whatever a check returns.
	Value float64 `json:"value"`
	// Pressure is what Value means by the signal's thresholds, in [0,1]. It counts only if State.Known(); while warming it
	// shows what would count.
	Pressure float64 `json:"pressure"`
	// Age is the time since Value last had news; in JSON it reads as "120ms".
	Age time.Duration `json:"-"`
	// Source says what is measured, in words.
	Source string `json:"source,omitempty"`
	// Error is the text of the last failure, or why the signal is absent; empty if the last sample was fine.
	Error string `json:"error,omitempty"`
	// Discarded counts unusable samples by reason; nil if there were none. The caller owns it.
	Discarded map[Reason]uint64 `json:"discarded,omitempty"`
	// Transitions counts the changes of State that the sampler has seen.
	Transitions uint64 `json:"transitions"`
}

// MarshalJSON is the reading with its age in words.
func (r Reading) MarshalJSON() ([]byte, error) {
	type plain Reading
	return json.Marshal(struct {
		plain
		Age string `json:"age"`
	}{plain(r), r.Age.Round(time.Millisecond).String()})
}

// Status is everything health knows, for the debug view. The caller owns it.
type Status struct {
	// Pressure is the maximum over the signals about this process that have one. It counts only if State.Known().
	Pressure float64 `json:"pressure"`
	// State is that of the signal that decides Pressure (the freshest of several); without any it says why there is none.
	State State `json:"state"`
	// Signals are the readings, always in the same order; empty if health is off, not started or closed.
	Signals []Reading `json:"signals"`
}
