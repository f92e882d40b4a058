package limits

// Owe adds cost to an account whose rule is a debt that drains, at now in µs since the Unix epoch, whether it fits or not: it is
// for what somebody else has admitted. What is owed above the rule's bound must drain before anything is admitted again. It is
// counted up to Exact. The account of another rule is left as it is, and Owe reports false.
func (a *Account) Owe(now, cost int64) bool {
	m, drains := a.edition.math.(*Meter)
	if !drains {
		return false
	}
	b := a.balance
	at := m.clock(b, now)
	owed, since := m.drained(b, at), b.since
	if owed == 0 {
		since = at
	}
	a.balance = balance{owed: min(owed+min(saturating(cost, m.Unit), Exact), Exact), last: at, since: since}
	return true
}

// GiveBack undoes a charge of cost that was taken at a time, as Store.Refund does. All times are in µs since the Unix epoch.
func (a *Account) GiveBack(now, cost, taken int64) {
	a.balance = a.edition.math.refund(a.balance, now, cost, taken)
}

// Numbers returns what Policy.Account makes such an account of, except for single charges that a rule remembers.
func (a *Account) Numbers() (owed, last, since int64) {
	return a.balance.owed, a.balance.last, a.balance.since
}
