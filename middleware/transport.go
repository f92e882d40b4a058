package middleware

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

// Defaults of a Transport.
const (
	DefaultTransportWait    = 10 * time.Second
	DefaultTransportWaiting = 1000
	DefaultTransportRetries = 2
	DefaultTransportHosts   = 1000
)

// TransportConfig says how calls to other services are made. The zero value is a Transport that only honours what services
// answer: it stays away as long as Retry-After and RateLimit say, holds back calls to a service that refuses most of them, and
// retries within a budget.
type TransportConfig struct {
	// Base makes the calls; nil means http.DefaultTransport.
	Base http.RoundTripper

	// Limits are rules for calls, as for requests that come in; "client" is what Key returns. A limit with Excess: shed.Delay
	// makes calls wait for their turn; the others make them wait for as long as the rule says, if that is within Wait. For a
	// quota that several processes share, give all of them the same Limits and a shared Store.
	Limits []shed.Limit
	// Routes give parts of the outside world a name, for Limits: patterns may begin with a host, "GET api.example.com/v1/".
	Routes []shed.Route
	// Store keeps the balances of Limits; nil means the process's own memory.
	Store limits.Store
	// Observer is told about every decision; nil means nobody. A call that is refused by the service's own wish or by the
	// throttle is a Refused with the reason ServerSaid or Throttled.
	Observer shed.Observer

	// Parallel is how many calls to one service may run at once, until their answers are read or closed; the others wait in the
	// order they came. 0 means any number.
	Parallel int
	// Key names the service that a request goes to: what is throttled, paused and limited together. Nil means scheme and host.
	Key func(*http.Request) string
	// Cost is what a request weighs in Limits; nil means 1.
	Cost func(*http.Request) int64

	// Wait is until when after its beginning a call may wait, before its first and between its attempts; its context may end it
	// sooner. A wait that would take longer is not begun. Zero means DefaultTransportWait, negative that nobody waits.
	Wait time.Duration
	// Waiting is how many calls may wait at once; zero means DefaultTransportWaiting.
	Waiting int
	// Retries is how often a call may be sent again; zero means DefaultTransportRetries, negative never. Only calls that can be
	// repeated are: nothing was done for them (429), or their method or an Idempotency-Key says so, and their body can be had
	// again. Retries are at most ten and a tenth of all calls to a service.
	Retries int
	// KeepCalling switches the throttle off, which holds back calls to a service that accepts less than half of them.
	KeepCalling bool

	// Features tells what is switched off, and Feature which feature a request needs ("" for none): such a call is not made.
	// A pumpkin.Client is one. Nil means that everything is on.
	Features interface{ Blocked(feature string) bool }
	Feature  func(*http.Request) string
}

// Reasons for which a Transport refuses calls, beside those of package shed.
const (
	ServerSaid shed.Reason = "server_said" // the service asked to stay away for longer than the call may wait
	Throttled  shed.Reason = "throttled"   // the service refuses most calls, so most are not made
)

// CallError is why a call was not made. Errors of an http.Client wrap it: use errors.As.
type CallError struct {
	Reason shed.Reason
	// Key is the service, Rule the limit that refused, Feature what is switched off; empty where they do not apply.
	Key, Rule, Feature string
	// RetryAfter is how long to wait before calling again; zero where nobody knows or waiting cannot help.
	RetryAfter time.Duration
	cause      error
}

// Error says what was not called and why.
func (e *CallError) Error() string {
	s := "middleware: no call to " + e.Key + ": " + string(e.Reason)
	if e.Rule != "" {
		s += " by rule " + e.Rule
	}
	if e.Feature != "" {
		s += " (" + e.Feature + ")"
	}
	if e.RetryAfter > 0 {
		s += ", retry after " + e.RetryAfter.String()
	}
	return s
}

// Unwrap returns the *shed.Rejection behind it, if there is one.
func (e *CallError) Unwrap() error { return e.cause }

