package pumpkin

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"time"
)

// held is an item in force.
type held struct {
	notice         Notice
	expires        time.Time
	reason, ticket string
}

// board is the state as a value: what is in force, and the document that says so. Every operation takes now and returns
// the next board, leaving the old one as it was. So a refused write changes nothing, and a dry run is a write whose result
// is thrown away. Its slices and maps are never changed once it is made.
type board struct {
	lang                 string
	pollActive, pollIdle int // seconds

	epoch string
	rev   uint64
	held  []held // in the document's order
	body  []byte // the document
}

// newBoard returns an empty board at rev 0.
func newBoard(epoch, lang string, pollActive, pollIdle int) board {
	b := board{lang: lang, pollActive: pollActive, pollIdle: pollIdle, epoch: epoch}
	b.body = b.document().render()
	return b
}

// put returns the board with the item id replaced by e, valid for its TTL from now. The error is a *Refusal; the board it
// comes with has only lost what expired.
func (b board) put(now time.Time, id string, e Entry) (board, error) {
	b, _ = b.expire(now)
	if err := e.check(id, b.lang); err != nil {
		return b, err
	}
	ttl := cmp.Or(e.TTL, defaultTTL)
	n := e.notice(id)
	n.NoticeRev = b.rev + 1 // what people see has changed, so the bytes have, so this is the rev that commit will give
	items := make([]held, 0, len(b.held)+1)
	for _, h := range b.held {
		if h.notice.ID != id {
			items = append(items, h)
		} else if h.notice.sameToPeople(n) {
			n.NoticeRev = h.notice.NoticeRev
		}
	}
	if len(items) == maxItems {
		return b, refuse(TooManyItems, "%d items are in force, at most %d; delete one", len(items), maxItems)
	}
	items = append(items, held{notice: n, expires: now.Add(ttl), reason: e.Reason, ticket: e.Ticket})
	next := b.commit(items)
	if len(next.body) > maxDocument {
		return b, refuse(DocumentTooLarge, "the document would be %d bytes, at most %d; shorten messages or delete an item", len(next.body), maxDocument)
	}
	return next, nil
}

// clear returns the board without the item id.
func (b board) clear(now time.Time, id string) board {
	b, _ = b.expire(now)
	if _, ok := b.find(id); !ok {
		return b
	}
	return b.commit(slices.DeleteFunc(slices.Clone(b.held), func(h held) bool { return h.notice.ID == id }))
}

// expire returns the board without what has reached its end, and the items that are gone. However many go at once, that is
// one change.
func (b board) expire(now time.Time) (board, []held) {
	var stay, gone []held
	for _, h := range b.held {
		if now.Before(h.expires) {
			stay = append(stay, h)
		} else {
			gone = append(gone, h)
		}
	}
	if gone == nil {
		return b, nil
	}
	return b.commit(stay), gone
}

// next returns when the next item expires; false when none is in force.
func (b board) next() (time.Time, bool) {
	if len(b.held) == 0 {
		return time.Time{}, false
	}
	return slices.MinFunc(b.held, func(x, y held) int { return x.expires.Compare(y.expires) }).expires, true
}

// identity names the state: <epoch>.<rev>.
func (b board) identity() string { return b.epoch + "." + strconv.FormatUint(b.rev, 10) }

// find returns the item id.
func (b board) find(id string) (held, bool) {
	i := slices.IndexFunc(b.held, func(h held) bool { return h.notice.ID == id })
	if i < 0 {
		return held{}, false
	}
	return b.held[i], true
}

// commit returns the board that holds items, which it takes over. The rev grows exactly when the bytes differ: comparing
// bytes, not fields, cannot forget a field.
func (b board) commit(items []held) board {
	slices.SortFunc(items, func(x, y held) int {
		return cmp.Or(cmp.Compare(x.notice.Severity.rank(), y.notice.Severity.rank()), cmp.Compare(x.notice.ID, y.notice.ID))
	})
	old := b.body
	b.held = items
	b.body = b.document().render()
	if !bytes.Equal(b.body, old) {
		b.rev++
		b.body = b.document().render()
	}
	return b
}

// document returns what the board tells the public.
func (b board) document() Document {
	d := Document{
		Schema: Schema, Epoch: b.epoch, Rev: b.rev, Active: len(b.held) > 0, PollAfter: b.pollIdle, DefaultLang: b.lang,
		Items: make([]Notice, len(b.held)),
	}
	if d.Active {
		d.PollAfter = b.pollActive
	}
	for i, h := range b.held {
		d.Items[i] = h.notice
	}
	return d
}
