package health

import (
	"math"
	"time"
)

// hostTimes is the CPU time of the whole machine since it started, in any unit.
type hostTimes struct{ busy, total float64 }

// hostCPU is the share of the machine's CPU time that is in use, by whomever. It is for people to see next to cpu.
//
// It keeps its own differences. What libraries offer as a percentage is one state for all callers in the process: a second
// caller makes both read 0 or 100.
type hostCPU struct {
	read func() (hostTimes, error)
	last hostTimes
	at   time.Time
}

func (h *hostCPU) name() string { return "host_cpu" }

func (h *hostCPU) source() string { return "CPU time of the whole machine" }

func (h *hostCPU) measure(round time.Time) (float64, time.Duration, error) {
	now, err := h.read()
	if err != nil {
		return 0, 0, err
	}
	if math.IsNaN(now.busy+now.total) || math.IsInf(now.busy+now.total, 0) {
		return 0, 0, errHostNumber
	}
	last, dt := h.last, round.Sub(h.at)
	switch {
	case h.at.IsZero():
		h.last, h.at = now, round
		return 0, 0, errNoNews
	case dt <= 0:
		return 0, 0, errClockStood
	case dt < minSpan, now.total == last.total:
		return 0, 0, errTooSoon // within one tick: neither 0 nor 100 %
	}
	h.last, h.at = now, round
	switch {
	case dt > carriedFor:
		return 0, 0, errTooLong
	case now.total < last.total, now.busy < last.busy:
		return 0, 0, errHostFell // a CPU was taken away
	}
	return min(1, (now.busy-last.busy)/(now.total-last.total)), dt, nil
}

var (
	errHostFell   = &discard{reason: CounterFell, what: "the machine's CPU time went back"}
	errHostNumber = &discard{reason: NotANumber, what: "the machine's CPU time is not a number"}
)
