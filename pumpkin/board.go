package pumpkin

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"time"
)

// held is an item: in force, or waiting for its start.
type held struct {
	notice  Notice
	starts  time.Time // zero: it was in force from the moment it was written
	expires time.Time
	warn    time.Time // when to say that its end is near; zero once that is said
	updated time.Time // when it was last written
	origin  Origin
	actor   string // who wrote it

	reason, ticket, template string
}

// since is when the time of h began.
func (h held) since() time.Time {
	if h.starts.IsZero() {
		return h.updated
	}
	return h.starts
}

// handsOff keeps automation from an item, or from all of them, for a while.
type handsOff struct {
	id            string // or Everything
	until         time.Time
	updated       time.Time
	actor, reason string
}

// tombstone remembers that an item was ended, so that a state from elsewhere that still has it does not bring it back.
type tombstone struct {
	id             string
	cleared, until time.Time
	auto           bool // by automation
}

// override is what the break-glass file says. It hides all else while it lasts.
type override struct {
	items []held // in the document's order
}

// board is the state as a value: what is in force, and the document that says so. Every operation takes now and returns
// the next board, leaving the old one as it was. So a refused write changes nothing, and a dry run is a write whose result
// is thrown away. Its slices and maps are never changed once it is made.
type board struct {
	lang                 string
	pollActive, pollIdle int // seconds

	epoch      string
	rev        uint64
	seq        uint64     // what the shared store has counted
	unseen     bool       // nobody has been told of this epoch, so another may take its place
	locals     int        // writes that the shared store does not have yet
	held       []held     // in force, in the document's order
	waiting    []held     // to be in force later
	holds      []handsOff // force_off
	tombstones []tombstone
	over       *override // nil: there is none
	body       []byte    // the document
}

// newBoard returns an empty board at rev 0.
func newBoard(epoch, lang string, pollActive, pollIdle int) board {
	b := board{lang: lang, pollActive: pollActive, pollIdle: pollIdle, epoch: epoch}
	b.body = b.document().render()
	return b
}

// put returns the board with the item id replaced by e as a person wrote it.
func (b board) put(now time.Time, id string, e Entry) (board, error) {
	return b.write(now, held{notice: Notice{ID: id}, origin: Manual}, e)
}

// write returns the board with an item replaced by e, valid for its TTL from now or from its start. who says which item
// and who writes. The error is a *Refusal; the board it comes with has only moved on in time.
func (b board) write(now time.Time, who held, e Entry) (board, error) {
	b, _ = b.advance(now)
	id := who.notice.ID
	if err := e.check(id, b.lang); err != nil {
		return b, err
	}
	h := who
	h.notice, h.updated = e.notice(id), now
	h.reason, h.ticket, h.template = e.Reason, e.Ticket, e.Template
	from := now
	if !e.StartsAt.IsZero() {
		from = sameMoment(now, e.StartsAt)
		h.starts = from
	}
	h.expires = from.Add(cmp.Or(e.TTL, defaultTTL))
	if !now.Before(h.expires) {
		return b, refuse(InvalidField, "starts_at: with its ttl the item would be over already")
	}
	if from.Sub(now) > maxAhead {
		return b, refuse(InvalidField, "starts_at: more than %d days ahead", maxAhead/(24*time.Hour))
	}
	h.warn = endsSoon(from, h.expires)

	live, waiting := make([]held, 0, len(b.held)+1), make([]held, 0, len(b.waiting)+1)
	h.notice.NoticeRev = b.rev + 1 // what people see has changed, so the bytes have, so this is the rev that commit will give
	for _, other := range b.held {
		if other.notice.ID != id {
			live = append(live, other)
		} else if other.notice.sameToPeople(h.notice) {
			h.notice.NoticeRev = other.notice.NoticeRev
		}
	}
	for _, other := range b.waiting {
		if other.notice.ID != id {
			waiting = append(waiting, other)
		}
	}
	if len(live)+len(waiting) >= maxItems {
		return b, refuse(TooManyItems, "there are %d items, scheduled ones included, at most %d; delete one", len(live)+len(waiting), maxItems)
	}
	if now.Before(from) {
		h.notice.NoticeRev = 0 // told when it starts
		waiting = append(waiting, h)
	} else {
		live = append(live, h)
	}
	// All of them together must fit, whenever each is in force: what was accepted is never dropped later.
	if n := len(b.documentOf(slices.Concat(live, waiting)).render()); n > maxDocument {
		return b, refuse(DocumentTooLarge, "the document would be %d bytes, at most %d; shorten messages or delete an item", n, maxDocument)
	}
	next := b
	next.waiting = waiting
	next.tombstones = slices.DeleteFunc(slices.Clone(b.tombstones), func(t tombstone) bool { return t.id == id || !now.Before(t.until) })
	return next.commit(live), nil
}

// clear returns the board without the item id, which a person has ended.
func (b board) clear(now time.Time, id string) board { return b.clearBy(now, id, Manual) }

