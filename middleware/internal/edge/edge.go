package edge

import (
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/shed"
)

// Config is what adapters have in common. Their own Config types document the fields for users.
type Config struct {
	Shedder       *shed.Shedder
	Principals    bool // whether hints will name principals
	Classify      func(r *http.Request, status int) shed.Outcome
	Pumpkin       interface{ Rev() string }
	HideRateLimit bool
}

// Edge turns requests into questions to a shedder, and its answers into responses. Make one with New.
type Edge struct {
	shedder  *shed.Shedder
	view     atomic.Pointer[view] // looked up once per request
	classify func(r *http.Request, status int) shed.Outcome
	pumpkin  interface{ Rev() string }
	fields   *fields // nil if quotas are not shown
}

// New makes an Edge, or says what is wrong with the configuration.
func New(cfg Config) (*Edge, error) {
	if cfg.Shedder == nil {
		return nil, errors.New("no Shedder; make one with shed.New")
	}
	e := &Edge{shedder: cfg.Shedder, classify: cfg.Classify, pumpkin: cfg.Pumpkin}
	if err := e.follow(cfg.Principals); err != nil {
		return nil, err
	}
	if e.classify == nil {
		e.classify = Classify
	}
	if !cfg.HideRateLimit {
		e.fields = new(fields)
	}
	return e, nil
}

// Passes reports whether a request goes straight to its handler, because the same shedder has admitted it further out.
func (e *Edge) Passes(w http.ResponseWriter, r *http.Request) bool { return admitted(w, e.shedder) }

// preflight reports whether r asks, for a browser, whether another request may be sent. The browser sends it on its own and
// nobody could read its refusal, so it costs no quota and does not wait: it is exempt, and bounded as all that is exempt.
func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header["Origin"] != nil && r.Header["Access-Control-Request-Method"] != nil
}

// Visit is one admitted request. Leave must be called in a deferred call, and Finish when the handler has returned.
type Visit struct {
	// Writer is what the handler writes to.
	Writer http.ResponseWriter

	edge    *Edge
	rec     *recorder // nil if nothing needs to be known about the response
	permit  shed.Permit
	outcome shed.Outcome
}

// Hints is what the application knows about a request beyond HTTP. The zero value knows nothing.
type Hints struct {
	Principal string // who asks
	Route     string // the name of the route, whatever the patterns say
	Label     string // the name of the route if no pattern matches
	Plan      string // the client's plan
}

// Enter asks whether r may run and waits where it must. The error is for Refuse or Rejection.
func (e *Edge) Enter(w http.ResponseWriter, r *http.Request, hints Hints) (Visit, error) {
	header := w.Header()
	if e.pumpkin != nil {
		header.Set("Pumpkin-Rev", e.pumpkin.Rev())
	}
	seen := e.view.Load()
	route := seen.route(hints, r)
	exempt := route.exempt || preflight(r)
	id := seen.who.Identify(r, hints.Principal)
	if exempt && seen.who.Exempts(id.Peer) {
		return Visit{Writer: w}, nil
	}
	req := shed.Request{
		Client: id.Client, By: id.By, Anonymous: id.Anonymous, IP: id.IP, Route: route.name, Exempt: exempt,
		Plan: hints.Plan,
	}
	if seen.bodies && r.ContentLength > 0 {
		req.Amounts = []shed.Amount{{Unit: shed.RequestBytes, N: r.ContentLength}}
	}
	permit, err := e.shedder.Admit(r.Context(), req)
	if err != nil && unread(r) {
		// Without this the connection would stay for as long as the client takes to send what nobody reads.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	}
	if err != nil || exempt {
		return Visit{Writer: w, permit: permit}, err
	}
	if seen.bodies && r.ContentLength < 0 {
		e.pace(r, req, permit)
	}
	v := Visit{edge: e, permit: permit}
	if verdicts := permit.Verdicts(); len(verdicts) > 0 && e.fields != nil {
		e.fields.set(header, new([2]string), verdicts, false)
	}
	var rec *recorder
	v.Writer, rec = record(w, e.shedder)
	rec.permit = permit
	if !route.longLived {
		v.rec = rec
	}
	return v, nil
}

// Finish reads the outcome. It is not called when the handler panics: what is then known says nothing about capacity. The
// status counts if none has been sent yet; 0 means that there is none.
func (v *Visit) Finish(r *http.Request, status int) {
	if v.rec != nil {
		v.outcome = v.edge.outcome(r, v.rec, status)
	}
}

// Leave ends the permit. A second call does nothing.
func (v *Visit) Leave() { v.permit.Done(v.outcome) }

// Rejection makes a refusal of an error of Enter. It is nil if nobody is left to answer: StatusGone.
func (e *Edge) Rejection(r *http.Request, err error) *shed.Rejection {
	if rejection, ok := errors.AsType[*shed.Rejection](err); ok {
		return rejection
	}
	switch {
	case errors.Is(err, shed.ErrClosed):
		return closedRejection
	case r.Context().Err() != nil:
		return nil
	}
	return &shed.Rejection{Reason: shed.Overloaded, RetryAfter: time.Second}
}

// closedRejection answers while an instance goes away: another one is probably up.
var closedRejection = &shed.Rejection{Reason: Closed, RetryAfter: time.Second}
