package shed

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spillway-go/spillway/shed/internal/check"
)

// settings is the configuration as Admit uses it: checked whole, compiled, never changed.
type settings struct {
	config Config
	rules  []*rule
	routes map[string]*route
	other  *route // the default route, for requests that match none
}

// route is a Route with the rules that apply to it.
type route struct {
	Route
	shadow   bool // nothing about it acts
	rules    []*rule
	counted  []*rule // of rules, those that count what is in flight
	prompt   bool    // there are few rules, and all of them decide at once
	budget   *budget // nil unless long-lived
	lane     *lane   // nil if long-lived
	refusals refusals
}

// compile checks cfg and makes it ready. Errors name the field as the configuration spells it.
func compile(cfg Config) (*settings, error) {
	s := &settings{config: cfg, routes: make(map[string]*route, len(cfg.Routes))}
	names := make(map[string]bool)
	if err := checkReserve(cfg.Reserve); err != nil {
		return nil, err
	}
	if err := cfg.Bodies.check(); err != nil {
		return nil, err
	}
	if err := cfg.Clients.check(); err != nil {
		return nil, fmt.Errorf("shed: clients: %w", err)
	}
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
	for _, r := range s.routes {
		r.shadow = r.Shadow || cfg.Shadow
	}
	s.other.shadow = cfg.Shadow
	if err := s.assign(); err != nil {
		return nil, err
	}
	if err := s.scope(); err != nil {
		return nil, err
	}
	for _, r := range s.routes {
		r.split()
	}
	s.other.split()
	return s, nil
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
			case slices.Contains(route.rules, r):
				return fmt.Errorf("shed: limit %q: route %q is named twice; name it once", r.Name, name)
			}
			route.rules = append(route.rules, r)
		}
	}
	return nil
}

// scope tells the lanes of routes that health has signals about, and refuses signals about routes that nothing could be done
// for: a dependency scoped to a route that does not exist protects nothing.
func (s *settings) scope() error {
	for _, name := range s.config.Health.Routes() {
		route := s.routes[name]
		switch {
		case route == nil:
			return fmt.Errorf("shed: health: a signal is scoped to route %q, which does not exist; define it under routes", name)
		case route.Exempt:
			return fmt.Errorf("shed: health: a signal is scoped to route %q, which is exempt and never shed; drop one of the two", name)
		case route.lane == nil:
			return fmt.Errorf("shed: health: a signal is scoped to route %q, which is long-lived and outside the limit; drop one of the two", name)
		}
		route.lane.scoped = true
	}
	return nil
}

// lanes returns those of all routes. With a single route there is nobody to protect from it, and none is watched.
func (s *settings) lanes() []*lane {
	var all []*lane
	for _, r := range s.config.Routes {
		if l := s.routes[r.Name].lane; l != nil {
			all = append(all, l)
		}
	}
	if len(all) == 0 {
		s.other.lane = nil
		return nil
	}
	return append(all, s.other.lane)
}

// check refuses what would let anybody be anybody, or nobody be known. The rest is the middleware's to judge, which knows the program.
func (c *Clients) check() error {
	switch {
	case check.Everybody(c.TrustedProxies):
		return errors.New("trusted_proxies are a quarter of all addresses or more, so that clients could forge their own; list the addresses of your proxies")
	case check.KeyHeader(c.APIKeyHeader) != "":
		return fmt.Errorf("api_key_header %s %s; use a header of its own", c.APIKeyHeader, check.KeyHeader(c.APIKeyHeader))
	case check.AddressHeader(c.Forwarded) != "":
		return fmt.Errorf("forwarded: %s %s; use the header that your proxy writes the address into", c.Forwarded, check.AddressHeader(c.Forwarded))
	}
	return nil
}

func checkRoute(r Route) error {
	switch {
	case r.Name == "":
		return errors.New("a route needs a name")
	case check.Pattern(r.Match) != "":
		return fmt.Errorf("match %q matches no request: %s; write it like net/http does, such as \"POST /orders/{id}\"", r.Match, check.Pattern(r.Match))
	case check.CostHeader(r.CostHeader) != "":
		return fmt.Errorf("cost_header %s %s; use a field of its own", r.CostHeader, check.CostHeader(r.CostHeader))
	case r.Cost < 0:
		return fmt.Errorf("cost %d is negative; leave it out for 1", r.Cost)
	case r.Priority < Sheddable || r.Priority > CriticalPlus:
		return fmt.Errorf("unknown priority %d", r.Priority)
	case r.LongLived < 0:
		return fmt.Errorf("long_lived %d is negative", r.LongLived)
	case r.Deadline < 0 || r.Deadline > longestMaxWait:
		return fmt.Errorf("deadline %v is not between 0 and %v; leave it out for none", r.Deadline, longestMaxWait)
	case r.Exempt && (r.LongLived > 0 || r.Feature != "" || r.Deadline > 0 || r.Shadow):
		return errors.New("an exempt route can be neither long-lived nor a feature nor a shadow, and has no deadline")
	case r.LongLived > 0 && r.Deadline > 0:
		return errors.New("a long-lived route has no deadline; its requests never wait")
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
	} else if !r.Exempt {
		c.lane = &lane{name: r.Name}
	}
	return c
}
