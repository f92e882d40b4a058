package concurrency

import (
	"math"
	"time"
)

// Constants of the cap's law.
const (
	capStep   = 250 * time.Millisecond // the time that cut and raise are stated for
	capCut    = 0.85                   // at most, per step: halves in about 1.1 s
	capRaise  = 1.03                   // per step: doubles in about 6 s
	capInUse  = 0.8                    // share of the cap that must be used before it is raised
	capBand   = 0.5                    // pressure up to which an existing cap is held
	capForget = 10 * time.Second       // without any known pressure, after which there is no cap
)

// Cap is the limit that health sets beside the estimate. The estimate sees latency only; a process that runs out of CPU must
// take less even if the backend behind it is quick. The zero value is no cap. It is a pure machine like Estimator: Update
// it whenever there is a pressure (every 250 ms), and ask Apply at each admission.
//
// The law is relative to what was in use when the pressure came, because a share of the maximum would mean nothing to a
// service that needs 20 of its 500:
//
//	pressure > 0.5      cap ← cap · max(0.85, 0.8/(0.75 + 0.2·pressure))
//	0 < pressure ≤ 0.5  held
//	pressure = 0        cap ← cap · 1.03, if at least 80 % of it was in use
//
// The factor steers a CPU with thresholds 0.75 and 0.95 to 0.8 of its capacity, with a dead band of ±0.05; other signals
// use the same bands. Cutting is quick and raising steady; there is no pause between, for a pause lets the load swing.
type Cap struct {
	on    bool
	value float64 // a fraction above the floor matters: 3 % of 4 is less than 1
	last  time.Duration
	known time.Duration // when a pressure was last known
	begun bool
}

// Reading is what Update is told.
type Reading struct {
	// Pressure is how badly we do, 0 to 1. Known says that it is fresh; otherwise, and if it is no number, the cap is held,
	// and dropped after 10 s: missing signals are neutral.
	Pressure float64
	Known    bool
	// Limit is the estimate.
	Limit int
	// InFlight is the most that was in flight since the last Update.
	InFlight int
	// Floor is the lowest that health may make of the limit; at least 1.
	Floor int
}

// Update applies the law once for the time since the last Update and returns the limit in effect. A gap longer than 250 ms
// counts as 250 ms: that nothing was measured is no evidence for anything.
func (c *Cap) Update(now time.Duration, r Reading) int {
	floor := max(r.Floor, 1)
	share := c.elapsed(now)
	switch {
	case !r.Known || !(r.Pressure >= 0 && r.Pressure <= 1): // NaN included
		if c.begun && now-c.known >= capForget {
			c.on = false
		}
		return c.Apply(r.Limit, floor)
	case r.Pressure > capBand:
		c.cut(r, floor, share)
	case r.Pressure == 0 && c.on:
		c.raise(r, share)
	}
	c.known = max(c.known, now)
	return c.Apply(r.Limit, floor)
}

// elapsed returns the time since the last Update in steps, at most one; for the first Update it is one.
func (c *Cap) elapsed(now time.Duration) float64 {
	if !c.begun {
		c.begun, c.last, c.known = true, now, now
		return 1
	}
	since := min(max(now-c.last, 0), capStep)
	c.last = max(c.last, now)
	return float64(since) / float64(capStep)
}

func (c *Cap) cut(r Reading, floor int, share float64) {
	if r.InFlight <= floor {
		return // as little of ours as may be is running: the load is not ours to shed
	}
	if !c.on {
		c.on, c.value = true, float64(min(max(r.Limit, floor), r.InFlight))
	}
	factor := max(capCut, 0.8/(0.75+0.2*r.Pressure))
	c.value = max(float64(floor), c.value*math.Pow(factor, share))
}

func (c *Cap) raise(r Reading, share float64) {
	if float64(r.InFlight) >= capInUse*math.Floor(c.value) {
		c.value *= math.Pow(capRaise, share)
	}
	if c.value >= float64(r.Limit) {
		c.on = false // it binds nothing any more; the next pressure starts from what is in use then
	}
}

// Apply returns the limit in effect for an estimate of limit: limit or the cap, whichever is less, and neither below floor
// nor, through the cap alone, above limit.
func (c *Cap) Apply(limit, floor int) int {
	if !c.on {
		return limit
	}
	return min(limit, max(int(c.value), floor))
}

// On reports whether there is a cap, and its value.
func (c *Cap) On() (value int, on bool) { return int(c.value), c.on }
