package health

import (
	"math"
	"time"
)

const (
	// smoothing is the time constant τ of the average: a step reaches 63 % after τ. At one sample every 250 ms a new sample
	// weighs 0.30: quick enough to see a step from 0.3 to 1.0 within 1.5 s, slow enough that single samples of 0.9 among
	// 0.1 stay below the thresholds.
	smoothing = 700 * time.Millisecond
	// seedSamples is how many samples the average starts from; before that it has no value.
	seedSamples = 3
)

// average is an exponentially weighted moving average over samples at uneven distances: a = 1 − exp(−dt/τ). It starts
// with the plain mean of its first seedSamples. The zero value is an average that has seen nothing. Only finite values
// may be added.
type average struct {
	seen  int
	value float64
}

// add takes x, which describes the dt before now.
func (a *average) add(x float64, dt time.Duration) {
	if a.seen < seedSamples {
		a.seen++
		a.value += (x - a.value) / float64(a.seen)
		return
	}
	a.value += -math.Expm1(-dt.Seconds()/smoothing.Seconds()) * (x - a.value)
}

// known reports whether enough has been seen for the value to mean anything.
func (a *average) known() bool { return a.seen >= seedSamples }
