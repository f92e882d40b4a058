package limits

// totalled is the arithmetic of Burst with a Total. The sum of each period of the run in which something passed is in the
// past, under the time in µs at which the period begins.
type totalled struct {
	bursts
	total int64
	run   int64 // how many periods total is about
}

var (
	_ recorder = (*totalled)(nil)
	_ heir     = (*totalled)(nil)
	_ heir     = (*bursts)(nil)
)

// alive returns the oldest entry of the run that ends with the period beginning at begin, and the sum of the run.
func (r *totalled) alive(b balance, begin int64) (oldest int, sum int64) {
	oldest = b.past.from(begin - (r.run-1)*r.per)
	return oldest, b.past.since(oldest)
}

func (r *totalled) judge(b balance, now, cost, before int64) (balance, judgement) {
	if cost > r.quota()-before {
		return b, judgement{reason: CostTooLarge}
	}
	s, need := r.at(b, now), before+cost
	if _, sum := r.alive(b, s.begin); need > r.room(s) || sum+need > r.total {
		return b, judgement{reason: OverLimit, retryAfter: wait(now, r.fits(b, s, 0, need))}
	}
	s.add(need)
	after := r.balance(s)
	after.past = b.past
	return after, judgement{overSoft: s.ago == 0 && s.first > r.soft}
}

// fits returns from when on there is room for need, which there is not now. Need is at most the quota; amount is what is not
// recorded yet.
func (r *totalled) fits(b balance, s spell, amount, need int64) (at int64) {
	if s.first > 0 {
		at = s.begin + r.bursts.fits(s, need)*r.per
	}
	oldest, sum := r.alive(b, s.begin)
	over := sum + amount + need - r.total
	switch {
	case over <= 0:
	case over <= sum:
		at = max(at, b.past.covering(oldest, over).at+r.run*r.per)
	default:
		at = max(at, s.begin+r.run*r.per) // what is not recorded yet has to go too
	}
	return at
}

func (r *totalled) look(b balance, now int64) outlook { return r.lookAhead(b, 0, now) }

// lookAhead implements recorder.
func (r *totalled) lookAhead(b balance, amount, now int64) outlook {
	s := r.at(b, now)
	oldest, sum := r.alive(b, s.begin)
	if s.first == 0 && sum+amount == 0 {
		return outlook{remaining: r.quota()}
	}
	o := outlook{remaining: max(min(r.room(s), r.total-sum-amount), 0)}
	if o.remaining < r.quota() {
		o.nextAfter = wait(now, r.fits(b, s, amount, o.remaining+1))
	}
	reset := s.begin
	if s.first > 0 {
		reset += r.bursts.fits(s, r.hard) * r.per
	}
	switch {
	case amount > 0:
		reset = max(reset, s.begin+r.run*r.per)
	case oldest < b.past.len():
		reset = max(reset, b.past.entry(b.past.count-1).at+r.run*r.per)
	}
	o.resetAfter = wait(now, reset)
	return o
}

// record implements recorder.
func (r *totalled) record(b balance, amount int64) {
	begin := start(b.last, r.per)
	oldest, _ := r.alive(b, begin)
	b.past.forget(oldest)
	b.past.push(begin, amount)
}

// refund implements arithmetic. After a change of the rule the sum of a run stands in one entry, in the period of the last
// charge: it is the first that is not before taken.
func (r *totalled) refund(b balance, now, cost, taken int64) balance {
	s := r.at(b, now)
	given := r.giveBack(&s, cost, taken)
	taken = start(taken, r.per)
	if i := b.past.from(taken); taken > s.begin-r.run*r.per && i < b.past.len() {
		b.past.reduce(i, cost)
		given = true
	}
	if !given {
		return b
	}
	after := r.balance(s)
	after.past = b.past
	return after
}

func (r *totalled) full(b balance, now int64) bool {
	s := r.at(b, now)
	_, sum := r.alive(b, s.begin)
	return s.first == 0 && sum == 0
}

// used implements arithmetic: the larger of what counts against the allowance and what counts against the total.
func (r *totalled) used(b balance, now int64) (used, since int64) {
	used, since = r.bursts.used(b, now)
	oldest, sum := r.alive(b, start(max(now, b.last), r.per))
	if oldest < b.past.len() {
		since = min(since, b.past.entry(oldest).at)
	}
	return max(used, sum), since
}

func (r *totalled) owing(used, now, since int64) balance {
	b := r.bursts.owing(used, now, since)
	b.past = only(start(now, r.per), min(used, r.total))
	return b
}

// inherit implements heir: beside the debt, what was used of a total stays used.
func (r *totalled) inherit(b balance, from arithmetic) (balance, bool) {
	after, ok := r.bursts.inherit(b, from)
	if !ok {
		return balance{}, false
	}
	used, _ := burstsOf(from).used(b, b.last)
	if older, ok := from.(*totalled); ok {
		_, used = older.alive(b, start(b.last, r.per))
	}
	after.past = only(start(b.last, r.per), min(used, r.total))
	return after, true
}

func (r *totalled) quota() int64 { return min(r.hard, r.total) }
