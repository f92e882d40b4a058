package limits

import "time"

// Reason is the one word for why a decision came out as it did. The same word is the metric label, the log field and the
// "reason" member of the problem document. The zero value is Allowed.
type Reason uint8

// The reasons a rule can give.
const (
	Allowed      Reason = iota // the charge fits
	OverLimit                  // the charge does not fit now; RetryAfter says when it will
	CostTooLarge               // the charge can never fit: it is above the rule's capacity, or that is 0
)

// String returns the word as it appears in metrics, logs and problem documents.
func (r Reason) String() string {
	switch r {
	case Allowed:
		return "allowed"
	case OverLimit:
		return "over_limit"
	case CostTooLarge:
		return "cost_too_large"
	}
	return "unknown"
}

// Verdict is what one policy says about one charge. All durations are relative to the decision's own time and are rounded
// up, so that who waits that long is never early.
type Verdict struct {
	Policy *Policy
	Key    string
	Cost   int64

	// Remaining is what could still be taken at once, in whole units, after this decision.
	Remaining int64
	// RetryAfter is how long until this very cost fits, if nobody else takes anything. Zero when it was allowed, and
	// when waiting cannot help (CostTooLarge).
	RetryAfter time.Duration
	// NextAfter is how long until Remaining next grows by one; zero when it is full.
	NextAfter time.Duration
	// ResetAfter is how long until the balance is full again; zero when it is full.
	ResetAfter time.Duration
	// Delay is how long the charge must wait for its turn; only the Delay rule gives one.
	Delay time.Duration

	Reason Reason
}

// inline is how many verdicts a Decision holds without allocating.
const inline = 4

// Decision is the answer to one Take or Peek: a verdict for each charge, in the order of the charges. It is a plain
// value, needs no allocation for up to four charges, and carries what Refund needs to undo it.
// The zero value is the decision about no charges: refused, with no verdicts.
type Decision struct {
	// Allowed tells whether every charge fits. If it is false nothing at all was taken.
	Allowed bool

	n     int
	taken int64 // the store's time of the decision, in µs since the Unix epoch
	few   [inline]Verdict
	many  []Verdict // all verdicts, when there are more than inline
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
// before all others), of an admission the one with the smallest share of its quota left. It is nil when there are no
// verdicts.
func (d *Decision) Binding() *Verdict {
	var best *Verdict
	for i := range d.n {
		if v := d.At(i); best == nil || v.tighter(best) {
			best = v
		}
	}
	return best
}

func (v *Verdict) tighter(than *Verdict) bool {
	if v.Reason != than.Reason {
		return v.Reason > than.Reason // CostTooLarge, then OverLimit, then Allowed
	}
	if v.Reason != Allowed {
		return v.RetryAfter > than.RetryAfter
	}
	return float64(v.Remaining)*float64(than.Policy.Quota()) < float64(than.Remaining)*float64(v.Policy.Quota())
}

// Delay returns how long an admitted charge must wait for its turn: the longest delay among the verdicts.
func (d *Decision) Delay() time.Duration {
	var longest time.Duration
	for i := range d.n {
		longest = max(longest, d.At(i).Delay)
	}
	return longest
}
