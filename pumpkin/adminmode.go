package pumpkin

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// modeID is the item that the one big switch raises and ends.
const modeID = "mode"

// modeOrder is the body of PUT /mode.
type modeOrder struct {
	on, said         bool
	template         string
	ttl              time.Duration
	reason, ticketID string
}

// parseMode reads the body of PUT /mode. The error is a *Refusal.
func parseMode(body []byte) (o modeOrder, err error) {
	err = eachField(body, func(name string, raw json.RawMessage) (err error) {
		switch name {
		case "on":
			o.said = true
			err = json.Unmarshal(raw, &o.on)
		case "template":
			err = json.Unmarshal(raw, &o.template)
		case "ttl":
			o.ttl, err = parseTTL(raw)
			return err
		case "reason":
			err = json.Unmarshal(raw, &o.reason)
		case "ticket":
			err = json.Unmarshal(raw, &o.ticketID)
		default:
			return refuse(UnknownField, "%q is not a field of the mode; it has on, template, ttl, reason and ticket", name)
		}
		if err != nil {
			return wrongType(name, err)
		}
		return nil
	})
	if err == nil && !o.said {
		err = refuse(InvalidField, "on: must be true or false")
	}
	return o, err
}

// entry is what the mode shows: a prepared text, for as long as the order or the text says.
func (p *Pumpkin) modeEntry(o modeOrder) (Entry, error) {
	e, ok := p.Template(o.template)
	if !ok {
		return Entry{}, refuse(UnknownTemplate, "template: there is no prepared text %q; there are %s", o.template, strings.Join(p.Templates(), ", "))
	}
	e.Reason, e.Ticket = o.reason, o.ticketID
	if o.ttl > 0 {
		e.TTL = o.ttl
	}
	return e, nil
}

// modeAnswer says how the big switch stands.
type modeAnswer struct {
	On       bool   `json:"on"`
	Template string `json:"template,omitempty"`
	Epoch    string `json:"epoch"`
	Rev      uint64 `json:"rev"`
	Changed  *bool  `json:"changed,omitempty"`
	Applied  string `json:"applied,omitempty"`
	Item     *Item  `json:"item,omitempty"`
}

func modeOf(b board) modeAnswer {
	a := modeAnswer{Epoch: b.epoch, Rev: b.rev}
	if h, ok := b.find(modeID); ok {
		a.On, a.Template, a.Item = true, h.template, itemPointer(h)
	}
	return a
}

// serveMode is the one big switch. A prepared text is chosen by name and was agreed on beforehand, so one that switches
// everything off needs no confirmation.
func (p *Pumpkin) serveMode(w http.ResponseWriter, r *http.Request) error {
	switch r.Method {
	case http.MethodPut:
	case http.MethodDelete:
		return p.deleteItem(w, r, modeID, "mode_off")
	case http.MethodGet, http.MethodHead:
		b := p.current.Load().board
		answer(w, http.StatusOK, b, modeOf(b))
		return nil
	default:
		return only(w, r, "GET, HEAD, PUT, DELETE", "the mode is put, deleted or read")
	}
	o, e, query, err := p.readMode(w, r)
	if err != nil {
		return p.auditRefusal(r, "mode_on", modeID, err)
	}
	if !o.on {
		if query["dry_run"] {
			return preview(w, p.current.Load().board.clear(time.Now(), modeID))
		}
		if _, err := p.clear(write{actor: actorOf(r), remote: r.RemoteAddr, id: modeID, origin: Manual, action: "mode_off"}); err != nil {
			return err
		}
		b := p.current.Load().board
		answer(w, http.StatusOK, b, modeOf(b))
		return nil
	}
	done, err := p.putOrPreview(w, r, write{id: modeID, action: "mode_on"}, e, query["dry_run"])
	if done == nil || err != nil {
		return err
	}
	a := modeOf(done.board)
	changed := done.changed()
	a.Changed = &changed
	answer(w, done.status(&a.Applied), done.board, a)
	return nil
}

