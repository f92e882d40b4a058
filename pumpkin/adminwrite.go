package pumpkin

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// servePut replaces an item, or shows what the document would be.
func (p *Pumpkin) servePut(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	e, query, err := readPut(w, r, id)
	if err != nil {
		return p.auditRefusal(r, "put", id, err)
	}
	done, err := p.putOrPreview(w, r, write{id: id, action: "put"}, e, query["dry_run"])
	if done == nil || err != nil {
		return err
	}
	h, _ := done.board.find(id)
	changed := done.changed()
	a := adminAnswer{Epoch: done.board.epoch, Rev: done.board.rev, Changed: &changed, Overridden: done.board.over != nil, Item: h.item(), Warning: p.unenforced(e)}
	answer(w, done.status(&a.Applied), done.board, a)
	return nil
}

// readPut reads what a PUT of the item id says.
func readPut(w http.ResponseWriter, r *http.Request, id string) (Entry, map[string]bool, error) {
	query, err := readQuery(r, "dry_run", "confirm")
	if err != nil {
		return Entry{}, nil, err
	}
	body, err := readJSON(w, r)
	if err != nil {
		return Entry{}, nil, err
	}
	e, err := parseEntry(body, id)
	if err != nil {
		return Entry{}, nil, err
	}
	if _, all := e.Features[Everything]; all && !query["confirm"] && !query["dry_run"] {
		return Entry{}, nil, refuse(ConfirmationNeeded, `features: "*" switches everything off; put it again with ?confirm=all`)
	}
	return e, query, nil
}

// putOrPreview makes a write under the request's conditions. For a dry run it answers with the document that would result
// and returns nil.
func (p *Pumpkin) putOrPreview(w http.ResponseWriter, r *http.Request, to write, e Entry, dryRun bool) (*written, error) {
	to.actor, to.remote, to.origin, to.allow = actorOf(r), r.RemoteAddr, Manual, precondition(r.Header, to.id)
	if !dryRun {
		done, err := p.put(to, e)
		return &done, err
	}
	b := p.current.Load().board
	if err := to.allow(b); err != nil {
		return nil, err
	}
	b, err := b.put(time.Now(), to.id, e)
	if err != nil {
		return nil, err
	}
	return nil, preview(w, b)
}

// status is 202 for what only this instance has yet, which applied then says.
func (w written) status(applied *string) int {
	if !w.local {
		return http.StatusOK
	}
	*applied = "local"
	return http.StatusAccepted
}

// auditRefusal records a write that was refused before it was tried, and returns err.
func (p *Pumpkin) auditRefusal(r *http.Request, action, id string, err error) error {
	p.audit.add(Record{
		Actor: actorOf(r), Remote: r.RemoteAddr, Action: action, ID: id[:min(len(id), 2*maxName)], Rev: p.current.Load().board.rev,
	}.refused(err))
	return err
}

// serveDelete ends an item. It asks for no condition, since it must work in an emergency, and tells nobody whether the item
// was there, so that it can be repeated.
func (p *Pumpkin) serveDelete(w http.ResponseWriter, r *http.Request) error {
	return p.deleteItem(w, r, r.PathValue("id"), "delete")
}

func (p *Pumpkin) deleteItem(w http.ResponseWriter, r *http.Request, id, action string) error {
	query, err := readQuery(r, "dry_run")
	if err != nil {
		return p.auditRefusal(r, action, id, err)
	}
	if query["dry_run"] {
		return preview(w, p.current.Load().board.clear(time.Now(), id))
	}
	if _, err := p.clear(write{actor: actorOf(r), remote: r.RemoteAddr, id: id, origin: Manual, action: action}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// preview answers with a document that is not in force.
func preview(w http.ResponseWriter, b board) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(b.body)
	return nil
}

// readQuery returns which of the parameters in known are given. Anything else is refused: a misspelt dry_run must not write.
func readQuery(r *http.Request, known ...string) (map[string]bool, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuse(InvalidParameter, "the query cannot be read")
	}
	legal := map[string]string{"dry_run": "1", "confirm": "all"}
	given := map[string]bool{}
	for _, name := range known {
		if v, ok := values[name]; ok {
			if len(v) != 1 || v[0] != legal[name] {
				return nil, refuse(InvalidParameter, "%s: the only value is %q", name, legal[name])
			}
			given[name] = true
		}
		delete(values, name)
	}
	if len(values) > 0 {
		return nil, refuse(InvalidParameter, "%s here takes the parameters [%s] and nothing else", r.Method, strings.Join(known, ", "))
	}
	return given, nil
}

// readJSON reads the body, which must say that it is JSON: a page of another origin could send anything else without
// asking the browser's leave.
func readJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/json" {
		return nil, refuse(NotJSON, "send Content-Type: application/json")
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return nil, refuse(NotJSON, "JSON is UTF-8")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, refuse(BodyTooLarge, "the body is over %d bytes", maxBody)
	}
	if err != nil {
		return nil, refuse(MalformedJSON, "the body cannot be read to its end")
	}
	return body, nil
}

// precondition returns the check that the request's headers ask for. Both headers are optional: nobody has to look
// something up in an emergency.
func precondition(header http.Header, id string) func(board) error {
	match, none := header["If-Match"], header["If-None-Match"]
	return func(b board) error {
		_, found := b.find(id)
		if match != nil && !matchesState(match, b, found) {
			return refuse(StaleRev, "the state is at %s now; look again", b.identity())
		}
		switch {
		case none == nil:
			return nil
		case len(none) != 1 || strings.TrimSpace(none[0]) != "*":
			return refuse(InvalidParameter, "If-None-Match: the only value is *, to create and never replace")
		case found:
			return refuse(Exists, "the item is in force already")
		}
		return nil
	}
}

// matchesState reports whether If-Match holds the rev of b, alone or with the epoch, or is "*" and the item is there. The
// comparison is strong: a weak tag matches nothing.
func matchesState(lines []string, b board, found bool) bool {
	for _, line := range lines {
		for tag := range strings.SplitSeq(line, ",") {
			switch strings.TrimSpace(tag) {
			case "*":
				return found
			case `"` + strconv.FormatUint(b.rev, 10) + `"`, `"` + b.identity() + `"`:
				return true
			}
		}
	}
	return false
}
