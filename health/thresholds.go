package health

import (
	"fmt"
	"math"
	"time"
)

// Thresholds map a measured value to a pressure: 0 up to Low, 1 from High on, linear between. The zero value stands for
// the default of the signal it belongs to, see DefaultThresholds.
type Thresholds struct {
	Low, High float64
}

// Pressure is the pressure that x means: clamp((x − Low) ÷ (High − Low), 0, 1). x must be a number; the zero Thresholds
// give 1 for everything above 0.
func (t Thresholds) Pressure(x float64) float64 {
	switch {
	case x <= t.Low:
		return 0
	case x >= t.High:
		return 1
	}
	return (x - t.Low) / (t.High - t.Low)
}

// Delays are Thresholds of a signal that is a time. The zero value stands for the default of the signal it belongs to.
type Delays struct {
	Low, High time.Duration
}

// seconds is d in the unit of values.
func (d Delays) seconds() Thresholds { return Thresholds{Low: d.Low.Seconds(), High: d.High.Seconds()} }

// DefaultThresholds returns what the zero Thresholds or Delays (then in seconds) of a built-in signal mean: for memory_stall
// and host_cpu, which the zero value leaves off, what to switch them on with. It is false for a name that is none of a
// built-in signal with thresholds. Beside cpu and memory_stall they are proposals without a measurement behind them, and all
// of them should lie above what the autoscaler aims at: shedding below it hides the load from it.
func DefaultThresholds(signal string) (Thresholds, bool) {
	switch signal {
	case "cpu":
		return Thresholds{Low: 0.75, High: 0.95}, true
	case "throttle":
		return Thresholds{Low: 0.10, High: 0.50}, true
	case "memory":
		return Thresholds{Low: 0.85, High: 0.95}, true
	case "heap":
		return Thresholds{Low: 0.70, High: 0.90}, true
	case "scheduling":
		return Delays{Low: 20 * time.Millisecond, High: 100 * time.Millisecond}.seconds(), true
	case "timer_lag":
		return Delays{Low: 50 * time.Millisecond, High: 100 * time.Millisecond}.seconds(), true
	case "memory_stall":
		return Thresholds{Low: 0.10, High: 0.25}, true
	case "host_cpu":
		return Thresholds{Low: 0.75, High: 0.95}, true
	}
	return Thresholds{}, false
}

// orDefault fills in t for a built-in signal, all of which are fractions of a whole: bounds outside [0,1] could never be met.
func (t *Thresholds) orDefault(signal string) error {
	if *t == (Thresholds{}) {
		*t, _ = DefaultThresholds(signal)
		return nil
	}
	return t.check(signal)
}

// check refuses thresholds of a fraction that can not be meant.
func (t Thresholds) check(signal string) error {
	def, _ := DefaultThresholds(signal)
	if def == (Thresholds{}) {
		def = Thresholds{Low: 0.2, High: 0.6}
	}
	if math.IsNaN(t.Low) || math.IsNaN(t.High) || t.Low < 0 || t.High > 1 {
		return fmt.Errorf("health: %s thresholds {low: %v, high: %v} are not fractions; use numbers from 0 to 1, e.g. {low: %v, high: %v}",
			signal, t.Low, t.High, def.Low, def.High)
	}
	return t.rising(signal, def)
}

// checkNumbers is check for a value that is any number.
func (t Thresholds) checkNumbers(signal string, example Thresholds) error {
	if math.IsNaN(t.Low+t.High) || math.IsInf(t.Low, 0) || math.IsInf(t.High, 0) {
		return fmt.Errorf("health: %s thresholds {low: %v, high: %v} are not numbers; use e.g. {low: %v, high: %v}",
			signal, t.Low, t.High, example.Low, example.High)
	}
	return t.rising(signal, example)
}

func (t Thresholds) rising(signal string, example Thresholds) error {
	if t.Low >= t.High {
		return fmt.Errorf("health: %s thresholds need low < high, have low %v and high %v; e.g. {low: %v, high: %v}",
			signal, t.Low, t.High, example.Low, example.High)
	}
	return nil
}

func (d *Delays) orDefault(signal string) error {
	def, _ := DefaultThresholds(signal)
	example := Delays{Low: seconds(def.Low), High: seconds(def.High)}
	if *d == (Delays{}) {
		*d = example
	}
	if d.Low < 0 || d.Low >= d.High {
		return fmt.Errorf("health: %s thresholds need 0 ≤ low < high, have low %v and high %v; e.g. {low: %v, high: %v}",
			signal, d.Low, d.High, example.Low, example.High)
	}
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
