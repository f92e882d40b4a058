package edge

import (
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
	bodies  bool // whether a limit counts the bytes of bodies
	answers answers
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
	return &view{
		who: who, routes: routes, answers: answers{keyHeader: who.TakesAPIKeys()},
		bodies: slices.ContainsFunc(cfg.Limits, func(l shed.Limit) bool { return l.Unit == shed.RequestBytes }),
	}, nil
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
func (e *Edge) follow(principals bool) error {
	return e.shedder.Follow(func(cfg shed.Config) (func(), error) {
		next, err := newView(cfg, principals)
		if err != nil {
			return nil, err
		}
		return func() { e.view.Store(next) }, nil
	})
}
