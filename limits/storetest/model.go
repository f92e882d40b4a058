package storetest

import (
	"context"
	"errors"
	"math/big"
	"sync"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// model is a store that computes the rules as they are defined, in rational numbers: tokens, not units; no reduced rates,
// no ticks beyond the floor of now; for windows the list of all that was ever charged. It is slow, unbounded and obviously
// right, and shares no arithmetic with limits.
type model struct {
	mu       sync.Mutex
	balances map[place]account
	known    map[limits.Rule]meaning // meaningOf, remembered: it costs more than the rest
}

type place struct{ policy, key string }

// account is one balance: the latest time seen and the begin of the spell, both in µs, and what was used: tokens for
// buckets, all charges for windows.
type account struct {
	rule        limits.Rule // that the account is counted in
	used        *big.Rat
	last, since int64
	charged     []charged
	total       []charged // for the total of a Burst, if that knows more than charged
}

// meaning is what a rule says about accounts.
type meaning interface {
	// at returns the account as it stands at now: the clock moved on, never back.
	at(a account, now int64) account
	// judge fills in what the verdict says about its cost, on top of what the same Take has taken before.
	judge(v *limits.Verdict, a account, now, before int64)
	// add returns the account after a charge.
	add(a account, cost int64) account
	// look fills in what the verdict says about the account.
	look(v *limits.Verdict, a account, now int64)
	// refund returns the account, at its own time, after a refund, and whether that gave anything back.
	refund(a account, cost, taken int64) (account, bool)
	// full tells whether nothing is used of the account, at its own time.
	full(a account) bool
	// spent returns what is used, in whole units rounded up, and the earliest time whose charges may be part of that.
	spent(a account) (used, since int64)
	// owing returns an account in which so much is used.
	owing(used, last, since int64) account
}

func newModel() *model {
	return &model{balances: make(map[place]account), known: make(map[limits.Rule]meaning)}
}

func (m *model) meaning(r limits.Rule) meaning {
	f, ok := m.known[r]
	if !ok {
		if f = windowsOf(r); f == nil {
			f = figuresOf(r)
		}
		m.known[r] = f
	}
	return f
}

// figures is what a rule means, in tokens and µs.
type figures struct {
	rate     *big.Rat // tokens per µs
	capacity *big.Rat
	free     *big.Rat // may be used without waiting
	bound    *big.Rat // may be used at all
	most     *big.Rat // may be owed, when the last charge is not counted
	queue    bool     // the charge itself is not counted
	tick     int64    // times are floored to this
}

func figuresOf(r limits.Rule) *figures {
	maxWait, delayed := time.Duration(0), false
	if d, ok := r.(limits.Delay); ok {
		r, delayed, maxWait = d.Rule, true, d.MaxWait
		if maxWait == 0 {
			maxWait = 2 * time.Second
		}
	}
	f := &figures{tick: 1}
	var rate limits.Rate
	switch r := r.(type) {
	case limits.TokenBucket:
		f.capacity, rate = whole(r.Capacity), r.Refill
	case limits.LeakyBucket:
		f.capacity, rate, f.queue = whole(r.Capacity), r.Leak, delayed
	}
	f.rate = big.NewRat(rate.Amount, rate.Per.Microseconds())
	f.most = f.turns(delayed, maxWait)
	// A token is as many units as the reduced rate's denominator says; where 2^53 units are not enough, time is counted
	// in ms, and then the same rate has a smaller denominator.
	units := new(big.Rat).Mul(f.most, new(big.Rat).SetInt(f.rate.Denom()))
	if limit := whole(1 << 53); units.Cmp(limit) > 0 || new(big.Rat).SetInt(f.rate.Num()).Cmp(limit) > 0 {
		f.tick = 1000
		f.most = f.turns(delayed, maxWait)
	}
	return f
}

// turns sets free and bound, and returns the highest debt possible.
func (f *figures) turns(delayed bool, maxWait time.Duration) *big.Rat {
	f.free, f.bound = f.capacity, f.capacity
	if !delayed {
		return f.capacity
	}
	patience := new(big.Rat).Mul(f.rate, whole(maxWait.Microseconds()/f.tick*f.tick))
	if !f.queue {
		f.bound = new(big.Rat).Add(f.capacity, patience)
		return f.bound
	}
	f.free = whole(0)
	if patience.Cmp(f.bound) < 0 {
		f.bound = patience
	}
	return new(big.Rat).Add(f.bound, f.capacity)
}

func (f *figures) counted(used *big.Rat, cost int64) *big.Rat {
	if f.queue {
		return used
	}
	return new(big.Rat).Add(used, whole(cost))
}

// at returns the account as it stands at now: the clock moved on, never back, and what drained is gone.
func (f *figures) at(a account, now int64) account {
	now = max(now-now%f.tick, a.last)
	used := new(big.Rat).Sub(a.used, new(big.Rat).Mul(f.rate, whole(now-a.last)))
	if used.Sign() < 0 {
		used = whole(0)
	}
	return account{rule: a.rule, used: used, last: now, since: a.since}
}

// wait returns how long after now the tokens above the level will have drained.
func (f *figures) wait(tokens *big.Rat, a account, now int64) time.Duration {
	perTick := new(big.Rat).Mul(f.rate, whole(f.tick))
	ticks := ceil(new(big.Rat).Quo(tokens, perTick))
	return time.Duration(a.last-now+ticks*f.tick) * time.Microsecond
}

func (m *model) Take(_ context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	return m.decide(now, charges, true)
}

func (m *model) Peek(_ context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	return m.decide(now, charges, false)
}

func (m *model) decide(now time.Time, charges []limits.Charge, take bool) (limits.Decision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := now.UnixMicro()
	d := limits.Decision{Allowed: true}
	after := make(map[place]account)
	sums := make(map[place]int64)
	verdicts := make([]limits.Verdict, len(charges))
	for i, c := range charges {
		if c.Cost < 0 {
			return limits.Decision{}, errors.New("model: negative cost")
		}
		f, at := m.meaning(c.Policy.Rule()), place{c.Policy.Name(), c.Key}
		a, seen := after[at]
		if !seen {
			a = f.at(m.account(at, c.Policy.Rule(), t), t)
		}
		v := &verdicts[i]
		*v = limits.Verdict{Policy: c.Policy, Key: c.Key, Cost: c.Cost, Shadow: c.Shadow, Taken: limits.NotTaken}
		if c.Cost > 0 {
			f.judge(v, a, t, sums[at])
		}
		fits := v.Reason == limits.Allowed
		if c.Cost > 0 && (fits || v.Reason != limits.CostTooLarge && !c.Shadow) {
			a = f.add(a, c.Cost)
			sums[at] += c.Cost
		}
		after[at] = a
		d.Allowed = d.Allowed && (fits || c.Shadow)
	}
	for i := range verdicts {
		v := &verdicts[i]
		f, at := m.meaning(v.Policy.Rule()), place{v.Policy.Name(), v.Key}
		a := after[at]
		if !d.Allowed {
			a, v.Delay, v.OverSoft = f.at(m.account(at, v.Policy.Rule(), t), t), 0, false
		}
		f.look(v, a, t)
		if d.Allowed && take && v.Cost > 0 && v.Reason == limits.Allowed {
			v.Taken = a.last
			m.balances[at] = a
		}
		d.Append(*v)
	}
	return d, nil
}

// account returns the account at a place, counted in a rule at now.
func (m *model) account(at place, r limits.Rule, now int64) account {
	a, ok := m.balances[at]
	if !ok {
		return account{rule: r, used: whole(0)}
	}
	if a.rule == r {
		return a
	}
	f := m.meaning(a.rule)
	if f.full(f.at(a, now)) {
		b := m.meaning(r).owing(0, a.last, 0)
		b.rule = r
		return b
	}
	used, since := f.spent(a)
	b := m.meaning(r).owing(used, a.last, since)
	if older, newer := burstOf(f), burstOf(m.meaning(r)); older != nil && newer != nil && older.per == newer.per {
		b = newer.inherit(a, older)
	}
	b.rule = r
	return b
}

func (f *figures) add(a account, cost int64) account {
	if a.used.Sign() == 0 {
		a.since = a.last
	}
	a.used = new(big.Rat).Add(a.used, whole(cost))
	return a
}

func (f *figures) full(a account) bool { return a.used.Sign() == 0 }

func (f *figures) spent(a account) (used, since int64) { return ceil(a.used), a.since }

func (f *figures) owing(used, last, since int64) account {
	a := account{used: whole(used), last: (last + f.tick - 1) / f.tick * f.tick, since: since / f.tick * f.tick}
	if a.used.Cmp(f.most) > 0 {
		a.used = f.most
	}
	return a
}

func (f *figures) judge(v *limits.Verdict, a account, now, before int64) {
	if whole(v.Cost).Cmp(f.capacity) > 0 || before > 0 && f.counted(whole(before), v.Cost).Cmp(f.bound) > 0 {
		v.Reason = limits.CostTooLarge
		return
	}
	x := f.counted(a.used, v.Cost)
	if over := new(big.Rat).Sub(x, f.bound); over.Sign() > 0 {
		v.Reason, v.RetryAfter = limits.OverLimit, f.wait(over, a, now)
	} else if ahead := new(big.Rat).Sub(x, f.free); ahead.Sign() > 0 {
		v.Delay = f.wait(ahead, a, now)
	}
}

// look counts how many charges of 1 would be accepted, one after the other, up to the capacity.
func (f *figures) look(v *limits.Verdict, a account, now int64) {
	accepts := func(used *big.Rat) int64 { // the largest n for which the n-th charge of 1 on top of used is accepted
		room := new(big.Rat).Sub(f.bound, used)
		if f.queue {
			room.Add(room, whole(1))
		}
		if room.Sign() < 0 {
			return 0
		}
		return min(floor(room), floor(f.capacity))
	}
	v.Remaining = accepts(a.used)
	if a.used.Sign() == 0 {
		return
	}
	v.ResetAfter = f.wait(a.used, a, now)
	if v.Remaining < accepts(whole(0)) {
		// One more is accepted once used is down to bound - remaining - 1, or one more than that in a queue.
		level := new(big.Rat).Sub(f.bound, whole(v.Remaining+1))
		if f.queue {
			level.Add(level, whole(1))
		}
		v.NextAfter = f.wait(new(big.Rat).Sub(a.used, level), a, now)
	}
}

func (m *model) Refund(_ context.Context, now time.Time, d limits.Decision) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range d.Len() {
		v := d.At(i)
		if !d.Allowed || v.Taken == limits.NotTaken {
			continue
		}
		at := place{v.Policy.Name(), v.Key}
		if a, ok := m.balances[at]; ok {
			f := m.meaning(a.rule)
			if refunded, given := f.refund(f.at(a, now.UnixMicro()), v.Cost, v.Taken); given {
				m.balances[at] = refunded
			}
		}
	}
	return nil
}

func (f *figures) refund(a account, cost, taken int64) (account, bool) {
	if a.used.Sign() == 0 || taken < a.since {
		return a, false // it has been full since
	}
	a.used = new(big.Rat).Sub(a.used, whole(cost))
	if a.used.Sign() < 0 {
		a.used = whole(0)
	}
	return a, true
}

func whole(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func floor(r *big.Rat) int64 { return new(big.Int).Div(r.Num(), r.Denom()).Int64() }

func ceil(r *big.Rat) int64 { return -floor(new(big.Rat).Neg(r)) }