// clearBy is clear for whoever it was.
func (b board) clearBy(now time.Time, id string, by Origin) board {
	b, _ = b.advance(now)
	h, ok := b.find(id)
	if !ok {
		return b
	}
	isIt := func(h held) bool { return h.notice.ID == id }
	t := tombstone{id: id, cleared: now, until: now.Add(maxTTL), auto: by == Automatic}
	if h.expires.After(t.until) {
		t.until = h.expires
	}
	next := b
	next.tombstones = append(slices.DeleteFunc(slices.Clone(b.tombstones), func(t tombstone) bool { return t.id == id || !now.Before(t.until) }), t)
	if len(next.tombstones) > maxTombstones {
		next.tombstones = next.tombstones[len(next.tombstones)-maxTombstones:]
	}
	next.waiting = slices.DeleteFunc(slices.Clone(b.waiting), isIt)
	return next.commit(slices.DeleteFunc(slices.Clone(b.held), isIt))
}

// happening is what time did to an item.
type happening uint8

const (
	started happening = iota
	nearsEnd
	ended
)

// event is one such happening, and the rev it led to.
type event struct {
	what happening
	item held
	rev  uint64
}

// advance returns the board at now: what was scheduled has started, what has reached its end is gone. Moments are taken one
// after the other, and what happens at one moment is one change. So instances that hold the same items count the same revs,
// however late each of them looks.
func (b board) advance(now time.Time) (board, []event) {
	var events []event
	for {
		at, ok := b.next()
		if !ok || now.Before(at) {
			return b, events
		}
		var more []event
		b, more = b.moment(at)
		events = append(events, more...)
	}
}

// moment does what happens at one moment.
func (b board) moment(at time.Time) (board, []event) {
	var events []event
	var live, waiting []held
	for _, h := range b.held {
		switch {
		case !at.Before(h.expires):
			events = append(events, event{what: ended, item: h})
			continue
		case !h.warn.IsZero() && !at.Before(h.warn):
			events = append(events, event{what: nearsEnd, item: h})
			h.warn = time.Time{}
		}
		live = append(live, h)
	}
	for _, h := range b.waiting {
		if at.Before(h.starts) {
			waiting = append(waiting, h)
			continue
		}
		h.notice.NoticeRev = b.rev + 1
		live = append(live, h)
		events = append(events, event{what: started, item: h})
	}
	next := b
	next.waiting = waiting
	if b.over != nil {
		next.over = &override{slices.DeleteFunc(slices.Clone(b.over.items), func(h held) bool {
			return !h.expires.IsZero() && !at.Before(h.expires)
		})}
	}
	next = next.commit(live)
	for i := range events {
		events[i].rev = next.rev
	}
	return next, events
}

// next returns when something happens next; false when nothing will.
func (b board) next() (at time.Time, ok bool) {
	soonest := func(t time.Time) {
		if !t.IsZero() && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	for _, h := range b.held {
		soonest(h.expires)
		soonest(h.warn)
	}
	for _, h := range b.waiting {
		soonest(h.starts)
	}
	if b.over != nil {
		for _, h := range b.over.items {
			soonest(h.expires)
		}
	}
	return at, ok
}

// endsSoon is when four fifths of an item's time are over. For what lasts only seconds nobody needs to be warned.
func endsSoon(from, to time.Time) time.Time {
	d := to.Sub(from)
	if d < 10*time.Second {
		return time.Time{}
	}
	return from.Add(d / 5 * 4)
}

// sameMoment is t with the monotonic clock of now, so that a later step of the wall clock does not move it.
func sameMoment(now, t time.Time) time.Time { return now.Add(t.Round(0).Sub(now.Round(0))) }

// identity names the state: <epoch>.<rev>.
func (b board) identity() string { return b.epoch + "." + strconv.FormatUint(b.rev, 10) }

// find returns the item id, in force or waiting.
func (b board) find(id string) (held, bool) {
	for _, items := range [][]held{b.held, b.waiting} {
		for _, h := range items {
			if h.notice.ID == id {
				return h, true
			}
		}
	}
	return held{}, false
}

// shown is what the public sees.
func (b board) shown() []held {
	if b.over != nil {
		return b.over.items
	}
	return b.held
}

// commit returns the board that has items in force, which it takes over. The rev grows exactly when the bytes differ:
// comparing bytes, not fields, cannot forget a field.
func (b board) commit(items []held) board {
	sortItems(items)
	b.held = items
	return b.publish()
}

// publish renders the document anew and gives it a rev if it differs.
func (b board) publish() board {
	old := b.body
	b.body = b.document().render()
	if !bytes.Equal(b.body, old) {
		b.unseen = false
		b.rev++
		b.body = b.document().render()
	}
	return b
}

// sortItems puts the most severe first, and equals in the order of their ids.
func sortItems(items []held) {
	slices.SortFunc(items, func(x, y held) int {
		return cmp.Or(cmp.Compare(x.notice.Severity.rank(), y.notice.Severity.rank()), cmp.Compare(x.notice.ID, y.notice.ID))
	})
}

// document returns what the board tells the public.
func (b board) document() Document { return b.documentOf(b.shown()) }

func (b board) documentOf(items []held) Document {
	d := Document{
		Schema: Schema, Epoch: b.epoch, Rev: b.rev, Active: len(items) > 0, PollAfter: b.pollIdle, DefaultLang: b.lang,
		Items: make([]Notice, len(items)),
	}
	if d.Active {
		d.PollAfter = b.pollActive
	}
	for i, h := range items {
		d.Items[i] = h.notice
	}
	return d
}
