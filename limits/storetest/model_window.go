package storetest

import (
	"math/big"
	"slices"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// charged is one charge in the life of an account; the time is in µs.
type charged struct{ at, cost int64 }

// windows is the meaning of a rule that counts in windows, said of all that was ever charged.
type windows struct {
	counting
	quota int64
	tick  int64
}

// counting is what windows differ in.
type counting interface {
	// room returns how much more may pass at a time; it may be negative.
	room(a account, at int64) int64
	// gone tells whether what was charged before does not count at a time any more.
	gone(a account, at int64) bool
	// until returns the first time from at on for which holds, knowing when things can change.
	until(a account, at int64, holds func(at int64) bool) int64
	refund(a account, cost, taken int64) account // with nothing reduced if nothing is given back
	spent(a account) (used, since int64)
}

// windowsOf returns the meaning of a rule that counts in windows, or nil.
func windowsOf(r limits.Rule) meaning {
	switch r := r.(type) {
	case limits.FixedWindow:
		return &windows{fixedWindow{r.Quota.Amount, r.Quota.Per.Microseconds()}, r.Quota.Amount, 1}
	case limits.SlidingLog:
		return &windows{slidingLog{r.Quota.Amount, r.Quota.Per.Microseconds()}, r.Quota.Amount, 1}
	case limits.SlidingWindow:
		w := slidingWindow{fixedWindow{r.Quota.Amount, r.Quota.Per.Microseconds()}, 1}
		if product := new(big.Rat).Mul(whole(2*w.amount), whole(w.per)); product.Cmp(whole(1<<53)) > 0 {
			w.tick = 1000
		}
		return &windows{w, r.Quota.Amount, w.tick}
	case limits.Burst:
		b := burst{soft: r.Soft.Amount, hard: r.Hard.Amount, per: r.Hard.Per.Microseconds()}
		if r.Total != (limits.Rate{}) {
			b.total, b.run = r.Total.Amount, int64(r.Total.Per/r.Hard.Per)
			return &windows{b, min(b.hard, b.total), 1}
		}
		return &windows{b, b.hard, 1}
	}
	return nil
}

func (w *windows) at(a account, now int64) account {
	a.last = max(now, a.last)
	a.last -= a.last % w.tick
	if w.gone(a, a.last) {
		a.charged, a.total = nil, nil
	}
	return a
}

func (w *windows) judge(v *limits.Verdict, a account, now, before int64) {
	a = w.without(a, before)
	if v.Cost > w.quota-before {
		v.Reason = limits.CostTooLarge
		return
	}
	need := before + v.Cost
	if w.room(a, a.last) >= need {
		b, bursts := w.counting.(burst)
		v.OverSoft = bursts && b.overSoft(a, need)
		return
	}
	v.Reason = limits.OverLimit
	v.RetryAfter = span(now, w.until(a, a.last, func(at int64) bool { return w.room(a, at) >= need }))
}

// without returns a as it was before the Take in hand added to it.
func (w *windows) without(a account, before int64) account {
	for i := len(a.charged); before > 0; i-- {
		before -= a.charged[i-1].cost
		a.charged = a.charged[:i-1]
		a.total = a.total[:max(len(a.total)-1, 0)]
	}
	return a
}

func (w *windows) add(a account, cost int64) account {
	if w.gone(a, a.last) {
		a.since = a.last
	}
	a.charged = append(slices.Clone(a.charged), charged{a.last, cost})
	a.total = append(slices.Clone(a.total), charged{a.last, cost})
	return a
}

func (w *windows) look(v *limits.Verdict, a account, now int64) {
	v.Remaining = max(w.room(a, a.last), 0)
	if w.gone(a, a.last) {
		return
	}
	v.ResetAfter = span(now, w.until(a, a.last, func(at int64) bool { return w.gone(a, at) }))
	if v.Remaining < w.quota {
		v.NextAfter = span(now, w.until(a, a.last, func(at int64) bool { return w.room(a, at) > v.Remaining }))
	}
}

func (w *windows) refund(a account, cost, taken int64) (account, bool) {
	b := w.counting.refund(a, cost, taken)
	return b, !slices.Equal(a.charged, b.charged) || !slices.Equal(a.total, b.total)
}

func (w *windows) full(a account) bool { return w.gone(a, a.last) }

func (w *windows) owing(used, last, since int64) account {
	a := account{used: whole(0), last: (last + w.tick - 1) / w.tick * w.tick, since: since}
	a.charged = []charged{{a.last, min(used, w.quota)}}
	if b, ok := w.counting.(burst); ok {
		a.charged[0].cost = min(used, b.hard)
		a.total = []charged{{a.last, min(used, b.total)}}
	}
	return a
}

func span(now, until int64) time.Duration { return time.Duration(until-now) * time.Microsecond }

// sum adds up what was charged from one time on and before another.
func sum(all []charged, from, to int64) (n int64) {
	for _, c := range all {
		if c.at >= from && c.at < to {
			n += c.cost
		}
	}
	return n
}

// reduce takes up to cost out of what was charged from one time on and before another.
func reduce(all []charged, from, to, cost int64) []charged {
	all = slices.Clone(all)
	for i := range all {
		if c := &all[i]; c.at >= from && c.at < to {
			part := min(c.cost, cost)
			c.cost -= part
			cost -= part
		}
	}
	return all
}

// boundaries tries the times at which periods begin.
func boundaries(per, at int64, holds func(at int64) bool) int64 {
	for !holds(at) {
		at = at - at%per + per
	}
	return at
}

type fixedWindow struct{ amount, per int64 }

func (f fixedWindow) room(a account, at int64) int64 {
	return f.amount - sum(a.charged, at-at%f.per, at-at%f.per+f.per)
}

func (f fixedWindow) gone(a account, at int64) bool { return f.room(a, at) == f.amount }

func (f fixedWindow) until(_ account, at int64, holds func(int64) bool) int64 {
	return boundaries(f.per, at, holds)
}

func (f fixedWindow) refund(a account, cost, taken int64) account {
	if begin := a.last - a.last%f.per; !f.gone(a, a.last) && taken >= a.since {
		a.charged = reduce(a.charged, begin, begin+f.per, cost)
	}
	return a
}

func (f fixedWindow) spent(a account) (used, since int64) {
	return f.amount - f.room(a, a.last), a.since
}

type slidingLog struct{ amount, per int64 }

func (s slidingLog) room(a account, at int64) int64 {
	return s.amount - sum(a.charged, at-s.per+1, at+1)
}

func (s slidingLog) gone(a account, at int64) bool { return s.room(a, at) == s.amount }

func (s slidingLog) until(a account, at int64, holds func(int64) bool) int64 {
	for i := 0; !holds(at); i++ {
		at = max(at, a.charged[i].at+s.per)
	}
	return at
}

func (s slidingLog) refund(a account, cost, taken int64) account {
	for _, c := range a.charged {
		if c.at >= taken && c.cost > 0 && taken > a.last-s.per {
			a.charged = reduce(a.charged, c.at, c.at+1, cost)
			break
		}
	}
	return a
}

func (s slidingLog) spent(a account) (used, since int64) {
	for _, c := range a.charged {
		if c.at > a.last-s.per && c.cost > 0 {
			return s.amount - s.room(a, a.last), c.at
		}
	}
	return 0, 0
}

type slidingWindow struct {
	fixedWindow
	tick int64
}

// counters returns what was charged in the window of a time, and in the one before.
func (s slidingWindow) counters(a account, at int64) (current, previous int64) {
	begin := at - at%s.per
	return sum(a.charged, begin, begin+s.per), sum(a.charged, begin-s.per, begin)
}

func (s slidingWindow) estimate(a account, at int64) *big.Rat {
	at -= at % s.tick
	current, previous := s.counters(a, at)
	overlap := big.NewRat(s.per-at%s.per, s.per)
	return overlap.Add(overlap.Mul(overlap, whole(previous)), whole(current))
}

func (s slidingWindow) room(a account, at int64) int64 { return s.amount - ceil(s.estimate(a, at)) }

func (s slidingWindow) gone(a account, at int64) bool {
	current, previous := s.counters(a, at)
	return current == 0 && previous == 0
}

// until halves the time: while nothing is charged things only get better.
func (s slidingWindow) until(_ account, at int64, holds func(int64) bool) int64 {
	if holds(at) {
		return at
	}
	low, high := at/s.tick, (at+2*s.per)/s.tick // holds at high, and not at low
	for high-low > 1 {
		if mid := (low + high) / 2; holds(mid * s.tick) {
			high = mid
		} else {
			low = mid
		}
	}
	return high * s.tick
}

func (s slidingWindow) refund(a account, cost, taken int64) account {
	if begin := taken - taken%s.per; begin >= a.last-a.last%s.per-s.per {
		a.charged = reduce(a.charged, begin, begin+s.per, cost)
	}
	return a
}

func (s slidingWindow) spent(a account) (used, since int64) {
	since = a.last - a.last%s.per
	if _, previous := s.counters(a, a.last); previous > 0 {
		since -= s.per
	}
	return ceil(s.estimate(a, a.last)), since
}
