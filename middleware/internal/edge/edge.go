package edge

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

// Config is what adapters have in common. Their own Config types document the fields for users.
type Config struct {
	Shedder       *shed.Shedder
	Principals    bool // whether hints will name principals
	BeforeAuth    bool
	Accounts      bool
	Classify      func(r *http.Request, status int) shed.Outcome
	Settle        func(r *http.Request, status int, end *shed.Ending)
	Pumpkin       interface{ Rev() string }
	HideRateLimit bool
	Legacy        Legacy
	NoHTML        bool
	Logger        *slog.Logger
}

// Edge turns requests into questions to a shedder, and its answers into responses. Make one with New.
type Edge struct {
	shedder    *shed.Shedder
	view       atomic.Pointer[view] // looked up once per request
	classify   func(r *http.Request, status int) shed.Outcome
	settle     func(r *http.Request, status int, end *shed.Ending)
	pumpkin    interface{ Rev() string }
	fields     *fields      // nil if quotas are not shown
	waits      spellings    // of Retry-After
	awaited    atomic.Int64 // bodies
	legacy     Legacy
	html       bool
	beforeAuth bool
	accounts   bool
	logger     *slog.Logger
}

// New makes an Edge, or says what is wrong with the configuration.
func New(cfg Config) (*Edge, error) {
	if cfg.Shedder == nil {
		return nil, errors.New("no Shedder; make one with shed.New")
	}
	if cfg.BeforeAuth && cfg.Principals {
		return nil, errors.New("BeforeAuth and Principal contradict each other; set Principal where authentication has been")
	}
	e := &Edge{
		shedder: cfg.Shedder, classify: cfg.Classify, settle: cfg.Settle, pumpkin: cfg.Pumpkin, legacy: cfg.Legacy,
		html: !cfg.NoHTML, beforeAuth: cfg.BeforeAuth, accounts: cfg.Accounts, logger: cmp.Or(cfg.Logger, slog.Default()),
	}
	if err := e.follow(cfg.Principals || cfg.BeforeAuth, cfg.Logger); err != nil {
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

// Outer is what a middleware further out has done about a request.
type Outer struct{ rec *recorder }

// Outer looks for a middleware further out that asks the same shedder.
func (e *Edge) Outer(w http.ResponseWriter) Outer { return Outer{admitted(w, e.shedder)} }

// Passes reports whether a request goes straight to its handler, because it has been admitted further out and nothing was left to
// be done.
func (e *Edge) Passes(outer Outer) bool {
	return outer.rec != nil && (outer.rec.rarities().pending == nil || e.beforeAuth)
}

// preflight reports whether r asks, for a browser, whether another request may be sent. The browser sends it on its own and
// nobody could read its refusal, so it costs no quota and does not wait: it is exempt, and bounded as all that is exempt.
func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header["Origin"] != nil && r.Header["Access-Control-Request-Method"] != nil
}

// Visit is one admitted request. Leave must be called in a deferred call, and Finish when the handler has returned.
type Visit struct {
	// Writer is what the handler writes to, and Request what it is given.
	Writer  http.ResponseWriter
	Request *http.Request

	rec     *recorder // has the permit; nil if there is none, or somebody further out ends it
	outcome shed.Outcome
	body    *counted // nil unless the body was charged by its length
	sample  bool     // whether the work can be a sample of latency
	settles bool     // whether its end may change what it is charged
}

// Hints is what the application knows about a request beyond HTTP. The zero value knows nothing.
type Hints struct {
	Principal string // who asks
	Route     string // the name of the route, whatever the patterns say
	Label     string // the name of the route if no pattern matches
	Plan      string // the client's plan
	Cost      int64  // what it weighs; 0 or less means the route's
}

// Enter asks whether r may run and waits where it must; it fills in v, which must be zero. The error is for Refuse or Rejection.
func (e *Edge) Enter(v *Visit, w http.ResponseWriter, r *http.Request, outer Outer, hints Hints) error {
	if outer.rec != nil {
		return e.extend(v, w, r, outer.rec, hints)
	}
	header := w.Header()
	if e.pumpkin != nil {
		header["Pumpkin-Rev"] = []string{e.pumpkin.Rev()}
		exposeFields(header, r, "Pumpkin-Rev")
	}
	seen := e.view.Load()
	route := seen.route(hints, r)
	exempt := route.exempt || preflight(r)
	id := seen.who.Identify(r, hints.Principal)
	if exempt && seen.who.Exempts(id.Peer) {
		v.Writer, v.Request = w, r
		return nil
	}
	req := shed.Request{
		Client: id.Client, By: id.By, Anonymous: id.Anonymous, IP: id.IP, Route: route.name, Exempt: exempt,
		Plan: cmp.Or(hints.Plan, id.Plan), Cost: max(hints.Cost, 0),
	}
	if e.beforeAuth {
		req.Stage = shed.BeforeIdentity
	}
	if seen.bodies && r.ContentLength > 0 {
		req.Amounts = append(req.Amounts, shed.Amount{Unit: shed.RequestBytes, N: r.ContentLength})
	}
	if seen.responses && r.Method != http.MethodHead {
		req.Amounts = append(req.Amounts, shed.Amount{Unit: shed.ResponseBytes, N: toll})
	}
	var slow *slowBody
	if r.ContentLength != 0 && !exempt && !route.patient {
		asks := expects(r)
		if asks {
			r = r.WithContext(r.Context()) // the server has to find its own body in r, or it waits for it before it lets an answer out
		}
		if slow = e.watch(&seen.slow, w, r); slow != nil && slow.gather > 0 && !asks && !upgrades(r) {
			req.Await = slow.await
		}
	}
	permit, err := e.shedder.Admit(r.Context(), req)
	if err != nil {
		if slow != nil {
			slow.leave()
		}
		leaveUnread(w, r)
		return err
	}
	if exempt {
		v.Writer, v.Request = w, r
		return nil
	}
	v.sample = !route.longLived
	v.settles = seen.partly || seen.bodies || seen.responses || e.settle != nil
	rec := &recorder{edge: e, permit: permit, route: route, tunnel: r.Method == http.MethodConnect}
	if verdicts := permit.Verdicts(); len(verdicts) > 0 {
		e.show(header, seen, &rec.quota, &rec.room, verdicts, false)
	}
	if shadows := permit.Shadows(); len(shadows) > 0 {
		showShadows(header, shadows)
	}
	showShadowGate(header, permit.WouldRefuse())
	if slow != nil {
		slow.permit = permit
		rec.rare = &rarities{slow: slow, refuse: func() { e.Refuse(w, r, tooSlow()) }}
	}
	if e.beforeAuth {
		pending := req // a copy, so that only then it is kept on the heap
		rec.rarely().pending = &pending
	}
	if seen.bodies && r.ContentLength > 0 && r.Body != nil {
		v.body = &counted{ReadCloser: r.Body}
		r.Body = v.body
	}
	e.attach(v, w, r, seen, rec, &req)
	v.rec = rec
	return nil
}

// leaveUnread ends the connection of a refused request whose body would have to be read first: otherwise it would stay for as long as
// the client takes to send what nobody reads.
func leaveUnread(w http.ResponseWriter, r *http.Request) {
	if unread(r) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	}
}

