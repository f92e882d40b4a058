package limits

import (
	"errors"
	"fmt"
	"time"
)

// Day is the longest unit in which a rate can be written: 24 hours, whatever the calendar says.
const Day = 24 * time.Hour

// Rate is so much per so long: 5 per second, 10000 per minute, 1 per 13 s, 64 KiB per second. It is never reduced, since
// for rules that count in periods 60/min is not 1/s.
//
// The zero value is no rate at all: every rule refuses to be built with it.
type Rate struct {
	// Amount is how much; at least 1.
	Amount int64
	// Per is in how long: whole milliseconds, at least one. What falls between is written as a fraction: once in
	// 1.5 ms is 2/3ms.
	Per time.Duration
	// Bytes says that the amount counts bytes. It changes how the rate reads (64KiB/s), not what it allows.
	Bytes bool
}

// PerSecond returns the rate of n per second.
func PerSecond(n int64) Rate { return Rate{Amount: n, Per: time.Second} }

// PerMinute returns the rate of n per minute.
func PerMinute(n int64) Rate { return Rate{Amount: n, Per: time.Minute} }

// PerHour returns the rate of n per hour.
func PerHour(n int64) Rate { return Rate{Amount: n, Per: time.Hour} }

// PerDay returns the rate of n per 24 hours.
func PerDay(n int64) Rate { return Rate{Amount: n, Per: Day} }

// check returns what is wrong with the rate, without a prefix: the caller knows whose rate it is.
func (r Rate) check() error {
	switch {
	case r == (Rate{}):
		return errors.New("no rate is given; write one, such as 5/s")
	case r.Amount == 0:
		return errors.New("a rate of 0 never lets anything through; to refuse all set the capacity to 0, to slow down lengthen the period, as in 1/day")
	case r.Amount < 0:
		return fmt.Errorf("a rate of %d is negative; use at least 1", r.Amount)
	case r.Per <= 0:
		return fmt.Errorf("a period of %v is not positive; use at least 1ms", r.Per)
	case r.Per%time.Millisecond != 0:
		return fmt.Errorf("a period of %v is not whole milliseconds; multiply amount and period alike, as 1/1.5ms is 2/3ms", r.Per)
	}
	return nil
}
