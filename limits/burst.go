package limits

import (
	"fmt"
	"time"
)

// Burst allows Soft on average and Hard at times. In any one period at most Hard pass. What passes above Soft becomes debt,
// which is taken from the following periods: with Soft 100/s and Hard 200/s, after a second in which 120 passed 80 may pass
// in the next, and after one in which 200 passed none. While there is debt the allowance is Soft - debt, without it Hard.
// Unused allowance is not saved. A verdict tells whether its charge went over Soft.
//
//	debt      = max(0, debt + what passed - Soft)        at the end of each period
//	allowance = Hard if debt is 0, else max(0, Soft - debt)
//	fits if what passed in this period + cost ≤ allowance, else retry in the first period that allows it
//
// Total, if it is given, caps the sum over every run of consecutive whole periods as long as its own period, the current
// one included: with 10000/min and periods of a second over any 60 of them.
//
// Soft and Hard share one period, and Total's is a multiple of it. Rates are never reduced: 60/min is not 1/s. Periods begin
// at multiples of their length since the Unix epoch, as fixed windows do. All is exact, in whole units of cost; waits end
// when a period begins.
//
// Over any run of n whole periods at most n × Soft + (Hard - Soft) pass, and no more than Total's amount in one as long as
// Total's period. A span of n periods of any other phase touches n + 1 whole ones.
//
// With a Total a key takes 16 to 32 bytes more for each of the periods in Total's in which something passed; NewPolicy
// refuses rules for which that could be above 1,048,576 of them. The zero value has no rates and is refused too. A Hard or
// Total of 0 refuses everything. A refund makes it as if the charge had never been.
type Burst struct {
	Soft, Hard Rate
	// Total is optional: the zero Rate means that there is none.
	Total Rate
}

// String returns the rule as the configuration file spells it.
func (b Burst) String() string {
	if b.Total == (Rate{}) {
		return fmt.Sprintf("burst: {soft: %v, hard: %v}", b.Soft, b.Hard)
	}
	return fmt.Sprintf("burst: {soft: %v, hard: %v, total: %v}", b.Soft, b.Hard, b.Total)
}

func (b Burst) compile() (arithmetic, error) {
	if err := b.check(); err != nil {
		return nil, fmt.Errorf("burst: %w", err)
	}
	c := bursts{soft: b.Soft.Amount, hard: b.Hard.Amount, per: micro(b.Hard.Per)}
	switch b.Total.Per {
	case 0:
		return &c, nil
	case b.Hard.Per: // a run of one period: no more passes in it, and there is nothing before it to be remembered
		c.soft, c.hard = min(c.soft, b.Total.Amount), min(c.hard, b.Total.Amount)
		return &c, nil
	}
	return &totalled{bursts: c, total: b.Total.Amount, run: int64(b.Total.Per / b.Hard.Per)}, nil
}

func (b Burst) check() error {
	if err := checkQuota(b.Soft); err != nil {
		return fmt.Errorf("soft: %w", err)
	}
	if err := checkQuota(b.Hard); err != nil {
		return fmt.Errorf("hard: %w", err)
	}
	switch {
	case b.Soft.Per != b.Hard.Per:
		return fmt.Errorf("soft %v and hard %v have different periods; write both as N%v, for rates are not converted", b.Soft, b.Hard, period(b.Soft.Per))
	case b.Soft.Amount == 0 && b.Hard.Amount > 0:
		return fmt.Errorf("soft is 0, so that what passes is never paid back; use at least 1%s, or a hard of 0 to refuse all", period(b.Soft.Per))
	case b.Hard.Amount < b.Soft.Amount:
		return fmt.Errorf("hard %v is below soft %v; raise hard, or lower soft", b.Hard, b.Soft)
	case b.Hard.Amount > Exact/2:
		return fmt.Errorf("a hard rate of %d is above 2^52; lower it", b.Hard.Amount)
	case b.Total == (Rate{}):
		return nil
	}
	if err := checkQuota(b.Total); err != nil {
		return fmt.Errorf("total: %w", err)
	}
	switch run := int64(b.Total.Per / b.Hard.Per); {
	case b.Total.Per%b.Hard.Per != 0:
		return fmt.Errorf("the period of total %v is not a multiple of that of hard %v; make it one", b.Total, b.Hard)
	case run > 1 && min(run, b.Total.Amount) > longestPast:
		return fmt.Errorf("total %v would need more than %d periods of %v to be remembered; use longer periods", b.Total, longestPast, b.Hard.Per)
	}
	return nil
}