// extend completes what a middleware further out has begun, now that it is known who asks.
func (e *Edge) extend(v *Visit, w http.ResponseWriter, r *http.Request, outer *recorder, hints Hints) error {
	req, seen := *outer.rare.pending, e.view.Load()
	outer.rare.pending = nil
	id := seen.who.Identify(r, hints.Principal)
	req.Client, req.By, req.Anonymous, req.IP = id.Client, id.By, id.Anonymous, id.IP
	req.Plan, req.Stage = cmp.Or(hints.Plan, id.Plan), shed.AfterIdentity
	if hints.Cost > 0 {
		req.Cost = hints.Cost
	}
	shown, watched := len(outer.permit.Verdicts()), len(outer.permit.Shadows())
	if err := outer.permit.Extend(r.Context(), req); err != nil {
		leaveUnread(w, r)
		return err
	}
	if verdicts := outer.permit.Verdicts()[shown:]; len(verdicts) > 0 {
		e.show(w.Header(), seen, new([2]string), nil, verdicts, false)
	}
	if shadows := outer.permit.Shadows()[watched:]; len(shadows) > 0 {
		showShadows(w.Header(), shadows)
	}
	rec := &recorder{edge: e, permit: outer.permit, route: unmatched, rare: &rarities{costs: outer}}
	e.attach(v, w, r, seen, rec, &req)
	return nil
}

// attach puts what counts and paces around the request and its response.
func (e *Edge) attach(v *Visit, w http.ResponseWriter, r *http.Request, seen *view, rec *recorder, req *shed.Request) {
	if seen.bodies && r.ContentLength < 0 {
		e.pace(r, *req, rec.permit)
	}
	if seen.responses || seen.messages {
		if out := e.newOut(w, r, seen, *req, rec.permit); out != nil {
			rec.rarely().out = out
		}
	}
	v.Writer, v.Request = record(w, rec), r
	if seen.byHand || e.accounts {
		account := &Account{shedder: e.shedder, req: *req, permit: rec.permit, rec: rec}
		v.Request = r.WithContext(context.WithValue(r.Context(), accountKey{}, account))
	}
}

// show sets the fields that tell what rules have said.
func (e *Edge) show(header http.Header, seen *view, place *[2]string, room *room, verdicts []limits.Verdict, refused bool) {
	if e.fields == nil || seen.hidden {
		return
	}
	e.fields.set(header, place, room, verdicts, seen.units, refused)
	if legacy := cmp.Or(e.legacy, seen.legacy); legacy != NoLegacy {
		legacy.set(header, verdicts, refused)
	}
}

// Finish reads the outcome. It is not called when the handler panics: what is then known says nothing about capacity. The
// status counts if none has been sent yet; 0 means that there is none.
func (v *Visit) Finish(r *http.Request, status int) {
	if v.rec == nil {
		return
	}
	v.rec.answerSlow()
	if v.sample {
		v.outcome = v.rec.outcome(r, status)
	}
	if v.settles || v.rec.cost.Load() != 0 {
		v.settle(r, status)
	}
	if v.Request != r && r.Pattern == "" {
		r.Pattern = v.Request.Pattern // what a mux has found out is for those further out too
	}
	if v.Request != r && r.MultipartForm == nil {
		r.MultipartForm = v.Request.MultipartForm // whose files the server removes
	}
}

// Cut reports, once Finish has been called, whether the middleware has answered because the body came too slowly, whatever the handler
// has said.
func (v *Visit) Cut() bool { return v.rec != nil && v.rec.deaf }

// Leave ends the permit. A second call does nothing.
func (v *Visit) Leave() {
	if v.rec == nil {
		return
	}
	if slow := v.rec.rarities().slow; slow != nil {
		slow.leave()
	}
	v.rec.permit.Done(v.outcome)
}

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
