package limits

import (
	"fmt"
	"time"
)

// InFlight allows Max at once: a charge counts until it is refunded, however long that takes. It is the leaky bucket in its
// first form, a counter raised when work begins and lowered when it ends, and no rate: time gives nothing back.
//
// A refusal has the reason InFlight and no RetryAfter, for only the callers know how long their work takes. A changed Max
// holds from the next decision on; what is in flight stays counted, also above it. A balance that is not in flight at all
// is dropped, so that a store keeps one for each key that has work running.
//
// It needs a store in the same process, for who ends without a refund would be counted for ever. The zero value refuses
// everything.
type InFlight struct{ Max int64 }

// String returns the rule as the configuration file spells it.
func (f InFlight) String() string { return fmt.Sprintf("in_flight: {max: %d}", f.Max) }

func (f InFlight) compile() (arithmetic, error) {
	switch {
	case f.Max < 0:
		return nil, fmt.Errorf("in_flight: max %d is negative; use 0 to refuse all, or more", f.Max)
	case f.Max > Exact/2:
		return nil, fmt.Errorf("in_flight: max %d is above 2^52; lower it", f.Max)
	}
	return &counter{f.Max}, nil
}

// counter is the arithmetic of InFlight. Of its balance owed is what is in flight.
type counter struct{ most int64 }

func (c *counter) judge(b balance, now, cost, before int64) (balance, judgement) {
	if cost > c.most-before {
		return b, judgement{reason: CostTooLarge}
	}
	if b.owed+before+cost > c.most {
		return b, judgement{reason: TooManyInFlight}
	}
	at := max(now, b.last)
	after := balance{owed: b.owed + before + cost, last: at, since: b.since}
	if b.owed == 0 {
		after.since = at
	}
	return after, judgement{}
}

func (c *counter) look(b balance, _ int64) outlook {
	return outlook{remaining: max(c.most-b.owed, 0)}
}

func (c *counter) refund(b balance, _, cost, taken int64) balance {
	if taken >= b.since {
		b.owed -= min(b.owed, cost)
	}
	return b
}

func (c *counter) full(b balance, _ int64) bool { return b.owed == 0 }

func (c *counter) used(b balance, _ int64) (used, since int64) { return b.owed, b.since }

// owing implements arithmetic: what another rule counts is not in flight.
func (c *counter) owing(_, now, _ int64) balance { return balance{last: now} }

// inherit implements heir: all that is in flight stays so, also above the new maximum.
func (c *counter) inherit(b balance, from arithmetic) (balance, bool) {
	_, ok := from.(*counter)
	return b, ok
}

func (c *counter) quota() int64          { return c.most }
func (c *counter) window() time.Duration { return 0 }
func (c *counter) grain() time.Duration  { return time.Microsecond }
