package pumpkin

import (
	"errors"
	"net/http"
	"time"
)

// adminActor is who a bearer of the one admin token is, in the log.
const adminActor = "admin"

// Admin returns the handler of the admin endpoint: /items and /items/{id}, for bearers of the token, not across origins.
// Mount it at the root of a listener of its own, on a loopback address; other handlers there are guarded by Authorize.
func (p *Pumpkin) Admin() http.Handler { return p.admin }

func (p *Pumpkin) newAdmin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/items", p.serveItems)
	mux.HandleFunc("/items/{id}", p.serveItem)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		leaveBody(w, r)
		writeProblem(w, refuse(NotFound, "there are /items and /items/{id}"))
	})
	// A bearer token is not sent by a browser of its own accord, but whatever a proxy puts in front may be.
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaveBody(w, r)
		writeProblem(w, refuse(CrossOrigin, "the admin endpoint does not take requests from pages of another origin"))
	}))
	return origins.Handler(p.Authorize(mux))
}

// adminItem is an item as an operator sees it.
type adminItem struct {
	Notice
	ExpiresAt time.Time `json:"expires_at"`
	Reason    string    `json:"reason"`
	Ticket    string    `json:"ticket,omitempty"`
}

func (h held) forAdmin() adminItem {
	return adminItem{Notice: h.notice, ExpiresAt: h.expires.UTC().Round(0), Reason: h.reason, Ticket: h.ticket}
}

// adminAnswer is an item and the state it was read from.
type adminAnswer struct {
	Epoch   string    `json:"epoch"`
	Rev     uint64    `json:"rev"`
	Changed *bool     `json:"changed,omitempty"` // for PUT: whether the public bytes changed
	Item    adminItem `json:"item"`
}

// adminList is all items, and the state they were read from.
type adminList struct {
	Epoch string      `json:"epoch"`
	Rev   uint64      `json:"rev"`
	Items []adminItem `json:"items"`
}

// answer sends v with the identity of the state as its ETag, for a later If-Match.
func answer(w http.ResponseWriter, b board, v any) {
	w.Header().Set("ETag", `"`+b.identity()+`"`)
	writeJSON(w, http.StatusOK, "application/json", v)
}

func (p *Pumpkin) serveItems(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		writeProblem(w, refuse(MethodNotAllowed, "read with GET; write to /items/{id}"))
		return
	}
	b := p.current.Load().board
	items := make([]adminItem, len(b.held))
	for i, h := range b.held {
		items[i] = h.forAdmin()
	}
	answer(w, b, adminList{b.epoch, b.rev, items})
}

func (p *Pumpkin) serveItem(w http.ResponseWriter, r *http.Request) {
	var err error
	switch r.Method {
	case http.MethodPut:
		err = p.servePut(w, r)
	case http.MethodDelete:
		err = p.serveDelete(w, r)
	case http.MethodGet, http.MethodHead:
		b := p.current.Load().board
		h, ok := b.find(r.PathValue("id"))
		if !ok {
			err = refuse(NotFound, "no such item is in force")
			break
		}
		answer(w, b, adminAnswer{Epoch: b.epoch, Rev: b.rev, Item: h.forAdmin()})
	default:
		w.Header().Set("Allow", "GET, HEAD, PUT, DELETE")
		err = refuse(MethodNotAllowed, "an item is put, deleted or read")
	}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		writeProblem(w, refusal)
	}
}
