package shed

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// Priority says how much a route matters while there is not room for all. The zero value is Critical.
type Priority int8

// The four priorities, from the first to be shed to the last.
const (
	Sheddable     Priority = -2 // background work, prefetching: goes first
	SheddablePlus Priority = -1 // can be retried later without anybody noticing
	Critical      Priority = 0  // what users wait for; the default
	CriticalPlus  Priority = 1  // what keeps the business alive
)

// String returns the word used in the configuration file and in metrics.
func (p Priority) String() string {
	switch p {
	case Sheddable:
		return "sheddable"
	case SheddablePlus:
		return "sheddable_plus"
	case Critical:
		return "critical"
	case CriticalPlus:
		return "critical_plus"
	}
	return "unknown"
}

// Request is what Admit needs to know about a piece of work: values only, nothing of HTTP.
type Request struct {
	// Client names who asks, for rules per client. Empty means that nobody is known: rules per client then refuse with
	// NoIdentity, for a shared nameless balance would be a trap.
	Client string
	// Anonymous says that nobody is known and that this is all right: rules per client are skipped. Rules per address,
	// route and process still hold.
	Anonymous bool
	// IP is the caller's address, for rules per ip and per ip_prefix; the zero Addr means unknown.
	IP netip.Addr
	// Route is the name of a configured route; an unknown or empty name is the default route.
	Route string
	// Exempt says that this one request is treated as if its route were exempt: a CORS preflight, say.
	Exempt bool
	// Cost is what the request weighs; 0 means the route's cost.
	Cost int64
	// By says how the client is known, for Limit.For: "principal", "api_key", "ip", or empty.
	By string
	// Plan names the client's plan, for Limit.Plans; empty, or a plan that a limit does not know, means its own rule.
	Plan string
	// Stage says which limits are charged now, where who asks is found out in two steps; the zero value is WholeStage.
	Stage Stage
	// Amounts says what the request weighs in other units than requests, as far as that is known.
	Amounts []Amount
	// Await, if not nil, waits for what the request must hold no place for, such as its body. It is called when the limits have let
	// the request pass and before the gate is asked; where a limit delays before they are asked, for a turn has to be used when it
	// comes; and not at all where all is a shadow. Its context ends with the request's deadline and with Close. If it fails with a *Rejection,
	// which it has made for this request, the request is refused with that; any other error says that the caller has gone away or, if it
	// is the context's, that there is no more time.
	Await func(context.Context) error
}

// Amount is so much of a unit.
type Amount struct {
	Unit string
	N    int64
}

// check refuses what is no request.
func (r *Request) check() error {
	if r.Cost < 0 {
		return fmt.Errorf("shed: the cost %d of a request is negative; leave it out for the route's", r.Cost)
	}
	return nil
}

// Reason is the one word for why a request was refused: metric label, log field and the "reason" member of the problem
// document alike.
type Reason string

// All reasons. The first three answer 429 on HTTP, NoIdentity 403, BodyTooSlow 408, the rest 503.
const (
	OverLimit        Reason = "over_limit"        // a rule's quota is used up
	CostTooLarge     Reason = "cost_too_large"    // above a rule's capacity: waiting cannot help
	InFlight         Reason = "in_flight"         // too many requests of this client at once
	NoIdentity       Reason = "no_identity"       // nobody is known and the policy is to refuse
	FeatureOff       Reason = "feature_off"       // the pumpkin has switched the route's feature off
	Overloaded       Reason = "overloaded"        // no room, and no place to wait
	QueueFull        Reason = "queue_full"        // the line is full
	WaitExpired      Reason = "wait_expired"      // waited as long as allowed without getting a turn
	Displaced        Reason = "displaced"         // gave way to somebody more important
	Deadline         Reason = "deadline"          // could not be served before the caller's deadline
	StoreUnavailable Reason = "store_unavailable" // the store could not decide and the rule fails closed
	BodyTooSlow      Reason = "body_too_slow"     // the body did not come
)

// Rejection is the error that Admit returns for a refusal. It is immutable and may be shared between callers.
type Rejection struct {
	Reason Reason
	// Rule is the name of the limit that refused, for OverLimit, CostTooLarge, InFlight and, where it is known,
	// StoreUnavailable.
	Rule string
	// Route is the name of the route.
	Route string
	// RetryAfter is how long to wait before asking again: exact for a rule, an estimate with jitter for the gate, zero
	// where waiting cannot help.
	RetryAfter time.Duration
	// Feature and Words are set for FeatureOff: what is off, and what the banner tells people.
	Feature, Words string
	// Verdicts is what all rules said, for the RateLimit headers; nil when no rule refused.
	Verdicts []limits.Verdict
}

// Error says what was refused and why.
func (r *Rejection) Error() string {
	s := "shed: refused: " + string(r.Reason)
	if r.Rule != "" {
		s += " by rule " + r.Rule
	}
	if r.Feature != "" {
		s += " (" + r.Feature + ")"
	}
	if r.RetryAfter > 0 {
		s += ", retry after " + r.RetryAfter.String()
	}
	return s
}

// Outcome says how admitted work ended, for the concurrency limit.
type Outcome uint8

// The three ends of a permit. The zero value is Ignored, so that a panic on the way to classification neither leaks the
// permit nor teaches the estimate anything.
const (
	Ignored Outcome = iota // says nothing about capacity: cancelled, upgraded, streamed, failed fast
	Success                // a latency sample
	Dropped                // the work failed because something behind us is overloaded
)

// String returns the word used in metrics.
func (o Outcome) String() string {
	switch o {
	case Success:
		return "success"
	case Dropped:
		return "dropped"
	}
	return "ignored"
}
