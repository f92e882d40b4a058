package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// Run checks every promise of limits.Store, each on a store of its own that open returns. Open may use t to clean up; the
// store must be empty, and must have room for a thousand keys.
func Run(t *testing.T, open func(t *testing.T) limits.Store) {
	t.Helper()
	for _, l := range laws {
		t.Run(l.name, func(t *testing.T) {
			if err := l.holds(open(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// law is one promise. Holds returns what is wrong, so that stores with a flaw can be tried too.
type law struct {
	name  string
	holds func(limits.Store) error
}

// laws lists the promises in the order in which a new store best gets them right.
var laws = []law{
	{"a capacity passes at once and the rate after that", bucketExample},
	{"a refusal writes nothing", refusalWritesNothing},
	{"several charges are made or none", allOrNothing},
	{"charges on one balance add up", chargesAddUp},
	{"the binding verdict is the one that refuses for longest", bindingIsLongest},
	{"what can never fit is refused without a time", neverFits},
	{"a negative cost is an error and gives nothing", negativeCost},
	{"a done context takes nothing", doneContext},
	{"a peek answers as a take and changes nothing", peekChangesNothing},
	{"policies and keys do not touch", balancesAreApart},
	{"a policy built anew keeps its balances", rebuiltPolicy},
	{"a refund gives back exactly what was taken", refundIsExact},
	{"a refund never mints", refundNeverMints},
	{"a clock that steps mints nothing and locks nobody out", clockSteps},
	{"RetryAfter, NextAfter and ResetAfter are exact", waitsAreExact},
	{"rates are exact for as long as one looks", ratesAreExact},
	{"never more than allowed and never less than promised", boundsHold},
	{"turns are exact, in order and bounded", turnsAreExact},
	{"fixed windows begin on the clock", fixedWindowExample},
	{"a sliding log holds over spans of any phase", slidingLogHolds},
	{"a sliding window weighs the window before", slidingWindowExample},
	{"a sliding window errs by no more than it says", slidingWindowErrs},
	{"a burst makes debt and pays it", burstExample},
	{"a total holds over every run of periods", burstTotal},
	{"bursts are bounded over every run of periods, from both sides", burstBounds},
	{"a refund makes it as if a burst had not been", burstRefunds},
	{"a shadow decides nothing and is charged if it fits", shadowDecidesNothing},
	{"a rule of another kind keeps what was used", changedKind},
	{"of many at once exactly as many pass as may", exactlyOnce},
	{"charges that cross neither deadlock nor leak", crossingCharges},
	{"random transcripts agree with the exact model", transcriptsAgree},
}

// start is when most checks begin: off the whole second, so that nothing holds by being aligned.
var start = time.Date(2026, 3, 29, 1, 59, 58, 123_456_000, time.UTC)

// client drives one store and remembers the first thing that went wrong, so that checks read as a story.
type client struct {
	store limits.Store
	now   time.Time
	err   error
}

func newClient(s limits.Store) *client { return &client{store: s, now: start} }

// policy builds a policy that the suite knows to be right.
func policy(name string, r limits.Rule) *limits.Policy {
	p, err := limits.NewPolicy(name, r)
	if err != nil {
		panic(err) // a mistake in the suite itself
	}
	return p
}

func charge(p *limits.Policy, key string, cost int64) limits.Charge {
	return limits.Charge{Policy: p, Key: key, Cost: cost}
}

// wait moves the client's time, back if d is negative.
func (c *client) wait(d time.Duration) { c.now = c.now.Add(d) }

// failf remembers what is wrong, unless something was before.
func (c *client) failf(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("at %v: "+format, append([]any{c.now.Sub(start)}, args...)...)
	}
}

func (c *client) take(charges ...limits.Charge) limits.Decision {
	d, err := c.store.Take(context.Background(), c.now, charges)
	c.note("take", d, err, charges)
	return d
}

func (c *client) peek(charges ...limits.Charge) limits.Decision {
	d, err := c.store.Peek(context.Background(), c.now, charges)
	c.note("peek", d, err, charges)
	return d
}

// look peeks at one charge and returns its verdict.
func (c *client) look(p *limits.Policy, key string, cost int64) limits.Verdict {
	d := c.peek(charge(p, key, cost))
	if d.Len() != 1 {
		return limits.Verdict{}
	}
	return *d.At(0)
}

func (c *client) refund(d limits.Decision) {
	if err := c.store.Refund(context.Background(), c.now, d); err != nil {
		c.failf("refund: %v", err)
	}
}

func (c *client) note(verb string, d limits.Decision, err error, charges []limits.Charge) {
	if err != nil {
		c.failf("%s %s: %v", verb, describe(charges), err)
		return
	}
	if d.Len() != len(charges) {
		c.failf("%s %s: %d verdicts for %d charges", verb, describe(charges), d.Len(), len(charges))
	}
}

// allowed takes and says so if that was refused.
func (c *client) allowed(charges ...limits.Charge) limits.Decision {
	d := c.take(charges...)
	if !d.Allowed {
		c.failf("refused %s, want allowed: %s", describe(charges), tell(d))
	}
	return d
}

// refused takes and says so if that was not refused for the reason.
func (c *client) refused(reason limits.Reason, charges ...limits.Charge) limits.Decision {
	d := c.take(charges...)
	if d.Allowed {
		c.failf("allowed %s, want %v: %s", describe(charges), reason, tell(d))
	} else if b := d.Binding(); b != nil && b.Reason != reason {
		c.failf("refused %s as %v, want %v", describe(charges), b.Reason, reason)
	}
	return d
}

// remaining looks at one balance.
func (c *client) remaining(p *limits.Policy, key string, want int64) {
	if got := c.look(p, key, 0).Remaining; got != want {
		c.failf("remaining %d for %.20q under %q, want %d", got, key, p.Name(), want)
	}
}

// drainedBy takes charges of cost until one is refused, at most limit, and returns how many passed.
func (c *client) drainedBy(p *limits.Policy, key string, cost int64, limit int) int {
	for n := range limit {
		if !c.take(charge(p, key, cost)).Allowed {
			return n
		}
	}
	return limit
}

func describe(charges []limits.Charge) string {
	s := "{"
	for i, c := range charges {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%d of %q for %.20q", c.Cost, c.Policy.Name(), c.Key)
	}
	return s + "}"
}

func tell(d limits.Decision) string {
	s := fmt.Sprintf("allowed=%v", d.Allowed)
	for i := range d.Len() {
		v := d.At(i)
		if v.Shadow {
			s += "; shadow"
		}
		if v.OverSoft {
			s += "; over soft"
		}
		s += fmt.Sprintf("; %v remaining=%d retry=%v next=%v reset=%v delay=%v", v.Reason, v.Remaining, v.RetryAfter, v.NextAfter, v.ResetAfter, v.Delay)
	}
	return s
}

// differ returns the first difference between two decisions about the same charges, or nil.
func differ(got, want limits.Decision) error {
	if got.Allowed != want.Allowed || got.Len() != want.Len() {
		return fmt.Errorf("got  %s\nwant %s", tell(got), tell(want))
	}
	for i := range want.Len() {
		g, w := *got.At(i), *want.At(i)
		if g.Policy != w.Policy || g.Key != w.Key || g.Cost != w.Cost || g.Shadow != w.Shadow {
			return fmt.Errorf("verdict %d is about %d of %v for %q, want %d of %v for %q", i, g.Cost, g.Policy, g.Key, w.Cost, w.Policy, w.Key)
		}
		if g.Remaining != w.Remaining || g.RetryAfter != w.RetryAfter || g.NextAfter != w.NextAfter ||
			g.ResetAfter != w.ResetAfter || g.Delay != w.Delay || g.Reason != w.Reason || g.OverSoft != w.OverSoft {
			return fmt.Errorf("verdict %d\ngot  %s\nwant %s", i, tell(got), tell(want))
		}
	}
	return nil
}
