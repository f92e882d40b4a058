package echomw

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

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

	// Classify says what the final status of a handler that has returned means for the concurrency limit; nil means
	// middleware.Classify of this module. It is not asked about panics, upgrades, event streams, and clients that went away.
	Classify func(r *http.Request, status int) shed.Outcome

	// Pumpkin's revision goes out in the Pumpkin-Rev field of every response, so that clients know when to poll;
	// pumpkin.Pumpkin is one. Nil means no such field.
	Pumpkin interface{ Rev() string }

	// HideRateLimit leaves out RateLimit and RateLimit-Policy, where quotas are nobody's business. Retry-After stays.
	HideRateLimit bool
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
		Shedder: cfg.Shedder, Principals: cfg.Principal != nil, Classify: cfg.Classify, Pumpkin: cfg.Pumpkin,
		HideRateLimit: cfg.HideRateLimit,
	})
	if err != nil {
		return nil, fmt.Errorf("echomw: %w", err)
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if cfg.Skipper != nil && cfg.Skipper(c) || e.Passes(c.Response(), c.Request()) {
				return next(c)
			}
			visit, err := e.Enter(c.Response().Writer, c.Request(), cfg.hints(c))
			if err != nil {
				return refuse(e, c, err)
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
	err := next(c)
	visit.Finish(c.Request(), statusOf(err))
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
func refuse(e *edge.Edge, c echo.Context, err error) error {
	rejection := e.Rejection(c.Request(), err)
	if rejection == nil {
		c.Response().WriteHeader(edge.StatusGone)
		return nil
	}
	problem := e.Head(c.Response().Header(), c.Request(), rejection)
	return &echo.HTTPError{Code: problem.Status, Message: problem, Internal: rejection}
}