// period spells a period as rates do: "/s".
func period(d time.Duration) string { return (Rate{Amount: 1, Per: d}).String()[1:] }

// bursts is the arithmetic of Burst without a Total.
//
// Debt has one source at a time: the period in which Hard was allowed. What the allowance of Soft - debt lets pass later
// never exceeds Soft together with the debt, so that the period after it is free of debt again. So a spell is that first
// period and those that pay for it, and three numbers tell all of it: of the balance owed is what passed in the first
// period, and since is n × soft + what passed in the current one (that of last), where n counts the periods from the first
// to the current: 0 in the first itself, and what passed there is in owed alone.
type bursts struct {
	soft, hard int64
	per        int64 // µs
}

// spell is a balance taken apart, at one period.
type spell struct {
	now   int64 // the balance's own time
	begin int64 // when the period begins, in µs
	first int64 // what passed in the first period of the spell
	ago   int64 // how many periods ago that was
	here  int64 // what passed in this period, if that is another
}

// at returns the spell as it stands in the period of a time.
func (r *bursts) at(b balance, now int64) spell {
	at := max(now, b.last)
	s := spell{now: at, begin: start(at, r.per), first: b.owed}
	if b.owed == 0 {
		return s
	}
	s.ago, s.here = b.since/r.soft, b.since%r.soft
	passed := (s.begin - start(b.last, r.per)) / r.per
	if passed == 0 {
		return s
	}
	s.ago += passed
	if r.debt(s) <= 0 { // where something passed after it, always: the debt was at most soft then
		return spell{now: at, begin: s.begin}
	}
	return s
}

// debt returns what is still to be paid for the first period.
func (r *bursts) debt(s spell) int64 {
	if s.ago == 0 {
		return 0
	}
	return s.first - saturating(s.ago, r.soft)
}

// room returns how much may still pass in the period of s.
func (r *bursts) room(s spell) int64 {
	if s.ago == 0 {
		return r.hard - s.first
	}
	return max(r.soft-r.debt(s), 0) - s.here
}

// balance puts s together again.
func (r *bursts) balance(s spell) balance {
	return balance{owed: s.first, last: s.now, since: s.ago*r.soft + s.here}
}

// add lets cost pass in the period of s.
func (s *spell) add(cost int64) {
	if s.ago == 0 {
		s.first += cost
	} else {
		s.here += cost
	}
}

// fits returns how many periods after that of s there is room for need, which there is not now. Need is at most hard.
func (r *bursts) fits(s spell, need int64) int64 {
	if s.ago > 0 && s.here > 0 {
		return 1 // the debt is paid then
	}
	clear := (s.first-1)/r.soft + 1 - s.ago // the first period without debt
	if last := r.soft*(s.ago+clear) - s.first; clear > 1 && need <= last {
		return clear - 1 // the one before has paid, and leaves so much
	}
	return clear
}

func (r *bursts) judge(b balance, now, cost, before int64) (balance, judgement) {
	if cost > r.hard-before {
		return b, judgement{reason: CostTooLarge}
	}
	s, need := r.at(b, now), before+cost
	if need > r.room(s) {
		return b, judgement{reason: OverLimit, retryAfter: wait(now, s.begin+r.fits(s, need)*r.per)}
	}
	s.add(need)
	return r.balance(s), judgement{overSoft: s.ago == 0 && s.first > r.soft}
}

