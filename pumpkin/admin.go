package pumpkin

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Admin returns the handler of the admin endpoint, for bearers of a token, not across origins, and of the page for the
// person on call. Mount it at the root of a listener of its own, on a loopback address (ListenAdmin); other handlers there
// are guarded by Authorize. Without any token it refuses everybody, and a warning is logged.
func (p *Pumpkin) Admin() http.Handler {
	if len(p.guard.tokens) == 0 {
		p.locked.Do(func() {
			p.log.Warn("pumpkin: nobody can use the admin endpoint: there is no token, and every call is answered 401; set " + TokenEnv +
				" where the program reads that, or Config.Token; " + tokenHelp)
		})
	}
	return p.admin
}

func (p *Pumpkin) newAdmin() http.Handler {
	mux := http.NewServeMux()
	for pattern, serve := range map[string]func(http.ResponseWriter, *http.Request) error{
		"/items":          p.serveItems,
		"/items/{id}":     p.serveItem,
		"/mode":           p.serveMode,
		"/force_off":      p.serveHolds,
		"/force_off/{id}": p.serveHold,
		"/templates":      p.serveTemplates,
		"/audit":          p.serveAudit,
		"/": func(w http.ResponseWriter, r *http.Request) error {
			leaveBody(w, r)
			return refuse(NotFound, "there are /items, /items/{id}, /mode, /force_off/{id}, /templates and /audit")
		},
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if refusal, ok := errors.AsType[*Refusal](serve(w, r)); ok {
				writeProblem(w, refusal)
			}
		})
	}
	// A bearer token is not sent by a browser of its own accord, but whatever a proxy puts in front may be.
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaveBody(w, r)
		refusal := refuse(CrossOrigin, "the admin endpoint does not take requests from pages of another origin")
		if p.guard.failed(time.Now()) == 0 {
			p.auditStranger(r, "cross_origin", refusal)
		}
		writeProblem(w, refusal)
	}))
	return p.onlyHosts(origins.Handler(p.page(p.Authorize(mux))))
}

// adminAnswer is an item and the state it was read from.
type adminAnswer struct {
	Epoch   string `json:"epoch"`
	Rev     uint64 `json:"rev"`
	Changed *bool  `json:"changed,omitempty"` // for PUT: whether the public bytes changed
	Applied string `json:"applied,omitempty"` // "local": the shared store could not be asked, only this instance has it yet
	// Overridden says that the break-glass file hides the item.
	Overridden bool `json:"overridden,omitempty"`
	Item       Item `json:"item"`
	// Warning says what of the item may not do what it was written for.
	Warning string `json:"warning,omitempty"`
}

// adminList is all items, and the state they were read from.
type adminList struct {
	Epoch string `json:"epoch"`
	Rev   uint64 `json:"rev"`
	// Now is the server's clock, so that a page need not trust its own.
	Now   time.Time `json:"now"`
	Items []Item    `json:"items"` // in force, then those that wait for their start
	Holds []Hold    `json:"force_off"`
	// File is what the break-glass file shows instead, if there is one.
	File []Item `json:"file,omitempty"`
	// Actor bears the token that asked.
	Actor string `json:"actor"`
}

// answer sends v with the identity of the state as its ETag, for a later If-Match.
func answer(w http.ResponseWriter, status int, b board, v any) {
	w.Header().Set("ETag", `"`+b.identity()+`"`)
	writeJSON(w, status, "application/json", v)
}

// only refuses methods that are not in allow, the first of which is GET.
func only(w http.ResponseWriter, r *http.Request, allow, hint string) error {
	leaveBody(w, r)
	w.Header().Set("Allow", allow)
	return refuse(MethodNotAllowed, "%s", hint)
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

func (p *Pumpkin) serveItems(w http.ResponseWriter, r *http.Request) error {
	if !isRead(r) {
		return only(w, r, "GET, HEAD", "read with GET; write to /items/{id}")
	}
	b := p.current.Load().board
	s := b.state()
	list := adminList{Epoch: b.epoch, Rev: b.rev, Now: wall(time.Now()), Items: s.Items, Holds: p.liveHolds(b), Actor: actorOf(r)}
	if b.over != nil {
		list.File = make([]Item, 0, len(b.over.items))
		for _, h := range b.over.items {
			list.File = append(list.File, h.item())
		}
	}
	answer(w, http.StatusOK, b, list)
	return nil
}

func (p *Pumpkin) serveItem(w http.ResponseWriter, r *http.Request) error {
	switch r.Method {
	case http.MethodPut:
		return p.servePut(w, r)
	case http.MethodDelete:
		return p.serveDelete(w, r)
	case http.MethodGet, http.MethodHead:
		b := p.current.Load().board
		h, ok := b.find(r.PathValue("id"))
		if !ok {
			return refuse(NotFound, "no such item is in force or scheduled")
		}
		answer(w, http.StatusOK, b, adminAnswer{Epoch: b.epoch, Rev: b.rev, Overridden: b.over != nil, Item: h.item()})
		return nil
	}
	return only(w, r, "GET, HEAD, PUT, DELETE", "an item is put, deleted or read")
}

// adminTemplate is a prepared text as an operator sees it: the fields that a PUT of an item would have.
type adminTemplate struct {
	Name          string             `json:"name"`
	Severity      Severity           `json:"severity"`
	Message       map[string]string  `json:"message"`
	URL           string             `json:"url,omitempty"`
	LinkText      string             `json:"link_text,omitempty"`
	Dismissible   bool               `json:"dismissible"`
	RecoverSpread int                `json:"recover_spread"`
	Features      map[string]Feature `json:"features"`
	TTL           string             `json:"ttl,omitempty"`
}

func (p *Pumpkin) serveTemplates(w http.ResponseWriter, r *http.Request) error {
	if !isRead(r) {
		return only(w, r, "GET, HEAD", "prepared texts come from the configuration; read them with GET")
	}
	list := make([]adminTemplate, 0, len(p.templates))
	for _, name := range p.Templates() {
		e := p.templates[name]
		n := e.notice(name)
		t := adminTemplate{
			Name: name, Severity: n.Severity, Message: n.Message, URL: n.URL, LinkText: n.LinkText,
			Dismissible: n.Dismissible, RecoverSpread: n.RecoverSpread, Features: n.Features,
		}
		if e.TTL > 0 {
			t.TTL = e.TTL.String()
		}
		list = append(list, t)
	}
	writeJSON(w, http.StatusOK, "application/json", map[string]any{"default_lang": p.current.Load().board.lang, "templates": list})
	return nil
}

func (p *Pumpkin) serveAudit(w http.ResponseWriter, r *http.Request) error {
	if !isRead(r) {
		return only(w, r, "GET, HEAD", "the audit trail is read with GET and never changed")
	}
	n := keptRecords + keptFailures
	if text := r.URL.Query().Get("limit"); text != "" {
		limit, err := strconv.ParseUint(text, 10, 16)
		if err != nil || limit == 0 {
			return refuse(InvalidParameter, "limit: a number from 1 on")
		}
		n = int(limit)
	}
	writeJSON(w, http.StatusOK, "application/json", map[string]any{"records": p.Audit(n)})
	return nil
}
