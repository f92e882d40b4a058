package limits

import (
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"
)

// Policy is a rule under a name, checked and compiled: what a Charge is made against. It is immutable and safe for
// concurrent use; build it once, with NewPolicy, and keep it.
//
// The name is what identifies balances in a store: one policy name and one key are one balance. So a Policy built anew
// under the same name finds the balances of the old one. If the rule is the same nothing changes for anybody; if it is
// another, what was used stays used, clamped to what the new rule can owe, from the next decision on; it comes back at the
// new rate, counted from the last charge. What was full again under the old rule stays full. Two policies that are to share nothing need two names.
type Policy struct {
	name string
	rule Rule
	math arithmetic

	// home remembers where the Memory that was last asked about this policy keeps its balances, so that the usual
	// case, one store, finds them without looking the name up.
	home atomic.Pointer[edition]

	elsewhere edition // of accounts that no Memory keeps

	onFailure OnFailure
	strict    bool
	sharing   Sharing

	split int
	parts []*Policy
}

// NewPolicy gives rule a name. The name must be printable ASCII, for it travels in HTTP headers and metric labels, and not
// be empty. Errors name the policy, say what is wrong and how to mend it.
func NewPolicy(name string, rule Rule, options ...Option) (*Policy, error) {
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("limits: policy %q: %w", name, err)
	}
	if rule == nil {
		return nil, fmt.Errorf("limits: policy %q: there is no rule; give one, such as limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(5)}", name)
	}
	if reflect.TypeOf(rule).Kind() == reflect.Pointer {
		return nil, fmt.Errorf("limits: policy %q: rules are values; give %v instead of a pointer to it", name, reflect.TypeOf(rule).Elem())
	}
	math, err := rule.compile()
	if err != nil {
		return nil, fmt.Errorf("limits: policy %q: %w", name, err)
	}
	p := &Policy{name: name, rule: rule, math: math, elsewhere: edition{math: math}}
	p.elsewhere.recorder, _ = math.(recorder)
	for _, o := range options {
		o(p)
	}
	if p.onFailure > Closed {
		return nil, fmt.Errorf("limits: policy %q: the choice %d for a store that fails does not exist; use Local, Open or Closed", name, p.onFailure)
	}
	if p.sharing > SharedAsync {
		return nil, fmt.Errorf("limits: policy %q: the way of sharing %d does not exist; use SharedExactly, SharedByLease or SharedAsync", name, p.sharing)
	}
	if err := p.divide(options); err != nil {
		return nil, fmt.Errorf("limits: policy %q: %w", name, err)
	}
	return p, nil
}

func checkName(name string) error {
	if name == "" {
		return errors.New("the name is empty; metrics, headers and refusals need one, such as per-client")
	}
	for _, c := range []byte(name) {
		if c < ' ' || c > '~' {
			return fmt.Errorf("the name contains the byte %#02x; use printable ASCII", c)
		}
	}
	return nil
}

// Name returns the name that identifies the policy and its balances.
func (p *Policy) Name() string { return p.name }

// Rule returns the rule as it was given.
func (p *Policy) Rule() Rule { return p.rule }

// Quota returns how much an untouched key may take at once: the q of a RateLimit-Policy header.
func (p *Policy) Quota() int64 { return p.math.quota() }

// Window returns the time that Quota is about: the w of a RateLimit-Policy header before that is rounded to seconds. For
// buckets it is how long an empty one needs to be full again, rounded up to the rule's tick (µs or ms), and 0 if the
// capacity is; for windows and bursts it is their period.
func (p *Policy) Window() time.Duration { return p.math.window() }

// Meter returns the compiled numbers of a rule whose balance is a draining debt, for stores that compute elsewhere. It
// reports whether the rule is of that kind.
func (p *Policy) Meter() (Meter, bool) {
	m, ok := p.math.(*Meter)
	if !ok {
		return Meter{}, false
	}
	return *m, true
}

// Grain returns the unit of the rule's time: 1 µs, or 1 ms for rules whose numbers would be too large otherwise. Times are
// floored to it.
func (p *Policy) Grain() time.Duration { return p.math.grain() }

// String returns the name and the rule.
func (p *Policy) String() string { return p.name + ": " + p.rule.String() }