func (p *Pumpkin) readMode(w http.ResponseWriter, r *http.Request) (o modeOrder, e Entry, query map[string]bool, err error) {
	if query, err = readQuery(r, "dry_run", "confirm"); err != nil {
		return
	}
	body, err := readJSON(w, r)
	if err != nil {
		return
	}
	if o, err = parseMode(body); err != nil {
		return
	}
	if o.on {
		e, err = p.modeEntry(o)
	} else {
		err = checkText("reason", o.reason, maxReason)
	}
	return
}

// liveHolds are the force_off that hold now.
func (p *Pumpkin) liveHolds(b board) []Hold {
	now := time.Now()
	holds := slices.DeleteFunc(b.state().Holds, func(h Hold) bool { return !now.Before(h.Until) })
	if holds == nil {
		return []Hold{}
	}
	return holds
}

func (p *Pumpkin) serveHolds(w http.ResponseWriter, r *http.Request) error {
	if !isRead(r) {
		return only(w, r, "GET, HEAD", "read with GET; write to /force_off/{id}")
	}
	b := p.current.Load().board
	answer(w, http.StatusOK, b, map[string]any{"epoch": b.epoch, "rev": b.rev, "force_off": p.liveHolds(b)})
	return nil
}

// serveHold keeps automation away from an id, or gives it back.
func (p *Pumpkin) serveHold(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	var f func(now time.Time, b board) (board, error)
	action, reason := "force_off", ""
	switch r.Method {
	case http.MethodPut:
		ttl, why, err := p.readHold(w, r, id)
		if err != nil {
			return p.auditRefusal(r, action, id, err)
		}
		reason = why
		f = func(now time.Time, b board) (board, error) {
			return b.forceOff(now, handsOff{id: id, until: now.Add(ttl), updated: now, actor: actorOf(r), reason: why})
		}
	case http.MethodDelete:
		action = "end_force_off"
		f = func(now time.Time, b board) (board, error) { return b.endForceOff(now, id), nil }
	default:
		return only(w, r, "PUT, DELETE", "put or delete a force_off; read all of them at /force_off")
	}
	b, local, err := p.commit(f)
	record := Record{Actor: actorOf(r), Remote: r.RemoteAddr, Action: action, ID: id, Reason: reason, Rev: b.rev, Applied: applied(local)}
	if err != nil {
		p.audit.add(record.refused(err))
		return err
	}
	p.writes.Add(1)
	p.audit.add(record)
	p.log.Info("pumpkin: "+action, "id", id, "actor", record.Actor, "remote", record.Remote, "reason", reason, "rev", b.rev)
	if r.Method == http.MethodDelete {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	status := http.StatusOK
	if local {
		status = http.StatusAccepted
	}
	answer(w, status, b, map[string]any{"epoch": b.epoch, "rev": b.rev, "force_off": p.liveHolds(b)})
	return nil
}

// readHold reads the body of PUT /force_off/{id}: a ttl and a reason.
func (p *Pumpkin) readHold(w http.ResponseWriter, r *http.Request, id string) (ttl time.Duration, reason string, err error) {
	if _, err = readQuery(r); err != nil {
		return
	}
	if id != Everything && !isName(id) {
		return 0, "", refuse(InvalidField, "id: must be \"*\" or 1 to %d letters, digits, '.', '_' or '-'", maxName)
	}
	body, err := readJSON(w, r)
	if err != nil {
		return
	}
	return parseHold(body)
}

// parseHold reads the body of PUT /force_off/{id}. The error is a *Refusal.
func parseHold(body []byte) (ttl time.Duration, reason string, err error) {
	ttl = defaultTTL
	err = eachField(body, func(name string, raw json.RawMessage) (err error) {
		switch name {
		case "ttl":
			ttl, err = parseTTL(raw)
			return err
		case "reason":
			if err = json.Unmarshal(raw, &reason); err != nil {
				return wrongType(name, err)
			}
			return nil
		}
		return refuse(UnknownField, "%q is not a field of force_off; it has ttl and reason", name)
	})
	switch {
	case err != nil:
	case ttl > maxTTL:
		err = refuse(InvalidField, "ttl: must be above 0 and at most 24h; put it again to prolong it")
	default:
		err = checkText("reason", reason, maxReason)
	}
	return
}
