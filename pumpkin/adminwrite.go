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
	query, err := readQuery(r, "dry_run", "confirm")
	if err != nil {
		return err
	}
	e, err := readEntry(w, r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	allow := precondition(r.Header, id)
	if query["dry_run"] {
		b := p.current.Load().board
		if err := allow(b); err != nil {
			return err
		}
		b, err := b.put(time.Now(), id, e)
		if err != nil {
			return err
		}
		return preview(w, b)
	}
	if _, all := e.Features[Everything]; all && !query["confirm"] {
		return refuse(ConfirmationNeeded, `features: "*" switches everything off; put it again with ?confirm=all`)
	}
	var before uint64
	b, err := p.put(write{actor: adminActor, remote: r.RemoteAddr, id: id, allow: func(b board) error {
		before = b.rev
		return allow(b)
	}}, e)
	if err != nil {
		return err
	}
	h, _ := b.find(id)
	changed := b.rev != before
	answer(w, b, adminAnswer{Epoch: b.epoch, Rev: b.rev, Changed: &changed, Item: h.forAdmin()})
	return nil
}

// serveDelete ends an item. It asks for no condition, since it must work in an emergency, and tells nobody whether the item
// was there, so that it can be repeated.
func (p *Pumpkin) serveDelete(w http.ResponseWriter, r *http.Request) error {
	query, err := readQuery(r, "dry_run")
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	if query["dry_run"] {
		return preview(w, p.current.Load().board.clear(time.Now(), id))
	}
	if _, err := p.clear(write{actor: adminActor, remote: r.RemoteAddr, id: id}); err != nil {
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
		return nil, refuse(InvalidParameter, "%s here takes %s and nothing else", r.Method, strings.Join(known, ", "))
	}
	return given, nil
}

// readEntry reads the body, which must say that it is JSON: a page of another origin could send anything else without
// asking the browser's leave.
func readEntry(w http.ResponseWriter, r *http.Request) (Entry, error) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/json" {
		return Entry{}, refuse(NotJSON, "send Content-Type: application/json")
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return Entry{}, refuse(NotJSON, "JSON is UTF-8")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return Entry{}, refuse(BodyTooLarge, "the body is over %d bytes", maxBody)
	}
	if err != nil {
		return Entry{}, refuse(MalformedJSON, "the body cannot be read to its end")
	}
	return parseEntry(body)
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
