package shed

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// rule is a limit ready to be charged.
type rule struct {
	Limit
	policy  *limits.Policy
	plans   map[string]*limits.Policy // under the same name, so that a change of plan keeps what was used
	counted bool                      // counts what is in flight

	*tally
}

// tally counts what a limit has decided, under all definitions it has had.
type tally struct {
	admitted, refused, delayed, overSoft, shadowed atomic.Int64

	units   atomic.Int64 // charged, of other units than requests
	paced   atomic.Int64 // how often these had to wait
	settled atomic.Int64 // given back, for work that came to less
}

// identities are the ways in which a client can be known, for Limit.For.
var identities = []string{"principal", "api_key", "ip"}

func compileLimit(l Limit) (*rule, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	r := &rule{Limit: l, tally: new(tally)}
	_, r.counted = l.Rule.(limits.InFlight)
	var err error
	if r.policy, err = l.policy(l.Rule); err != nil {
		return nil, err
	}
	for _, plan := range slices.Sorted(maps.Keys(l.Plans)) {
		if r.plans == nil {
			r.plans = make(map[string]*limits.Policy, len(l.Plans))
		}
		if _, counted := l.Plans[plan].(limits.InFlight); counted != r.counted {
			return nil, fmt.Errorf("plans: %q: only all of a limit's rules can count what is in flight; make two limits", plan)
		}
		if r.plans[plan], err = l.policy(l.Plans[plan]); err != nil {
			return nil, fmt.Errorf("plans: %q: %w", plan, err)
		}
	}
	return r, nil
}

func (l *Limit) check() error {
	switch {
	case l.Rule == nil:
		return errors.New("no rule; give it one, such as limits.TokenBucket")
	case l.Per > Global:
		return fmt.Errorf("unknown scope %d", l.Per)
	case l.SubBuckets != 0 && l.Per != Global:
		return errors.New("sub-buckets divide one balance that all ask about; use per: global, or leave sub_buckets out")
	case l.MaxWait < 0:
		return fmt.Errorf("max_wait %v is negative; leave it out for 2s", l.MaxWait)
	case l.MaxWait > 0 && l.Excess != Delay:
		return errors.New("max_wait has no meaning without excess: delay")
	case len(l.Plans) > 0 && l.Per != PerClient && l.Per != PerClientRoute:
		return errors.New("plans need a balance that belongs to one client; use per: client or per: client_route")
	case !isWord(l.Unit):
		return fmt.Errorf("unit %q is no word; use small letters and underscores, such as request_bytes", l.Unit)
	case l.MinSize < 0:
		return fmt.Errorf("min_size %d is negative; leave it out for messages of any size", l.MinSize)
	case l.MinSize > 0 && l.Unit != Messages:
		return errors.New("min_size has no meaning without unit: messages")
	case l.Count > CountFailures:
		return fmt.Errorf("unknown count %d", l.Count)
	case l.Count != CountAll && (!l.countsRequests() || l.Excess == Delay):
		return errors.New("count: successes and count: failures are for limits on requests that reject; drop the unit and the delay")
	case l.Shadow && l.Excess == Delay:
		return errors.New("a shadow cannot delay; use excess: reject to see what it would not let pass at once")
	}
	for i, how := range l.For {
		switch {
		case !slices.Contains(identities, how):
			return fmt.Errorf("for: clients are never identified by %q; use %s", how, strings.Join(identities, ", "))
		case slices.Contains(l.For[:i], how):
			return fmt.Errorf("for: %s is in the list twice; keep one", how)
		}
	}
	if l.Strict && l.OnFailure != limits.AsTheStore && l.OnFailure != limits.Closed {
		return fmt.Errorf("a strict limit cannot be %v while its store fails; leave on_failure out, or strict", l.OnFailure)
	}
	if _, counted := l.Rule.(limits.InFlight); counted && (l.Strict || l.OnFailure != limits.AsTheStore) {
		return errors.New("what is in flight is counted in this process, whose memory does not fail; leave on_failure and guarantee out")
	}
	if l.Strict && l.Sharing > limits.SharedExactly {
		return fmt.Errorf("a strict limit is counted before it is spent, and not shared by %v; leave sharing out, or strict", l.Sharing)
	}
	if _, counted := l.Rule.(limits.InFlight); counted && !l.countsRequests() {
		return fmt.Errorf("what is in flight are requests, not %s; leave the unit out", l.Unit)
	} else if counted && l.Count != CountAll {
		return errors.New("what is in flight ends by itself, however it ends; leave the count out")
	}
	return nil
}