// Transport is an http.RoundTripper that treats other services as well as Spillway wants to be treated. Make one with
// NewTransport, give it to an http.Client, and end it with Close. It is safe for concurrent use.
type Transport struct {
	cfg     TransportConfig
	shedder *shed.Shedder
	routes  *http.ServeMux // nil without Routes
	names   map[string]string
	hosts   *hosts
	waiting atomic.Int64
	counts  callCounts
	start   time.Time
	random  func(n int64) int64 // from [0, n)
}

// callCounts counts what became of calls.
type callCounts struct{ calls, retries, throttled, paused, blocked atomic.Int64 }

// NewTransport returns a Transport, or what is wrong with the configuration.
func NewTransport(cfg TransportConfig) (*Transport, error) {
	switch {
	case cfg.Parallel < 0:
		return nil, fmt.Errorf("middleware: TransportConfig.Parallel is %d; leave it out for any number", cfg.Parallel)
	case cfg.Waiting < 0:
		return nil, fmt.Errorf("middleware: TransportConfig.Waiting is %d; use a negative Wait if nobody shall wait", cfg.Waiting)
	case cfg.Features != nil && cfg.Feature == nil:
		return nil, errors.New("middleware: TransportConfig.Features needs Feature, which says what a request needs")
	}
	if cfg.Base == nil {
		cfg.Base = http.DefaultTransport
	}
	if cfg.Wait == 0 {
		cfg.Wait = DefaultTransportWait
	}
	if cfg.Waiting == 0 {
		cfg.Waiting = DefaultTransportWaiting
	}
	if cfg.Retries == 0 {
		cfg.Retries = DefaultTransportRetries
	}
	if cfg.Key == nil {
		cfg.Key = func(r *http.Request) string { return r.URL.Scheme + "://" + r.URL.Host }
	}
	t := &Transport{cfg: cfg, start: time.Now(), random: rand.Int64N, hosts: newHosts(cfg.Parallel)}
	if err := t.route(cfg.Routes); err != nil {
		return nil, err
	}
	// How many calls run at once is for Parallel to say: the limit of a service elsewhere is not ours to find, and the health of
	// this process says nothing about it.
	s, err := shed.New(shed.Config{
		Limits: cfg.Limits, Routes: cfg.Routes, Store: cfg.Store, Observer: cfg.Observer,
	}.Ungated())
	if err != nil {
		return nil, fmt.Errorf("middleware: %w", err)
	}
	t.shedder = s
	return t, nil
}

// route prepares the finding of routes.
func (t *Transport) route(routes []shed.Route) (err error) {
	t.names = make(map[string]string)
	for _, r := range routes {
		if r.Match == "" {
			continue
		}
		if t.routes == nil {
			t.routes = http.NewServeMux()
		}
		if err := register(t.routes, r.Match); err != nil {
			return fmt.Errorf("middleware: route %q: match %q: %w; write it as net/http does, e.g. \"GET api.example.com/v1/\"", r.Name, r.Match, err)
		}
		t.names[r.Match] = r.Name
	}
	return nil
}

// register makes an error of what ServeMux panics with.
func register(mux *http.ServeMux, pattern string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	mux.Handle(pattern, http.NotFoundHandler())
	return nil
}

// Shedder returns the Shedder behind the Limits, for telemetry.Metrics, a Dashboard or a DebugHandler. It ends with Close.
func (t *Transport) Shedder() *shed.Shedder { return t.shedder }

// Close ends what waits for the Transport's limits; calls that run are not cut off. It is safe to call twice.
func (t *Transport) Close() error { return t.shedder.Close() }