func (r *bursts) look(b balance, now int64) outlook {
	s := r.at(b, now)
	if s.first == 0 {
		return outlook{remaining: r.hard}
	}
	o := outlook{remaining: r.room(s)}
	if o.remaining < r.hard {
		o.nextAfter = wait(now, s.begin+r.fits(s, o.remaining+1)*r.per)
	}
	o.resetAfter = wait(now, s.begin+r.fits(s, r.hard)*r.per)
	return o
}

// bounded implements bounding: the first period has let no more pass than it may, no debt is paid twice, and what has passed since fits
// beside what is left of it.
func (r *bursts) bounded(b balance) balance {
	b.owed = min(b.owed, r.hard)
	if b.owed == 0 || r.soft == 0 {
		b.since = 0
		return b
	}
	s := spell{first: b.owed, ago: min(b.since/r.soft, (b.owed-1)/r.soft), here: b.since % r.soft}
	if s.ago == 0 {
		s.here = 0
	}
	s.here = min(s.here, max(r.soft-r.debt(s), 0))
	b.since = s.ago*r.soft + s.here
	return b
}

func (r *bursts) refund(b balance, now, cost, taken int64) balance {
	s := r.at(b, now)
	if !r.giveBack(&s, cost, taken) {
		return b
	}
	return r.balance(s)
}

// giveBack takes out of s what was charged at taken, and reports whether any of it still counts.
func (r *bursts) giveBack(s *spell, cost, taken int64) bool {
	switch taken = start(taken, r.per); {
	case s.first == 0:
		return false
	case s.ago > 0 && s.here > 0 && taken == s.begin:
		s.here -= min(s.here, cost)
	case taken == s.begin-s.ago*r.per:
		s.first -= min(s.first, cost)
		if s.ago > 0 && r.debt(*s) <= 0 { // this period is the first of a new spell
			s.first, s.ago, s.here = s.here, 0, 0
		}
	default:
		return false // it has been paid for
	}
	return true
}

func (r *bursts) full(b balance, now int64) bool { return r.at(b, now).first == 0 }

// used implements arithmetic: the debt, and what passed in the current period.
func (r *bursts) used(b balance, now int64) (used, since int64) {
	s := r.at(b, now)
	since = s.begin - s.ago*r.per
	if s.ago == 0 {
		return s.first, since
	}
	return r.debt(s) + s.here, since
}

func (r *bursts) owing(used, now, _ int64) balance {
	return balance{owed: min(used, r.hard), last: now}
}

// inherit implements heir: between bursts with the same period debt stays debt.
func (r *bursts) inherit(b balance, from arithmetic) (balance, bool) {
	older := burstsOf(from)
	if older == nil || older.per != r.per || r.soft == 0 {
		return balance{}, false
	}
	s := older.at(b, b.last)
	if s.ago == 0 {
		s.first = min(s.first, r.hard)
		return r.balance(s), true
	}
	// One period ago so much passed that this debt is left of it.
	debt, here := older.debt(s), s.here
	if debt+here > r.soft { // more than this period may bear: all of it is debt
		debt, here = debt+here, 0
	}
	debt = min(debt, r.hard-r.soft)
	if debt == 0 {
		s.first, s.ago, s.here = min(here, r.hard), 0, 0
	} else {
		s.first, s.ago, s.here = debt+r.soft, 1, here
	}
	return r.balance(s), true
}

func burstsOf(a arithmetic) *bursts {
	switch a := a.(type) {
	case *bursts:
		return a
	case *totalled:
		return &a.bursts
	}
	return nil
}

func (r *bursts) quota() int64          { return r.hard }
func (r *bursts) window() time.Duration { return time.Duration(r.per) * time.Microsecond }
func (r *bursts) grain() time.Duration  { return time.Microsecond }
