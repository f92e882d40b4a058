package limits

import "time"

// Reason is the one word for why a decision came out as it did. The same word is the metric label, the log field and the
// "reason" member of the problem document. The zero value is Allowed.
type Reason uint8

// The reasons a rule can give.
const (
	Allowed         Reason = iota // the charge fits
	TooManyInFlight               // the charge does not fit until something in flight ends, and nobody knows when
	OverLimit                     // the charge does not fit now; RetryAfter says when it will
	CostTooLarge                  // the charge can never fit: it is above the rule's capacity, or that is 0
)

// String returns the word as it appears in metrics, logs and problem documents.
func (r Reason) String() string {
	switch r {
	case Allowed:
		return "allowed"
	case TooManyInFlight:
		return "in_flight"
	case OverLimit:
		return "over_limit"
	case CostTooLarge:
		return "cost_too_large"
	}
	return "unknown"
}

// Verdict is what one policy says about one charge. All durations are counted from the now of the Take and are whole
// microseconds, rounded up, so that who waits that long is never early.
type Verdict struct {
	Policy *Policy
	Key    string
	Cost   int64

	// Remaining is how many charges of 1 would be accepted now, one after the other, once this decision stands. It is
	// never more than the policy's Quota.
	Remaining int64
	// RetryAfter is how long until this very charge would be accepted, if nobody else takes anything. Zero when it was
	// allowed, when waiting cannot help (CostTooLarge), and when nobody knows (TooManyInFlight).
	RetryAfter time.Duration
	// NextAfter is how long until Remaining next grows by one; zero when it cannot.
	NextAfter time.Duration
	// ResetAfter is how long until the balance is full again; zero when it is full.
	ResetAfter time.Duration
	// Delay is how long the charge must wait for its turn; only the Delay rule gives one, and only when the whole
	// decision is an admission.
	Delay time.Duration
	// Taken is the balance's own time of the charge in µs since the Unix epoch, for Refund. NotTaken if nothing was taken.
	Taken int64

	Reason Reason
	// Shadow is that of the charge: whatever Reason says, it did not count for the decision.
	Shadow bool
	// OverSoft tells that the charge was admitted above the soft rate of a Burst, and has made debt.
	OverSoft bool

	shared bool // charged to the balance that newcomers share while a Memory is full
}

// NotTaken is the Taken of a verdict that charged nothing: of a refusal, a Peek or a cost of 0.
const NotTaken = -1

// Source is where a Decision came from. The zero value is the store's own balances, in this process.
type Source uint8

// The sources of a decision.
const (
	FromMemory Source = iota // balances in this process
	FromRedis                // balances in Redis, asked for this decision
	FromLease                // a block of quota taken from Redis earlier
	FromCache                // a refusal of Redis that still holds
	FromLocal                // Redis could not be asked: this process's share of the quota
	FromOpen                 // Redis could not be asked: allowed without counting
	FromClosed               // Redis could not be asked: refused
	FromAsync                // what Redis told a moment ago, and what was admitted here since
)

// String returns the word as it appears in metrics and logs.
func (s Source) String() string {
	switch s {
	case FromMemory:
		return "memory"
	case FromRedis:
		return "redis"
	case FromLease:
		return "lease"
	case FromCache:
		return "cache"
	case FromLocal:
		return "local"
	case FromOpen:
		return "open"
	case FromClosed:
		return "closed"
	case FromAsync:
		return "async"
	}
	return "unknown"
}

// inline is how many verdicts a Decision holds without allocating.
const inline = 4

// Decision is the answer to one Take or Peek: a verdict for each charge, in the order of the charges. It is a plain
// value, needs no allocation for up to four charges, and carries what Refund needs to undo it.
// The zero value is no decision: refused, with no verdicts.
type Decision struct {
	// Allowed tells whether every charge fits that is not a shadow. If it is false nothing at all was taken. Other
	// charges of a refused decision may well fit; their verdicts then say Allowed, and describe balances that nothing was
	// taken from.
	Allowed bool
	// Source is who decided, in a store that has several ways to. It says nothing about how.
	Source Source

	n    int
	few  [inline]Verdict
	many []Verdict // all verdicts, when there are more than inline
}

// Append adds the verdict for the next charge. It is for stores, which build decisions; Allowed is theirs to set.
func (d *Decision) Append(v Verdict) {
	switch {
	case d.many != nil:
		d.many = append(d.many, v)
	case d.n < inline:
		d.few[d.n] = v
	default:
		many := make([]Verdict, inline, 2*inline)
		copy(many, d.few[:])
		d.many = append(many, v)
	}
	d.n++
}

// about adds the verdict for the next of a few charges, which has not been judged yet.
func (d *Decision) about(c *Charge) *Verdict {
	v := &d.few[d.n]
	v.Policy, v.Key, v.Cost, v.Taken = c.Policy, c.Key, c.Cost, NotTaken
	d.n++
	return v
}

// Verdicts returns all verdicts, in the order of the charges. The slice is the Decision's own.
func (d *Decision) Verdicts() []Verdict {
	if d.many != nil {
		return d.many
	}
	return d.few[:d.n]
}

// Len returns how many verdicts there are.
func (d *Decision) Len() int { return d.n }

// At returns the verdict for the i-th charge, 0 ≤ i < Len().
func (d *Decision) At(i int) *Verdict {
	if d.many != nil {
		return &d.many[i]
	}
	return &d.few[:d.n][i]
}

// Binding returns the verdict that decides: of a refusal the one that refuses for longest (a charge that can never fit
// before all others), of an admission the one with the smallest share of its quota left. Shadows decide nothing. It is nil
// when there are no other verdicts.
func (d *Decision) Binding() *Verdict {
	var best *Verdict
	for i := range d.n {
		if v := d.At(i); !v.Shadow && (best == nil || v.tighter(best)) {
			best = v
		}
	}
	return best
}

func (v *Verdict) tighter(than *Verdict) bool {
	if v.Reason != than.Reason {
		return v.Reason > than.Reason // CostTooLarge, then OverLimit, then TooManyInFlight, then Allowed
	}
	if v.Reason != Allowed {
		return v.RetryAfter > than.RetryAfter
	}
	return float64(v.Remaining)*float64(than.Policy.Quota()) < float64(than.Remaining)*float64(v.Policy.Quota())
}

// judged fills in what a rule says about the charge.
func (v *Verdict) judged(j judgement) {
	v.Reason, v.RetryAfter, v.Delay, v.OverSoft = j.reason, j.retryAfter, j.delay, j.overSoft
}

// stands fills in where the balance stands.
func (v *Verdict) stands(o outlook) {
	v.Remaining, v.NextAfter, v.ResetAfter = o.remaining, o.nextAfter, o.resetAfter
}

// Delay returns how long an admitted charge must wait for its turn: the longest delay among the verdicts. Nobody waits for a
// shadow.
func (d *Decision) Delay() time.Duration {
	var longest time.Duration
	for i := range d.n {
		if v := d.At(i); !v.Shadow {
			longest = max(longest, v.Delay)
		}
	}
	return longest
}
