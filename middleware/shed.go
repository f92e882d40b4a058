package middleware

import (
	"fmt"
	"log/slog"
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

	// Cost returns what a request weighs in limits that count requests; 0 or less means its route's cost. Nil means that always.
	Cost func(*http.Request) int64

	// BeforeAuth is for a middleware in front of the application's authentication, with another one of the same Shedder and with a
	// Principal behind it. It charges only limits that do not ask who the client is (per ip, ip_prefix, route and global) and finds a
	// place for the request; the one behind charges the others, once it is known who asks. So guessing passwords is limited by
	// address, and who is known by name. Without the second middleware limits per client do not hold.
	BeforeAuth bool

	// Settle may change what a request is charged in the end, by its status and whatever the application has noted: end holds what
	// the middleware would settle. Nil leaves that as it is. It is not asked after a panic, and where the client has gone away before
	// anything was said; what was charged then stays.
	Settle func(r *http.Request, status int, end *shed.Ending)

	// Accounts lets handlers use Charge, Pace and SetCost also where no limit has a unit that only they can count. It costs a copy of
	// each request.
	Accounts bool

	// Classify says what the final status of a handler that has returned means for the concurrency limit; nil means
	// Classify, the function. It is not asked about panics, upgrades, event streams, and clients that went away.
	Classify func(r *http.Request, status int) shed.Outcome

	// Pumpkin's revision goes out in the Pumpkin-Rev field of every response, so that clients know when to poll;
	// pumpkin.Pumpkin is one. Nil means no such field.
	Pumpkin Revision

	// HideRateLimit leaves out RateLimit and RateLimit-Policy, where quotas are nobody's business. Retry-After stays.
	HideRateLimit bool

	// Legacy adds the fields from before the draft, for clients that know only those; the zero value adds none. They describe the
	// one limit that is nearest to its end. HideRateLimit leaves them out too.
	Legacy Legacy

	// Render writes refusals instead of the middleware. All fields are set when it is called, and it has to answer with
	// problem.Status. If it writes nothing the middleware does. Nil means problem documents, and pages for browsers.
	Render func(w http.ResponseWriter, r *http.Request, rejection *shed.Rejection, problem Problem)

	// NoHTML answers with the problem document also who asks for HTML.
	NoHTML bool

	// Logger is told at the start, and after a reload, what the configuration leaves open; nil means slog.Default.
	Logger *slog.Logger
}

// Legacy is a spelling of quotas from before there was a draft.
type Legacy = edge.Legacy

// The spellings. Reset is when the quota is whole again; nobody has ever agreed on its unit, so it is part of the name.
const (
	NoLegacy        = edge.NoLegacy
	XRateLimitEpoch = edge.XRateLimitEpoch // X-RateLimit-Limit, -Remaining, -Reset; Reset in seconds since 1970, as GitHub sends it
	XRateLimitDelta = edge.XRateLimitDelta // the same with Reset in seconds from now
	RateLimitDelta  = edge.RateLimitDelta  // RateLimit-Limit, -Remaining, -Reset of the draft's versions up to 06
)

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
		Shedder: cfg.Shedder, Principals: cfg.Principal != nil, BeforeAuth: cfg.BeforeAuth, Accounts: cfg.Accounts,
		Classify: cfg.Classify, Settle: cfg.Settle, Pumpkin: cfg.Pumpkin, HideRateLimit: cfg.HideRateLimit, Legacy: cfg.Legacy,
		NoHTML: cfg.NoHTML, Logger: cfg.Logger,
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
	outer := h.edge.Outer(w)
	if h.edge.Passes(outer) || h.cfg.Skip != nil && h.cfg.Skip(r) {
		h.next.ServeHTTP(w, r)
		return
	}
	var visit edge.Visit
	if err := h.edge.Enter(&visit, w, r, outer, h.cfg.hints(r)); err != nil {
		h.refuse(w, r, err)
		return
	}
	defer visit.Leave() // reads the outcome when it runs: Ignored unless Finish was reached
	h.next.ServeHTTP(visit.Writer, visit.Request)
	visit.Finish(r, 0)
}

// refuse answers, or lets the application do it.
func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	rejection := h.edge.Rejection(r, err)
	if h.cfg.Render != nil && rejection != nil {
		answer := h.edge.Head(w.Header(), r, rejection)
		own := &rendered{ResponseWriter: w}
		if h.cfg.Render(own, r, rejection, answer.Problem); own.wrote {
			return
		}
	}
	h.edge.Refuse(w, r, rejection)
}

// rendered knows whether anything was written.
type rendered struct {
	http.ResponseWriter
	wrote bool
}

func (w *rendered) WriteHeader(status int) {
	w.wrote = w.wrote || status >= 200
	w.ResponseWriter.WriteHeader(status)
}

func (w *rendered) Write(b []byte) (int, error) {
	w.wrote = true
	return w.ResponseWriter.Write(b)
}

func (w *rendered) Unwrap() http.ResponseWriter { return w.ResponseWriter }

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
	if c.Cost != nil {
		hints.Cost = c.Cost(r)
	}
	return hints
}
