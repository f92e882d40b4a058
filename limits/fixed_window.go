package limits

import (
	"fmt"
	"time"
)

// FixedWindow allows Quota.Amount in each window of Quota.Per. Windows begin at multiples of their length since the Unix
// epoch: with 100/min one lasts from 12:00:00 to 12:01:00, for everybody. Unused quota is not saved.
//
//	used = what was charged since the window began
//	fits if used + cost ≤ Quota.Amount, else retry when the next window begins
//
// Of all windows it is the cheapest (one counter) and the loosest: 100 at 12:00:59 and 100 at 12:01:00 are both allowed, so
// that over a span of any phase as long as the window up to twice the quota pass. SlidingLog and SlidingWindow are
// stricter.
//
// All is exact, in whole units of cost and µs. A quota of 0 refuses everything; the zero value has no window and is refused
// by NewPolicy. A refund counts while the window lasts in which it was charged.
type FixedWindow struct{ Quota Rate }

// String returns the rule as the configuration file spells it.
func (w FixedWindow) String() string { return fmt.Sprintf("fixed_window: {quota: %v}", w.Quota) }

func (w FixedWindow) compile() (arithmetic, error) {
	if err := checkQuota(w.Quota); err != nil {
		return nil, fmt.Errorf("fixed_window: %w", err)
	}
	return &windowed{most: w.Quota.Amount, per: micro(w.Quota.Per)}, nil
}

// windowed is the arithmetic of FixedWindow. Of its balance owed is what was charged in the window of last, and since when
// the first of that was.
type windowed struct {
	most int64
	per  int64 // µs
}

// spent returns what is used in the window of at, which is not before b.last.
func (w *windowed) spent(b balance, at int64) int64 {
	if start(b.last, w.per) != start(at, w.per) {
		return 0
	}
	return b.owed
}

func (w *windowed) judge(b balance, now, cost, before int64) (balance, judgement) {
	if cost > w.most-before {
		return b, judgement{reason: CostTooLarge}
	}
	at := max(now, b.last)
	used := w.spent(b, at)
	if used+before+cost > w.most {
		return b, judgement{reason: OverLimit, retryAfter: wait(now, start(at, w.per)+w.per)}
	}
	after := balance{owed: used + before + cost, last: at, since: b.since}
	if used == 0 {
		after.since = at
	}
	return after, judgement{}
}

func (w *windowed) look(b balance, now int64) outlook {
	at := max(now, b.last)
	used := w.spent(b, at)
	if used == 0 {
		return outlook{remaining: w.most}
	}
	over := wait(now, start(at, w.per)+w.per)
	return outlook{remaining: w.most - used, nextAfter: over, resetAfter: over}
}

func (w *windowed) refund(b balance, now, cost, taken int64) balance {
	at := max(now, b.last)
	used := w.spent(b, at)
	if used == 0 || taken < b.since {
		return b
	}
	return balance{owed: used - min(used, cost), last: at, since: b.since}
}

func (w *windowed) full(b balance, now int64) bool { return w.spent(b, max(now, b.last)) == 0 }

func (w *windowed) used(b balance, now int64) (used, since int64) {
	return w.spent(b, max(now, b.last)), b.since
}

func (w *windowed) owing(used, now, since int64) balance {
	return balance{owed: min(used, w.most), last: now, since: since}
}

// bounded implements bounding.
func (w *windowed) bounded(b balance) balance {
	b.owed = min(b.owed, w.most)
	return b
}

func (w *windowed) quota() int64          { return w.most }
func (w *windowed) window() time.Duration { return time.Duration(w.per) * time.Microsecond }
func (w *windowed) grain() time.Duration  { return time.Microsecond }