func isWord(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// policy compiles one of the limit's rules.
func (l *Limit) policy(rule limits.Rule) (*limits.Policy, error) {
	if l.Excess == Delay {
		switch rule.(type) {
		case limits.LeakyBucket, limits.TokenBucket:
		default:
			return nil, fmt.Errorf("excess: delay works on leaky and token buckets, not on %v", rule)
		}
		rule = limits.Delay{Rule: rule, MaxWait: l.MaxWait}
	}
	if l.Sharing > limits.SharedExactly {
		switch rule.(type) {
		case limits.LeakyBucket, limits.TokenBucket:
		default:
			return nil, fmt.Errorf("sharing by %v works on leaky and token buckets that refuse, not on %v; leave sharing out", l.Sharing, rule)
		}
	}
	options := []limits.Option{limits.WhenStoreFails(l.OnFailure), limits.Shared(l.Sharing), limits.InSubBuckets(l.SubBuckets)}
	if l.Strict {
		options = append(options, limits.Strict())
	}
	return limits.NewPolicy(l.Name, rule, options...)
}

// countsRequests tells whether every request is charged its cost.
func (l *Limit) countsRequests() bool { return l.Unit == "" || l.Unit == Requests }

// amount returns what the rule charges for req, and whether that is known yet.
func (r *rule) amount(req *Request, cost int64) (n int64, known bool) {
	if r.countsRequests() {
		return cost, true
	}
	for _, a := range req.Amounts {
		if a.Unit == r.Unit {
			return a.N, true
		}
	}
	return 0, false
}

// count notes n units that were charged, where the rule does not count requests.
func (r *rule) count(n int64) {
	if !r.countsRequests() {
		r.units.Add(n)
	}
}

// appliesTo tells whether the rule is for clients that are known in the way of req.
func (r *rule) appliesTo(req *Request) bool { return len(r.For) == 0 || slices.Contains(r.For, req.By) }

// in returns the policy for clients of a plan.
func (r *rule) in(plan string) *limits.Policy {
	if p := r.plans[plan]; p != nil {
		return p
	}
	return r.policy
}

// key returns the name of the balance that r charges for req, and whether there is one: rules per client and per address
// need to know whom they count.
func (r *rule) key(route *route, req *Request) (key string, ok bool) {
	switch r.Per {
	case PerClient:
		return req.Client, req.Client != ""
	case PerClientRoute:
		// The length in front keeps crafted names from meeting each other's balances.
		return strconv.Itoa(len(route.Name)) + ":" + route.Name + req.Client, req.Client != ""
	case PerIP:
		return req.IP.String(), req.IP.IsValid()
	case PerIPPrefix:
		width := 24
		if req.IP.Is6() {
			width = 48
		}
		prefix, err := req.IP.Prefix(width)
		return prefix.String(), err == nil
	case PerRoute:
		return route.Name, true
	}
	return "", true // Global
}

// step is how long cost occupies a delayed rule, rounded down: who moves up by it in a line is never early.
func step(policy *limits.Policy, cost int64) time.Duration {
	var leak limits.Rate // what one unit of cost takes
	if d, ok := policy.Rule().(limits.Delay); ok {
		switch d := d.Rule.(type) {
		case limits.LeakyBucket:
			leak = d.Leak
		case limits.TokenBucket:
			leak = d.Refill
		}
	}
	hi, lo := bits.Mul64(uint64(cost), uint64(leak.Per))
	if hi >= uint64(leak.Amount) {
		return 1<<63 - 1
	}
	q, _ := bits.Div64(hi, lo, uint64(leak.Amount))
	return time.Duration(min(q, 1<<63-1))
}
