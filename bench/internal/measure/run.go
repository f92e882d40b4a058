package measure

import "time"

// Run is one arm of one scenario at one level with one seed, measured. It is what result files hold.
type Run struct {
	Scenario string  `json:"scenario"`
	Arm      string  `json:"arm"`
	Mode     string  `json:"mode"` // "sim", "handler", "socket" or "remote"
	Level    float64 `json:"level"`
	Seed     uint64  `json:"seed"`
	// Capacity is C per second, Deadline D.
	Capacity float64 `json:"capacity"`
	Deadline Micros  `json:"deadline_us"`
	// Invalid says why the run has no verdict; Partial that it was broken off.
	Invalid string `json:"invalid,omitempty"`
	Partial bool   `json:"partial,omitempty"`

	Generator Generator `json:"generator"`
	Phases    []Phase   `json:"phases"`
	Series    Series    `json:"series"`
	// Fine is the series in short windows, for runs that are short enough; counts only.
	Fine    Fine     `json:"fine"`
	Clients []Client `json:"clients,omitempty"`
	// Extra are figures that only some scenarios have, by name.
	Extra map[string]float64 `json:"extra,omitempty"`
}

// Micros is a duration in whole µs.
type Micros int64

// InMicros converts d.
func InMicros(d time.Duration) Micros { return Micros(d.Microseconds()) }

// Duration converts back.
func (m Micros) Duration() time.Duration { return time.Duration(m) * time.Microsecond }

// Generator says how the generator did. Asked is what the schedule says, Sent what left it, and Unsent what it dropped
// because too much was in flight. Lag is how much later than scheduled requests left. All are 0 in simulations, but Asked
// and Sent.
type Generator struct {
	Asked  int64  `json:"asked"`
	Sent   int64  `json:"sent"`
	Unsent int64  `json:"unsent"`
	LagP50 Micros `json:"lag_p50_us"`
	LagP99 Micros `json:"lag_p99_us"`
	LagMax Micros `json:"lag_max_us"`
}

// Phase is what happened to the requests that were scheduled in one phase.
type Phase struct {
	Name        string       `json:"name"`
	Start       Micros       `json:"start_us"`
	End         Micros       `json:"end_us"`
	Trigger     bool         `json:"trigger,omitempty"`
	Warmup      bool         `json:"warmup,omitempty"`
	Populations []Population `json:"populations"`
	// Work is what the app worked on requests of this phase, and Wasted the part of it for answers that came too late or
	// that nobody waited for. Both are known for built-in targets only.
	Work   Micros `json:"work_us"`
	Wasted Micros `json:"wasted_us"`
}

// Population is what happened to one group of clients in one phase.
type Population struct {
	Name string `json:"name"`
	// Asked counts requests, Attempts also the retries.
	Asked    int64 `json:"asked"`
	Attempts int64 `json:"attempts"`
	// Counts are by outcome, in the order of Outcomes.
	Counts  [outcomes]int64   `json:"counts"`
	Latency [outcomes]Latency `json:"latency"`
	// Service counts from the actual send, for all that was answered; empty in simulations, where it is the same.
	Service Latency `json:"service"`
	// Reasons counts refusals by their reason or, over HTTP, by their status.
	Reasons map[string]int64 `json:"reasons,omitempty"`
	// Weight is the mean work of a request relative to the app's.
	Weight float64 `json:"weight"`
}

// Series is what happened over time, in windows.
type Series struct {
	Window Micros  `json:"window_us"`
	Points []Point `json:"points"`
}

// Point is one window. The gauges are the last of the window; -1 means unknown.
type Point struct {
	Asked    int64           `json:"asked"`
	Attempts int64           `json:"attempts"`
	Counts   [outcomes]int64 `json:"counts"`
	P50      Micros          `json:"p50_us"` // of the admitted
	P99      Micros          `json:"p99_us"`
	Limit    int             `json:"limit"`
	Waiting  int             `json:"waiting"`
	InFlight int             `json:"in_flight"`

	// MeanLimit is the mean of all readings of the limit in the window, where Limit is one of many. It is not in result files.
	MeanLimit float64 `json:"-"`
}

// Fine counts in short windows.
type Fine struct {
	Window Micros  `json:"window_us,omitempty"`
	Asked  []int32 `json:"asked,omitempty"`
	OK     []int32 `json:"ok,omitempty"`
}

// Client is what one client got, by phase.
type Client struct {
	Population int     `json:"population"`
	Asked      []int64 `json:"asked"`
	OK         []int64 `json:"ok"`
}
