package limits

import (
	"context"
	"time"
)

// Charge asks to take Cost units from the balance that Policy keeps for Key. Every policy has a key space of its own, so
// the same key under two policies is two balances. A negative cost is an error; a cost of 0 looks and takes nothing.
type Charge struct {
	Policy *Policy
	Key    string
	Cost   int64
	// Shadow charges are judged as others are, and taken with the others if they fit; but if they do not fit they are not
	// taken, and the others are. So a rule can be tried on real traffic before it acts.
	Shadow bool
}

// Store keeps balances. Memory is the default; storetest is the suite that every implementation passes. All methods are
// safe for concurrent use.
//
// Most callers want Take alone. Peek is for showing where a client stands, Refund for work that did not happen after all.
//
// The time of a decision is the caller's now (a store shared by several processes may use its own clock instead), floored
// to whole µs. The zero Time asks for the store's own clock, which is often cheaper than time.Now. Within one balance time never runs backwards: an earlier now counts as the latest one seen. Times before
// 1970 count as 1970.
type Store interface {
	// Take charges everything or nothing, atomically: if one policy refuses, no balance is written, not counting shadows. Charges against the
	// same balance add up. A cost of 0 always fits and takes nothing; no charges at all are allowed. A refusal is not
	// an error. The error, if any, says that the store could not decide (the context may be done), or that a charge
	// is malformed: no policy, or a negative cost. Nothing was taken then.
	Take(ctx context.Context, now time.Time, charges []Charge) (Decision, error)

	// Peek answers as Take would and changes nothing.
	Peek(ctx context.Context, now time.Time, charges []Charge) (Decision, error)

	// Refund undoes an admitted Take, exactly once and all of it: each charge gets its cost back, unless its balance has
	// been full since then, for time has already given it back. A balance never goes above full. Refunding a refusal, a
	// Peek or the zero Decision changes nothing. It must not be called twice for one decision.
	//
	// So over any span that begins with a full balance, what was admitted less what was refunded is at most the capacity
	// and what the rate brings in that span.
	Refund(ctx context.Context, now time.Time, d Decision) error
}
