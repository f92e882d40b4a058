package limits

import (
	"fmt"
	"time"
)

// SlidingWindow allows about Quota.Amount in any span of Quota.Per, from two counters: what was charged in the current
// window of the clock (as in FixedWindow), and in the one before, weighted by how much of it the span that ends now still
// covers. With 100/min, 80 in the last minute and 20 in this one, 15 s old, it counts 80 × 45/60 + 20 = 80.
//
//	estimate = previous × (Quota.Per - elapsed) + current × Quota.Per      elapsed: since the current window began
//	fits if estimate + cost × Quota.Per ≤ Quota.Amount × Quota.Per, else retry when it will
//
// The estimate takes the previous window for evenly filled. It is off by at most previous × max(overlap, 1 - overlap),
// where overlap is the weight: too high by at most previous × overlap, when all of it came early, and too low by at most
// previous × (1 - overlap), when all of it came late. So within a window of the clock never more than the quota pass, and
// in a span of any phase less than twice the quota, against exactly twice for FixedWindow: the worst case is a quota used
// up in the last µs of a window and the next window's as it comes.
//
// The arithmetic itself is exact, in integers; time goes in µs, or in ms where the products would pass 2^53. A quota of 0
// refuses everything; the zero value has no window and is refused by NewPolicy. A refund reduces the counter in which it
// was charged.
type SlidingWindow struct{ Quota Rate }

// String returns the rule as the configuration file spells it.
func (s SlidingWindow) String() string { return fmt.Sprintf("sliding_window: {quota: %v}", s.Quota) }

func (s SlidingWindow) compile() (arithmetic, error) {
	if err := checkQuota(s.Quota); err != nil {
		return nil, fmt.Errorf("sliding_window: %w", err)
	}
	w := &weighted{most: s.Quota.Amount, per: micro(s.Quota.Per)}
	for _, tick := range []time.Duration{time.Microsecond, time.Millisecond} {
		w.tick, w.weight = micro(tick), int64(s.Quota.Per/tick)
		if _, ok := exactly(2*w.most, w.weight); ok { // a quota in use and a cost on top of it
			return w, nil
		}
	}
	return nil, fmt.Errorf("sliding_window: a quota of %v needs numbers above 2^53; lower it, or use a token_bucket", s.Quota)
}

// weighted is the arithmetic of SlidingWindow. Of its balance owed is what was charged in the window of last, and since
// what was charged in the one before it.
type weighted struct {
	most   int64
	per    int64 // µs
	tick   int64 // µs
	weight int64 // per in ticks: that of the current window; that of the previous one goes down from it to 0
}

func (w *weighted) clock(b balance, now int64) int64 {
	at := max(now, b.last)
	return at - at%w.tick
}

// counters returns what was charged in the window of at, which is not before b.last, and in the one before it.
func (w *weighted) counters(b balance, at int64) (current, previous int64) {
	switch start(at, w.per) - start(b.last, w.per) {
	case 0:
		return b.owed, b.since
	case w.per:
		return 0, b.owed
	}
	return 0, 0
}

// estimate weighs the counters, in units of 1/weight.
func (w *weighted) estimate(current, previous, at int64) int64 {
	return previous*(w.weight-at%w.per/w.tick) + current*w.weight
}

func (w *weighted) judge(b balance, now, cost, before int64) (balance, judgement) {
	if cost > w.most-before {
		return b, judgement{reason: CostTooLarge}
	}
	at := w.clock(b, now)
	current, previous := w.counters(b, at)
	need := before + cost
	if w.estimate(current, previous, at)+need*w.weight > w.most*w.weight {
		return b, judgement{reason: OverLimit, retryAfter: wait(now, w.fits(current, previous, need, at))}
	}
	return balance{owed: current + need, since: previous, last: at}, judgement{}
}

// fits returns from when on need fits, if it does not at a time and nothing else comes.
func (w *weighted) fits(current, previous, need, at int64) int64 {
	begin := start(at, w.per)
	if room := w.most - current - need; room >= 0 { // while the previous window slides out
		return begin + (w.weight-room*w.weight/previous)*w.tick
	}
	room := w.most - need // while the current window slides out, as the previous one
	return begin + w.per + max(w.weight-room*w.weight/current, 0)*w.tick
}

func (w *weighted) look(b balance, now int64) outlook {
	at := w.clock(b, now)
	current, previous := w.counters(b, at)
	if current == 0 && previous == 0 {
		return outlook{remaining: w.most}
	}
	o := outlook{remaining: w.most - ceilDiv(w.estimate(current, previous, at), w.weight)}
	o.nextAfter = wait(now, w.fits(current, previous, o.remaining+1, at))
	over := start(at, w.per) + w.per
	if current > 0 {
		over += w.per
	}
	o.resetAfter = wait(now, over)
	return o
}

// bounded implements bounding: neither window has let more pass than it may, nor both together, weighed as they were last.
func (w *weighted) bounded(b balance) balance {
	b.owed = min(b.owed, w.most)
	room := (w.most - b.owed) * w.weight
	b.since = min(b.since, room/(w.weight-b.last%w.per/w.tick))
	return b
}

func (w *weighted) refund(b balance, now, cost, taken int64) balance {
	at := w.clock(b, now)
	current, previous := w.counters(b, at)
	switch ago := start(at, w.per) - start(taken, w.per); {
	case ago == 0 && current > 0:
		current -= min(current, cost)
	case ago == w.per && previous > 0:
		previous -= min(previous, cost)
	default:
		return b // time has given it back
	}
	return balance{owed: current, since: previous, last: at}
}

func (w *weighted) full(b balance, now int64) bool {
	current, previous := w.counters(b, w.clock(b, now))
	return current == 0 && previous == 0
}

func (w *weighted) used(b balance, now int64) (used, since int64) {
	at := w.clock(b, now)
	current, previous := w.counters(b, at)
	since = start(at, w.per)
	if previous > 0 {
		since -= w.per
	}
	return ceilDiv(w.estimate(current, previous, at), w.weight), since
}

// owing implements arithmetic. The time is rounded up to a tick, as in a Meter.
func (w *weighted) owing(used, now, _ int64) balance {
	return balance{owed: min(used, w.most), last: ceilDiv(now, w.tick) * w.tick}
}

func (w *weighted) quota() int64          { return w.most }
func (w *weighted) window() time.Duration { return time.Duration(w.per) * time.Microsecond }
func (w *weighted) grain() time.Duration  { return time.Duration(w.tick) * time.Microsecond }
