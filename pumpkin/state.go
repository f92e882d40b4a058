package pumpkin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// Origin says by whom an item is held. The zero value is Manual. A person's item is never changed by automation, and the
// break-glass file hides both.
type Origin string

// The origins.
const (
	Manual    Origin = "manual" // a person, or a program in a person's name
	Automatic Origin = "auto"   // raised by what was measured
	FromFile  Origin = "file"   // the break-glass file; never part of a State
)

// State is all that instances must agree on: what a shared store holds. Times are wall clock, in UTC. What the break-glass
// file of an instance says is not in it.
type State struct {
	// Epoch is the lineage, Rev the revision that the public was told last.
	Epoch string `json:"epoch"`
	Rev   uint64 `json:"rev"`
	// Seq counts what a shared store has taken, changes that the public does not see included: a Store gives each state that
	// it stores a higher one. 0 means that no store has said so.
	Seq uint64 `json:"seq,omitempty"`
	// Items are those in force, in the document's order, then those that wait for their start.
	Items []Item `json:"items"`
	// Holds keep automation away. Cleared are the ends of items, remembered so that Merge does not undo them.
	Holds   []Hold    `json:"holds,omitempty"`
	Cleared []Cleared `json:"cleared,omitempty"`
}

// Item is an item with its private fields.
type Item struct {
	Notice              // NoticeRev is 0 while the item waits for its start
	StartsAt  time.Time `json:"starts_at,omitzero"` // zero: from the moment it was written
	ExpiresAt time.Time `json:"expires_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Origin    Origin    `json:"origin"`
	Actor     string    `json:"actor"`
	Reason    string    `json:"reason"`
	Ticket    string    `json:"ticket,omitempty"`
	Template  string    `json:"template,omitempty"`
}

// Hold keeps automation from the item ID, or from all when ID is Everything.
type Hold struct {
	ID        string    `json:"id"`
	Until     time.Time `json:"until"`
	UpdatedAt time.Time `json:"updated_at"`
	Actor     string    `json:"actor"`
	Reason    string    `json:"reason"`
}

// Cleared is the end of an item by somebody's hand, or by automation. It is forgotten after Until.
type Cleared struct {
	ID        string    `json:"id"`
	ClearedAt time.Time `json:"cleared_at"`
	Until     time.Time `json:"until"`
	Auto      bool      `json:"auto,omitempty"`
}

// ErrOlderEpoch is what Adopt answers to a state of a lineage older than the one that clients have seen here: they would
// ignore it. The store has to take Merge of both, which is of our lineage. A Pumpkin that nobody has written to or polled
// takes any lineage, so it should learn the shared state before it serves.
var ErrOlderEpoch = errors.New("pumpkin: the state is of an older epoch than the one shown here")

// ParseState reads what State's JSON encoding wrote. It is strict about shape; what the items say is checked by Adopt.
func ParseState(data []byte) (State, error) {
	var s State
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return State{}, refuse(MalformedJSON, "the state cannot be read: %v", err)
	}
	if dec.More() {
		return State{}, refuse(MalformedJSON, "something follows the state")
	}
	return s, nil
}

// maxRev is far beyond what changes can count, and what a number of JavaScript still holds exactly.
const maxRev = 1 << 53

func wall(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.Round(0).UTC()
}

// item returns h as others see it.
func (h held) item() Item {
	return Item{
		Notice: h.notice, StartsAt: wall(h.starts), ExpiresAt: wall(h.expires), UpdatedAt: wall(h.updated),
		Origin: cmp.Or(h.origin, Manual), Actor: h.actor, Reason: h.reason, Ticket: h.ticket, Template: h.template,
	}
}

// state returns what b has to share.
func (b board) state() State {
	s := State{Epoch: b.epoch, Rev: b.rev, Seq: b.seq, Items: make([]Item, 0, len(b.held)+len(b.waiting))}
	for _, items := range [][]held{b.held, b.waiting} {
		for _, h := range items {
			s.Items = append(s.Items, h.item())
		}
	}
	for _, h := range b.holds {
		s.Holds = append(s.Holds, Hold{ID: h.id, Until: wall(h.until), UpdatedAt: wall(h.updated), Actor: h.actor, Reason: h.reason})
	}
	for _, t := range b.tombstones {
		s.Cleared = append(s.Cleared, Cleared{ID: t.id, ClearedAt: wall(t.cleared), Until: wall(t.until), Auto: t.auto})
	}
	return s
}

// adopt returns the board that holds what s says, at now. Within an epoch the rev never falls: where s is behind in rev and
// says something else, the rev grows.
func (b board) adopt(now time.Time, s State) (board, error) {
	b, _ = b.advance(now)
	if s.Epoch == b.epoch && 0 < s.Seq && s.Seq < b.seq { // overtaken on its way here
		return b, nil
	}
	if b.locals > 0 { // s cannot know them
		s = Merge(s, b.state())
	}
	switch {
	case !isEpoch(s.Epoch):
		return b, refuse(InvalidField, "epoch: %q is no ULID", s.Epoch)
	case s.Rev > maxRev || s.Seq > maxRev:
		return b, refuse(InvalidField, "rev: %d or seq: %d is above 2^53, which scripts cannot count", s.Rev, s.Seq)
	case s.Epoch < b.epoch && !b.unseen:
		return b, ErrOlderEpoch
	case len(s.Items) > maxItems || len(s.Holds) > maxItems || len(s.Cleared) > maxTombstones:
		return b, refuse(TooManyItems, "%d items, %d holds, %d ends", len(s.Items), len(s.Holds), len(s.Cleared))
	}
	next := b
	next.epoch, next.rev, next.seq, next.unseen = s.Epoch, s.Rev, s.Seq, false
	if s.Epoch == b.epoch {
		next.seq = max(s.Seq, b.seq)
	}
	next.held, next.waiting, next.holds, next.tombstones = nil, nil, nil, nil
	seen := map[string]bool{}
	for _, it := range s.Items {
		h, err := it.held(now, b.lang)
		if err != nil {
			return b, err
		}
		if seen[it.ID] {
			return b, refuse(InvalidField, "%q is there twice", it.ID)
		}
		seen[it.ID] = true
		if it.NoticeRev == 0 {
			next.waiting = append(next.waiting, h)
		} else {
			next.held = append(next.held, h)
		}
	}
	for _, h := range s.Holds {
		if until := sameMoment(now, h.Until); now.Before(until) {
			next.holds = append(next.holds, handsOff{h.ID, until, sameMoment(now, h.UpdatedAt), h.Actor, h.Reason})
		}
	}
	for _, c := range s.Cleared {
		if until := sameMoment(now, c.Until); now.Before(until) {
			next.tombstones = append(next.tombstones, tombstone{c.ID, sameMoment(now, c.ClearedAt), until, c.Auto})
		}
	}
	if n := len(next.documentOf(slices.Concat(next.held, next.waiting)).render()); n > maxDocument {
		return b, refuse(DocumentTooLarge, "the document would be %d bytes, at most %d", n, maxDocument)
	}
	sortItems(next.held)
	next.body = next.document().render()
	next, _ = next.advance(now)
	if s.Epoch == b.epoch && next.rev < b.rev {
		next.rev = b.rev
		next.body = next.document().render()
		if !bytes.Equal(next.body, b.body) {
			next.rev++
			next.body = next.document().render()
		}
	}
	return next, nil
}

// held returns the item as a board keeps it, if it is one that could have been written.
func (it Item) held(now time.Time, lang string) (held, error) {
	e := Entry{
		Severity: it.Severity, Message: it.Message, URL: it.URL, LinkText: it.LinkText, Sticky: !it.Dismissible,
		RecoverSpread: it.RecoverSpread, Features: it.Features, Reason: it.Reason, Ticket: it.Ticket, Template: it.Template,
	}
	if err := e.check(it.ID, lang); err != nil {
		return held{}, err
	}
	if it.Origin != Manual && it.Origin != Automatic {
		return held{}, refuse(InvalidField, "origin: %q", it.Origin)
	}
	if it.NoticeRev > maxRev {
		return held{}, refuse(InvalidField, "notice_rev: %d is above 2^53", it.NoticeRev)
	}
	if it.ExpiresAt.Sub(now) > maxAhead+maxTTL {
		return held{}, refuse(InvalidField, "expires_at: too far ahead")
	}
	h := held{
		notice: e.notice(it.ID), expires: sameMoment(now, it.ExpiresAt), updated: sameMoment(now, it.UpdatedAt),
		origin: it.Origin, actor: it.Actor, reason: it.Reason, ticket: it.Ticket, template: it.Template,
	}
	h.notice.NoticeRev = it.NoticeRev
	from := h.updated
	if !it.StartsAt.IsZero() {
		h.starts = sameMoment(now, it.StartsAt)
		from = h.starts
	}
	if warn := endsSoon(from, h.expires); now.Before(warn) { // else it has been said already
		h.warn = warn
	}
	return h, nil
}

// isEpoch reports whether s has the shape of a ULID.
func isEpoch(s string) bool {
	if len(s) != 26 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// Merge joins two states that were written apart, as when a store could not be reached: of each item, hold or end the newest
// counts, and at the same moment the end. The epoch is the newer one; the rev is the higher of those in it, and one more
// when the items differ from those that had that rev. It asks no clock, and Merge(a, b) and Merge(b, a) say the same.
func Merge(a, b State) State {
	if a.Epoch < b.Epoch || a.Epoch == b.Epoch && a.Rev < b.Rev {
		a, b = b, a
	}
	out := State{Epoch: a.Epoch, Rev: a.Rev, Seq: max(a.Seq, b.Seq)}
	out.Cleared = newest(a.Cleared, b.Cleared, func(c Cleared) string { return c.ID }, func(c Cleared) time.Time { return c.ClearedAt })
	out.Holds = newest(a.Holds, b.Holds, func(h Hold) string { return h.ID }, func(h Hold) time.Time { return h.UpdatedAt })
	items := newest(a.Items, b.Items, func(it Item) string { return it.ID }, func(it Item) time.Time { return it.UpdatedAt })
	for _, it := range items {
		i := slices.IndexFunc(out.Cleared, func(c Cleared) bool { return c.ID == it.ID })
		switch {
		case i < 0:
			out.Items = append(out.Items, it)
		case it.UpdatedAt.After(out.Cleared[i].ClearedAt):
			out.Items = append(out.Items, it)
			out.Cleared = slices.Delete(out.Cleared, i, i+1)
		}
	}
	if !sameItems(out.Items, a.Items) || a.Epoch == b.Epoch && a.Rev == b.Rev && !sameItems(out.Items, b.Items) {
		out.Rev++
	}
	return out
}

// newest returns of each id the one that was written last, ordered by id.
func newest[T any](a, b []T, id func(T) string, at func(T) time.Time) []T {
	byID := map[string]T{}
	for _, v := range slices.Concat(a, b) {
		old, ok := byID[id(v)]
		switch c := at(v).Compare(at(old)); {
		case !ok, c > 0, c == 0 && later(v, old):
			byID[id(v)] = v
		}
	}
	var all []T
	for _, v := range byID {
		all = append(all, v)
	}
	slices.SortFunc(all, func(x, y T) int { return cmp.Compare(id(x), id(y)) })
	return all
}

// later decides between two writes of the same moment, the same way everywhere.
func later[T any](x, y T) bool {
	a, _ := json.Marshal(x)
	b, _ := json.Marshal(y)
	return bytes.Compare(a, b) > 0
}

// sameItems compares without regard to the order.
func sameItems(a, b []Item) bool {
	text := func(items []Item) []byte {
		sorted := slices.SortedFunc(slices.Values(items), func(x, y Item) int { return cmp.Compare(x.ID, y.ID) })
		body, _ := json.Marshal(sorted)
		return body
	}
	return len(a) == len(b) && bytes.Equal(text(a), text(b))
}
