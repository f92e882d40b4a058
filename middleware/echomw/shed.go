package echomw

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/middleware/internal/edge"
	"github.com/spillway-go/spillway/shed"
)

// Config says what Shed cannot know by itself. Only Shedder is required.
type Config struct {
	// Skipper tells which requests are none of the middleware's business; nil means that all are. Echo's own
	// middleware.Skipper fits.
	Skipper func(echo.Context) bool

	// Shedder decides. Routes and clients are told apart as its configuration says.
	Shedder *shed.Shedder

	// Principal returns who asks, as the application's authentication further out has found; "" means nobody. It is used
	// where shed.Clients.Identify lists "principal", or lists nothing. Nil means that there is no such authentication.
	Principal func(echo.Context) string

	// Plan returns the name of the client's plan, for limits that have other rules for it; "" means none. Nil means that there
	// are no plans.
	Plan func(echo.Context) string

	// Route returns the name of the route, before patterns are tried; "" means that patterns decide, and after them c.Path().
	// Nil means "" always. It must return the names of a fixed set, never a URL's path.
	Route func(echo.Context) string

	// Cost returns what a request weighs in limits that count requests; 0 or less means its route's cost. Nil means that always.
	Cost func(echo.Context) int64

	// BeforeAuth is for a middleware in front of the application's authentication, with another one of the same Shedder and with a
	// Principal behind it: see middleware.Config of this module.
	BeforeAuth bool

	// Settle may change what a request is charged in the end, by its status: see middleware.Config of this module.
	Settle func(r *http.Request, status int, end *shed.Ending)

	// Accounts lets handlers use middleware.Charge, Pace and SetCost, with the request's context, also where no limit has a unit that
	// only they can count. It costs a copy of each request.
	Accounts bool

	// Classify says what the final status of a handler that has returned means for the concurrency limit; nil means
	// middleware.Classify of this module. It is not asked about panics, upgrades, event streams, and clients that went away.
	Classify func(r *http.Request, status int) shed.Outcome

	// Pumpkin's revision goes out in the Pumpkin-Rev field of every response, so that clients know when to poll;
	// pumpkin.Pumpkin is one. Nil means no such field.
	Pumpkin interface{ Rev() string }

	// HideRateLimit leaves out RateLimit and RateLimit-Policy, where quotas are nobody's business. Retry-After stays.
	HideRateLimit bool

	// Legacy adds the fields from before the draft, for clients that know only those; the zero value adds none. HideRateLimit leaves
	// them out too.
	Legacy middleware.Legacy

	// Render answers refusals instead of Echo's error handling. All fields are set when it is called, and it has to answer with
	// problem.Status; its error goes where errors of handlers go. Nil means an *echo.HTTPError with the problem document as its
	// message, and pages for browsers.
	Render func(c echo.Context, rejection *shed.Rejection, problem middleware.Problem) error

	// NoHTML answers with the problem document also who asks for HTML.
	NoHTML bool

	// Logger is told at the start, and after a reload, what the configuration leaves open; nil means slog.Default.
	Logger *slog.Logger
}

// Shed returns a middleware that lets s decide about every request. It panics if s is nil or if one of its routes has a
// pattern that net/http does not understand; Config.ToMiddleware returns the error instead.
func Shed(s *shed.Shedder) echo.MiddlewareFunc { return ShedWithConfig(Config{Shedder: s}) }

// ShedWithConfig returns a middleware. Like Echo's own it panics on a configuration that cannot work.
func ShedWithConfig(cfg Config) echo.MiddlewareFunc {
	m, err := cfg.ToMiddleware()
	if err != nil {
		panic(err)
	}
	return m
}

// ToMiddleware returns a middleware, or what is wrong with the configuration.
func (cfg Config) ToMiddleware() (echo.MiddlewareFunc, error) {
	e, err := edge.New(edge.Config{
		Shedder: cfg.Shedder, Principals: cfg.Principal != nil, BeforeAuth: cfg.BeforeAuth, Accounts: cfg.Accounts,
		Classify: cfg.Classify, Settle: cfg.Settle, Pumpkin: cfg.Pumpkin, HideRateLimit: cfg.HideRateLimit, Legacy: cfg.Legacy,
		NoHTML: cfg.NoHTML, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("echomw: %w", err)
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			outer := e.Outer(c.Response())
			if e.Passes(outer) || cfg.Skipper != nil && cfg.Skipper(c) {
				return next(c)
			}
			var visit edge.Visit
			if err := e.Enter(&visit, c.Response().Writer, c.Request(), outer, cfg.hints(c)); err != nil {
				return cfg.refuse(e, c, err)
			}
			return run(c, next, &visit)
		}
	}, nil
}

// hints asks the application what it knows about a request.
func (cfg *Config) hints(c echo.Context) edge.Hints {
	hints := edge.Hints{Label: c.Path()}
	if cfg.Principal != nil {
		hints.Principal = cfg.Principal(c)
	}
	if cfg.Plan != nil {
		hints.Plan = cfg.Plan(c)
	}
	if cfg.Route != nil {
		hints.Route = cfg.Route(c)
	}
	if cfg.Cost != nil {
		hints.Cost = cfg.Cost(c)
	}
	return hints
}

// run calls the handler of an admitted request.
func run(c echo.Context, next echo.HandlerFunc, visit *edge.Visit) error {
	defer visit.Leave() // reads the outcome when it runs: Ignored unless Finish was reached
	response := c.Response()
	inner := response.Writer
	response.Writer = visit.Writer
	defer func() {
		if response.Writer == visit.Writer { // somebody further in may have left a writer of their own
			response.Writer = inner
		}
	}()
	r := c.Request()
	if visit.Request != r {
		c.SetRequest(visit.Request)
	}
	err := next(c)
	visit.Finish(r, statusOf(err))
	if visit.Cut() { // what Echo would say to err is not sent any more
		response.Status, response.Committed = http.StatusRequestTimeout, true
	}
	return err
}

// statusOf foretells the status that the error handler is going to send for err; 0 if there is no error.
func statusOf(err error) int {
	if err == nil {
		return 0
	}
	var failure *echo.HTTPError
	if errors.As(err, &failure) {
		return failure.Code
	}
	return http.StatusInternalServerError
}

// refuse hands a refusal to Echo's error handling, fields already set. A client that has gone away is no error of anybody.
func (cfg *Config) refuse(e *edge.Edge, c echo.Context, err error) error {
	rejection := e.Rejection(c.Request(), err)
	if rejection == nil {
		c.Response().WriteHeader(edge.StatusGone)
		return nil
	}
	answer := e.Head(c.Response().Header(), c.Request(), rejection)
	if cfg.Render != nil {
		return cfg.Render(c, rejection, answer.Problem)
	}
	// A page is written here, and what Echo's own handler would send; the error is for those further out, and that handler leaves alone
	// what is committed.
	if !e.Page(c.Response(), c.Request(), answer) && foreseeable(c) {
		write(c, answer)
	}
	return &echo.HTTPError{Code: answer.Problem.Status, Message: answer.Value, Internal: rejection}
}
