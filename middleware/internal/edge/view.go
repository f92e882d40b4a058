package edge

import (
	"log/slog"
	"net/http"
	"slices"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware/internal/identity"
	"github.com/spillway-go/spillway/shed"
)

// view is what an Edge has made of one configuration of its shedder. It is never changed but replaced whole, so that a request
// which looks it up once is seen by one configuration.
type view struct {
	who     *identity.Resolver
	routes  *routes
	slow    bodies
	answers answers

	evadable bool // whether made-up API keys evade the limits

	hidden, html bool   // whether quotas are not shown, and whether browsers get pages
	legacy       Legacy // beside the fields of the draft

	bodies, responses, messages bool              // what limits count beside requests
	byHand                      bool              // whether limits count what only the program can tell
	partly                      bool              // whether limits count only successes or only failures
	units                       map[string]string // of policies that do not count requests, as RateLimit-Policy spells them
}

func newView(cfg shed.Config, principals bool) (*view, error) {
	who, err := identity.New(cfg.Clients, principals, shares(cfg.Store))
	if err != nil {
		return nil, err
	}
	routes, err := newRoutes(cfg.Routes)
	if err != nil {
		return nil, err
	}
	legacy, err := legacyOf(cfg.Answers.Legacy)
	if err != nil {
		return nil, err
	}
	v := &view{
		who: who, routes: routes, slow: newBodies(cfg.Bodies), answers: answers{keyHeader: who.TakesAPIKeys()},
		evadable: evadable(who, cfg.Limits), hidden: cfg.Answers.HideRateLimit, html: !cfg.Answers.NoHTML, legacy: legacy,
	}
	if cfg.Shadow { // nobody is turned away
		v.slow = bodies{}
	}
	for _, l := range cfg.Limits {
		v.counts(l)
	}
	return v, nil
}

// counts notes what l counts.
func (v *view) counts(l shed.Limit) {
	unit := l.Unit
	switch l.Unit {
	case "", shed.Requests:
		unit = ""
	case shed.RequestBytes:
		v.bodies, unit = true, "content-bytes"
	case shed.ResponseBytes:
		v.responses, unit = true, "content-bytes"
	case shed.Messages:
		v.messages = true
	default:
		v.byHand = true
	}
	if _, ok := l.Rule.(limits.InFlight); ok {
		unit = "concurrent-requests"
	}
	if unit != "" {
		if v.units == nil {
			v.units = map[string]string{}
		}
		v.units[l.Name] = unit
	}
	v.partly = v.partly || l.Count != shed.CountAll
}

// shares reports whether other processes may use the balances in store too.
func shares(store limits.Store) bool {
	_, own := store.(*limits.Memory)
	return store != nil && !own
}

func (v *view) route(hints Hints, r *http.Request) *route {
	if hints.Route != "" {
		return v.routes.named(hints.Route)
	}
	if route := v.routes.find(r); route != unmatched || hints.Label == "" {
		return route
	}
	return v.routes.named(hints.Label)
}

// follow keeps the view up to date with the shedder's configuration.
func (e *Edge) follow(principals bool, logger *slog.Logger) error {
	return e.shedder.Follow(func(cfg shed.Config) (func(), error) {
		next, err := newView(cfg, principals)
		if err != nil {
			return nil, err
		}
		return func() {
			if before := e.view.Swap(next); next.evadable && (before == nil || !before.evadable) {
				next.warn(logger)
			}
		}, nil
	})
}

// evadable reports whether limits believe API keys that nobody verifies, and none per address holds whatever the key says.
func evadable(who *identity.Resolver, all []shed.Limit) bool {
	believes := func(l shed.Limit) bool { return l.Per == shed.PerClient || l.Per == shed.PerClientRoute }
	return who.Labels() && slices.ContainsFunc(all, believes) && !slices.ContainsFunc(all, holdsByAddress)
}

// holdsByAddress reports whether l bounds all that an address may ask for over time.
func holdsByAddress(l shed.Limit) bool {
	if _, ok := l.Rule.(limits.InFlight); ok {
		return false
	}
	byAddress := l.Per == shed.PerIP || l.Per == shed.PerIPPrefix
	requests := l.Unit == "" || l.Unit == shed.Requests
	return byAddress && requests && l.Count == shed.CountAll && !l.Shadow && len(l.Routes) == 0 && len(l.For) == 0
}

// warn says that whoever makes up keys evades the limits.
func (v *view) warn(logger *slog.Logger) {
	if logger == nil {
		logger = slog.Default()
	}
	logger.Warn("spillway: API keys are only labels: whoever makes one up is a new client with a quota of its own. List the keys, or add a limit per ip",
		"header", v.who.TakesAPIKeys(), "file", "clients.api_keys_file", "go", "shed.Clients.APIKeys")
}

// Identify tells who sent r, for who has no principals.
func (e *Edge) Identify(r *http.Request) identity.Identity { return e.view.Load().who.Identify(r, "") }
