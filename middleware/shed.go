package middleware

import (
	"fmt"
	"net/http"

	"github.com/spillway-go/spillway/middleware/internal/edge"
	"github.com/spillway-go/spillway/shed"
)

// Config says what Shed cannot know by itself. Only Shedder is required.
type Config struct {
	// Shedder decides. Routes and clients are told apart as its configuration says.
	Shedder *shed.Shedder

	// Skip tells which requests are none of the middleware's business; nil means that all are.
	Skip func(*http.Request) bool

	// Principal returns who asks, as the application's authentication further out has found; "" means nobody. It is used
	// where shed.Clients.Identify lists "principal", or lists nothing. Nil means that there is no such authentication.
	Principal func(*http.Request) string

	// Plan returns the name of the client's plan, for limits that have other rules for it; "" means none. Nil means that there
	// are no plans.
	Plan func(*http.Request) string

	// Route returns the name of the route, before patterns are tried; "" means that patterns decide. Nil means "" always.
	// It must return the names of a fixed set, never a path.
	Route func(*http.Request) string

	// Classify says what the final status of a handler that has returned means for the concurrency limit; nil means
	// Classify, the function. It is not asked about panics, upgrades, event streams, and clients that went away.
	Classify func(r *http.Request, status int) shed.Outcome

	// Pumpkin's revision goes out in the Pumpkin-Rev field of every response, so that clients know when to poll;
	// pumpkin.Pumpkin is one. Nil means no such field.
	Pumpkin Revision

	// HideRateLimit leaves out RateLimit and RateLimit-Policy, where quotas are nobody's business. Retry-After stays.
	HideRateLimit bool
}

// Revision names the current state of the pumpkin, as "<epoch>.<rev>".
type Revision interface{ Rev() string }

// Problem is the RFC 9457 document that a refusal answers with.
type Problem = edge.Problem

// Classify is the default reading of a handler's status: 503 and 504 are Dropped (something behind is overloaded), other 5xx
// and 429 are Ignored, everything else is a Success.
func Classify(r *http.Request, status int) shed.Outcome { return edge.Classify(r, status) }

// Shed returns a middleware that lets s decide about every request. It panics if s is nil or if one of its routes has a
// pattern that net/http does not understand, as http.ServeMux does; ShedWithConfig returns the error instead.
func Shed(s *shed.Shedder) func(http.Handler) http.Handler {
	wrap, err := ShedWithConfig(Config{Shedder: s})
	if err != nil {
		panic(err)
	}
	return wrap
}

// ShedWithConfig returns a middleware, or what is wrong with the configuration.
func ShedWithConfig(cfg Config) (func(http.Handler) http.Handler, error) {
	e, err := edge.New(edge.Config{
		Shedder: cfg.Shedder, Principals: cfg.Principal != nil, Classify: cfg.Classify, Pumpkin: cfg.Pumpkin,
		HideRateLimit: cfg.HideRateLimit,
	})
	if err != nil {
		return nil, fmt.Errorf("middleware: %w", err)
	}
	return func(next http.Handler) http.Handler { return &handler{e, cfg, next} }, nil
}

// handler is one wrapped handler.
type handler struct {
	edge *edge.Edge
	cfg  Config
	next http.Handler
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.cfg.Skip != nil && h.cfg.Skip(r) || h.edge.Passes(w, r) {
		h.next.ServeHTTP(w, r)
		return
	}
	visit, err := h.edge.Enter(w, r, h.cfg.hints(r))
	if err != nil {
		h.edge.Refuse(w, r, err)
		return
	}
	defer visit.Leave() // reads the outcome when it runs: Ignored unless Finish was reached
	h.next.ServeHTTP(visit.Writer, r)
	visit.Finish(r, 0)
}

// hints asks the application what it knows about r.
func (c *Config) hints(r *http.Request) (hints edge.Hints) {
	if c.Principal != nil {
		hints.Principal = c.Principal(r)
	}
	if c.Plan != nil {
		hints.Plan = c.Plan(r)
	}
	if c.Route != nil {
		hints.Route = c.Route(r)
	}
	return hints
}
