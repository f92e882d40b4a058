package storetest

import "slices"

// burst goes through all periods in which anything was ever charged, from the first to the one in question.
type burst struct {
	soft, hard, per int64
	total, run      int64 // run is 0 without a total
}

// standing returns the debt at the begin of the period of a time, what has passed in that period, and when the period
// began in which the debt was made, or that period if there is none.
func (b burst) standing(a account, at int64) (debt, here, origin int64) {
	begin := at - at%b.per
	var periods []int64
	for _, c := range a.charged {
		periods = append(periods, c.at-c.at%b.per)
	}
	slices.Sort(periods)
	last := int64(0)
	for _, p := range slices.Compact(periods) {
		passed := sum(a.charged, p, p+b.per)
		if passed == 0 || p > begin {
			continue
		}
		debt = max(0, debt-(p-last)/b.per*b.soft)
		if debt == 0 {
			origin = p
		}
		if p == begin {
			return debt, passed, origin
		}
		debt = max(0, debt+passed-b.soft)
		last = p + b.per
	}
	if debt > 0 {
		debt = max(0, debt-(begin-last)/b.per*b.soft)
	}
	if debt == 0 {
		origin = begin
	}
	return debt, 0, origin
}

func (b burst) allowance(debt int64) int64 {
	if debt == 0 {
		return b.hard
	}
	return max(0, b.soft-debt)
}

func (b burst) room(a account, at int64) int64 {
	debt, here, _ := b.standing(a, at)
	room := b.allowance(debt) - here
	if b.run > 0 {
		room = min(room, b.total-b.summed(a, at))
	}
	return room
}

// summed is what counts against the total.
func (b burst) summed(a account, at int64) int64 {
	begin := at - at%b.per
	return sum(a.total, begin-(b.run-1)*b.per, begin+b.per)
}

func (b burst) overSoft(a account, need int64) bool {
	debt, here, _ := b.standing(a, a.last)
	return debt == 0 && here+need > b.soft
}

func (b burst) gone(a account, at int64) bool {
	debt, here, _ := b.standing(a, at)
	return debt == 0 && here == 0 && b.summed(a, at) == 0
}

func (b burst) until(_ account, at int64, holds func(int64) bool) int64 {
	return boundaries(b.per, at, holds)
}

func (b burst) refund(a account, cost, taken int64) account {
	period := taken - taken%b.per
	without := a
	without.charged = reduce(a.charged, period, period+b.per, cost)
	debt, here, _ := b.standing(a, a.last)
	if d, h, _ := b.standing(without, a.last); d != debt || h != here {
		a = without
	}
	if begin := a.last - a.last%b.per; period > begin-b.run*b.per {
		for _, c := range a.total {
			if p := c.at - c.at%b.per; p >= period && c.cost > 0 {
				a.total = reduce(a.total, p, p+b.per, cost)
				break
			}
		}
	}
	return a
}

func (b burst) spent(a account) (used, since int64) {
	debt, here, origin := b.standing(a, a.last)
	used, since = debt+here, origin
	if b.run == 0 {
		return used, since
	}
	begin := a.last - a.last%b.per
	for _, c := range a.total {
		if p := c.at - c.at%b.per; p > begin-b.run*b.per && c.cost > 0 {
			since = min(since, p)
			break
		}
	}
	return max(used, b.summed(a, a.last)), since
}

// burstOf returns the burst that a meaning is about, or nil.
func burstOf(m meaning) *burst {
	if w, ok := m.(*windows); ok {
		if b, ok := w.counting.(burst); ok {
			return &b
		}
	}
	return nil
}

// inherit keeps the debt of an older burst with the same period apart from what passed in the period.
func (b *burst) inherit(a account, older *burst) account {
	debt, here, _ := older.standing(a, a.last)
	used := debt + here
	if older.run > 0 {
		used = older.summed(a, a.last)
	}
	own := account{used: whole(0), last: a.last, total: []charged{{a.last, min(used, b.total)}}}
	if debt > 0 && debt+here > b.soft {
		debt, here = debt+here, 0
	}
	if debt = min(debt, b.hard-b.soft); debt > 0 {
		own.charged = append(own.charged, charged{a.last - b.per, debt + b.soft})
	}
	if here > 0 {
		own.charged = append(own.charged, charged{a.last, min(here, b.hard)})
	}
	return own
}
