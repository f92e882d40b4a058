package shed

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// settings is the configuration as Admit uses it: checked whole, compiled, never changed.
type settings struct {
	config Config
	rules  []*rule
	routes map[string]*route
	other  *route // the default route, for requests that match none
}

// rule is a limit ready to be charged.
type rule struct {
	Limit
	policy *limits.Policy
	leak   limits.Rate // of delayed rules: what one unit of cost takes

	admitted, refused, delayed atomic.Int64
}

// route is a Route with the rules that apply to it.
type route struct {
	Route
	rules    []*rule
	budget   *budget // nil unless long-lived
	refusals refusals
}

// compile checks cfg and makes it ready. Errors name the field as the configuration spells it.
func compile(cfg Config) (*settings, error) {
	s := &settings{config: cfg, routes: make(map[string]*route, len(cfg.Routes))}
	names := make(map[string]bool)
	for i, l := range cfg.Limits {
		r, err := compileLimit(l)
		if err != nil {
			return nil, fmt.Errorf("shed: limits[%d] %q: %w", i, l.Name, err)
		}
		if names[l.Name] {
			return nil, fmt.Errorf("shed: limits[%d] %q: the name is used twice; give each limit its own", i, l.Name)
		}
		names[l.Name] = true
		s.rules = append(s.rules, r)
	}
	for i, r := range cfg.Routes {
		if err := checkRoute(r); err != nil {
			return nil, fmt.Errorf("shed: routes[%d] %q: %w", i, r.Name, err)
		}
		if s.routes[r.Name] != nil {
			return nil, fmt.Errorf("shed: routes[%d] %q: the name is used twice; give each route its own", i, r.Name)
		}
		s.routes[r.Name] = newRoute(r)
	}
	s.other = newRoute(Route{})
	return s, s.assign()
}

// assign gives each route the rules that apply to it.
func (s *settings) assign() error {
	for _, r := range s.rules {
		if len(r.Routes) == 0 {
			for _, route := range s.routes {
				route.rules = append(route.rules, r)
			}
			s.other.rules = append(s.other.rules, r)
			continue
		}
		for _, name := range r.Routes {
			route := s.routes[name]
			switch {
			case route == nil:
				return fmt.Errorf("shed: limit %q: there is no route %q; define it under routes", r.Name, name)
			case route.Exempt:
				return fmt.Errorf("shed: limit %q: route %q is exempt and never charged; drop one of the two", r.Name, name)
			}
			route.rules = append(route.rules, r)
		}
	}
	return nil
}

func compileLimit(l Limit) (*rule, error) {
	r := &rule{Limit: l}
	rated := l.Rule
	switch {
	case l.Rule == nil:
		return nil, errors.New("no rule; give it one, such as limits.TokenBucket")
	case l.Per > Global:
		return nil, fmt.Errorf("unknown scope %d", l.Per)
	case l.MaxWait < 0:
		return nil, fmt.Errorf("max_wait %v is negative; leave it out for 2s", l.MaxWait)
	case l.MaxWait > 0 && l.Excess != Delay:
		return nil, errors.New("max_wait has no meaning without excess: delay")
	}
	if l.Excess == Delay {
		switch d := l.Rule.(type) {
		case limits.LeakyBucket:
			r.leak = d.Leak
		case limits.TokenBucket:
			r.leak = d.Refill
		default:
			return nil, fmt.Errorf("excess: delay works on leaky and token buckets, not on %v", l.Rule)
		}
		rated = limits.Delay{Rule: l.Rule, MaxWait: l.MaxWait}
	}
	policy, err := limits.NewPolicy(l.Name, rated)
	if err != nil {
		return nil, err
	}
	r.policy = policy
	return r, nil
}

func checkRoute(r Route) error {
	switch {
	case r.Name == "":
		return errors.New("a route needs a name")
	case r.Cost < 0:
		return fmt.Errorf("cost %d is negative; leave it out for 1", r.Cost)
	case r.Priority < Sheddable || r.Priority > CriticalPlus:
		return fmt.Errorf("unknown priority %d", r.Priority)
	case r.LongLived < 0:
		return fmt.Errorf("long_lived %d is negative", r.LongLived)
	case r.Exempt && (r.LongLived > 0 || r.Feature != ""):
		return errors.New("an exempt route can be neither long-lived nor a feature")
	}
	return nil
}

func newRoute(r Route) *route {
	if r.Cost == 0 {
		r.Cost = 1
	}
	c := &route{Route: r}
	if r.LongLived > 0 {
		c.budget = &budget{max: r.LongLived}
	}
	return c
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
func (r *rule) step(cost int64) time.Duration {
	hi, lo := bits.Mul64(uint64(cost), uint64(r.leak.Per))
	if hi >= uint64(r.leak.Amount) {
		return 1<<63 - 1
	}
	q, _ := bits.Div64(hi, lo, uint64(r.leak.Amount))
	return time.Duration(min(q, 1<<63-1))
}
