package limits

// Arithmetic is how a rule counts.
type Arithmetic uint8

// The kinds of arithmetic there are.
const (
	CountsDebt     Arithmetic = iota // a debt that drains: TokenBucket, LeakyBucket, and Delay around them
	CountsWindow                     // FixedWindow
	CountsWeighted                   // SlidingWindow
	CountsLog                        // SlidingLog
	CountsBurst                      // Burst without a Total
	CountsTotal                      // Burst with a Total
	CountsInFlight                   // InFlight: no rate, and no store outside of the process
)

// Numbers is a compiled rule for stores that keep balances and decide elsewhere, in a script for instance. What an arithmetic
// does not name is 0. All are whole and at most Exact.
type Numbers struct {
	Arithmetic Arithmetic
	// Meter is set for CountsDebt; see there for what its numbers mean.
	Meter Meter
	// MostOwed is the highest debt that a Meter allows, in its units.
	MostOwed int64
	// Quota is how much passes in a window or in flight, or the hard rate of a burst; Soft and Total are a burst's others.
	Quota, Soft, Total int64
	// Period is a window's or burst's length and Tick the unit of its time, both in µs. Run is how many periods Total is
	// about.
	Period, Tick, Run int64
}

// Numbers returns the compiled rule.
func (p *Policy) Numbers() Numbers {
	switch m := p.math.(type) {
	case *Meter:
		return Numbers{Arithmetic: CountsDebt, Meter: *m, MostOwed: m.most, Tick: m.tick}
	case *windowed:
		return Numbers{Arithmetic: CountsWindow, Quota: m.most, Period: m.per, Tick: 1}
	case *weighted:
		return Numbers{Arithmetic: CountsWeighted, Quota: m.most, Period: m.per, Tick: m.tick}
	case *logged:
		return Numbers{Arithmetic: CountsLog, Quota: m.most, Period: m.per, Tick: 1}
	case *bursts:
		return Numbers{Arithmetic: CountsBurst, Quota: m.hard, Soft: m.soft, Period: m.per, Tick: 1}
	case *totalled:
		return Numbers{Arithmetic: CountsTotal, Quota: m.hard, Soft: m.soft, Total: m.total, Period: m.per, Run: m.run, Tick: 1}
	case *counter:
		return Numbers{Arithmetic: CountsInFlight, Quota: m.most, Tick: 1}
	}
	return Numbers{}
}

// Passed is what a rule that remembers single charges counted at one time, in µs since the Unix epoch.
type Passed struct{ At, Amount int64 }

// Account is a balance that another place keeps, counted in its policy's own rule. A store that decides elsewhere lets Decide
// work out with it what Memory would have answered, so that no store has words of its own for the same thing.
type Account struct {
	edition *edition
	balance balance
}

// Account returns a balance from what a store outside of the process knows about it: the three numbers that every balance has,
// in the units of the rule, and of a rule that remembers single charges those that still count, oldest first. All 0 is a
// full balance. Numbers that the rule never comes to, which somebody else must have written there, are taken for the nearest that it does.
func (p *Policy) Account(owed, last, since int64, past []Passed) Account {
	a := Account{&p.elsewhere, balance{owed: owed, last: last, since: since}}
	if m, ok := p.math.(bounding); ok {
		a.balance = m.bounded(a.balance)
	}
	at := int64(0)
	for _, c := range past {
		at = max(at, c.At)
		c.At = at
		if a.balance.past == nil {
			a.balance.past = only(c.At, c.Amount)
		} else {
			a.balance.past.push(c.At, c.Amount)
		}
	}
	return a
}

// bounding is an arithmetic that relies on what its balances can come to.
type bounding interface {
	// bounded returns the nearest balance that the rule comes to.
	bounded(b balance) balance
}

// Effect is what a decision does to accounts.
type Effect uint8

// The effects of a decision.
const (
	Look   Effect = iota // none: what a Take would answer
	Take                 // all charges are taken if all fit
	Refuse               // none, for something else refuses: even what fits is not taken
)

// Decide fills d with the decision about charges at now, which is in whole µs since the Unix epoch, as Memory would make it:
// charge i is against accounts[of[i]], and charges against one balance share an account. With Take and if all fit, they are
// taken from the accounts. The charges must be valid, see Charge.Check, and d be empty.
func Decide(now int64, charges []Charge, accounts []Account, of []int, effect Effect, d *Decision) {
	var few [inline]probe
	probes := few[:min(len(charges), inline)]
	if len(charges) > inline {
		probes = make([]probe, len(charges))
	}
	for i := range charges {
		a, p := &accounts[of[i]], &probes[i]
		*p = probe{edition: a.edition, first: i, found: a.balance, balance: a.balance}
		for j := range i {
			if of[j] == of[i] {
				p.first = j
				break
			}
		}
	}
	d.Allowed = judge(probes, charges, now, effect == Take, d)
	switch {
	case !d.Allowed:
	case effect == Refuse:
		refuse(probes, now, d)
	case effect == Take:
		enter(probes, accounts, of)
	}
}

// refuse makes a refusal of an admission.
func refuse(probes []probe, now int64, d *Decision) {
	d.Allowed = false
	for i := range probes {
		p, v := &probes[i], d.At(i)
		v.stands(p.edition.math.look(probes[p.first].found, now))
		v.Delay, v.OverSoft, v.Taken = 0, false, NotTaken
	}
}

// enter writes the balances to the accounts.
func enter(probes []probe, accounts []Account, of []int) {
	for i := range probes {
		p := &probes[i]
		if p.first != i || p.taken == 0 {
			continue
		}
		if r := p.edition.recorder; r != nil {
			if p.balance.past == nil {
				p.balance.past = new(past)
			}
			r.record(p.balance, p.taken)
		}
		accounts[of[i]].balance = p.balance
	}
}

// Check returns what is wrong with a charge: no policy, or a negative cost. It is nil for what a store has to decide.
func (c *Charge) Check() error { return c.check() }