// CloseIdleConnections closes those of the Base, as http.Client.CloseIdleConnections expects.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.cfg.Base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// RoundTrip makes a call, or returns a *CallError, or what the Base returns, or the context's error. Answers that are not
// repeated are returned as they are: a 429 that may not be waited for is an answer, too.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL == nil { // as http.Transport does
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, errors.New("middleware: nil Request.URL")
	}
	c := &call{t: t, r: r, ctx: r.Context(), key: t.cfg.Key(r), until: time.Now().Add(max(t.cfg.Wait, 0))}
	t.counts.calls.Add(1)
	if t.cfg.Features != nil {
		if feature := t.cfg.Feature(r); feature != "" && t.cfg.Features.Blocked(feature) {
			t.counts.blocked.Add(1)
			c.closeBody()
			return nil, c.tell(&CallError{Reason: shed.FeatureOff, Feature: feature})
		}
	}
	c.host = t.hosts.get(c.key, t.now())
	defer t.hosts.put(c.host)
	c.host.budget.earn()
	return c.run()
}

// now is the Transport's own monotonic time.
func (t *Transport) now() time.Duration { return time.Since(t.start) }

// request is what the Limits see of a call.
func (c *call) request() shed.Request {
	req := shed.Request{Client: c.key}
	if c.t.routes != nil {
		asked := c.r
		if asked.Host == "" {
			asked = asked.Clone(c.ctx)
			asked.Host = c.r.URL.Host
		}
		_, pattern := c.t.routes.Handler(asked)
		req.Route = c.t.names[pattern]
	}
	if c.t.cfg.Cost != nil {
		req.Cost = c.t.cfg.Cost(c.r)
	}
	return req
}

// tell reports a refusal to the observer, as the Shedder reports its own.
func (c *call) tell(e *CallError) error {
	e.Key = c.key
	event := shed.Event{Kind: shed.Refused, Route: c.request().Route, Reason: e.Reason, Wait: c.waited}
	switch o := c.t.cfg.Observer.(type) {
	case nil:
	case shed.ContextObserver:
		o.ObserveContext(c.ctx, event)
	default:
		o.Observe(event)
	}
	return e
}

// TransportStatus is the state of a Transport, for a DebugSection.
type TransportStatus struct {
	// Calls counts calls to RoundTrip, Retries what was sent again, and the others calls that were not made: held back by the
	// throttle, by a service's own wish, by a feature that is off. What the Limits refused is in the Shedder's status.
	Calls     int64           `json:"calls"`
	Retries   int64           `json:"retries"`
	Throttled int64           `json:"throttled"`
	Paused    int64           `json:"paused"`
	Blocked   int64           `json:"blocked"`
	Waiting   int64           `json:"waiting"`
	Services  []ServiceStatus `json:"services"`
}

// ServiceStatus is what a Transport knows about one service.
type ServiceStatus struct {
	Key       string        `json:"key"`
	Running   int           `json:"running"`
	Throttle  float64       `json:"throttle"` // share of the calls that is held back
	PausedFor shed.Duration `json:"paused_for"`
}

// Status returns the state of now.
func (t *Transport) Status() TransportStatus {
	return TransportStatus{
		Calls: t.counts.calls.Load(), Retries: t.counts.retries.Load(), Throttled: t.counts.throttled.Load(),
		Paused: t.counts.paused.Load(), Blocked: t.counts.blocked.Load(), Waiting: t.waiting.Load(),
		Services: t.hosts.status(t.now()),
	}
}

// lasts reports whether the call may wait for d.
func (c *call) lasts(d time.Duration) bool {
	end := time.Now().Add(d)
	deadline, ok := c.ctx.Deadline()
	return !end.After(c.until) && (!ok || end.Before(deadline))
}

// sleep waits for d. It does not begin a wait that the call does not last, or that there is no room for.
func (c *call) sleep(d time.Duration) (began bool, err error) {
	if d <= 0 {
		return true, c.ctx.Err()
	}
	if !c.lasts(d) || !c.t.mayWait() {
		return false, nil
	}
	defer c.t.waiting.Add(-1)
	c.waited += d
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true, nil
	case <-c.ctx.Done():
		return true, c.ctx.Err()
	}
}

// mayWait counts one more that waits, if there is room; it is to be counted down again.
func (t *Transport) mayWait() bool {
	if t.waiting.Add(1) > int64(t.cfg.Waiting) {
		t.waiting.Add(-1)
		return false
	}
	return true
}
