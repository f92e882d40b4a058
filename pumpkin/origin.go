package pumpkin

import (
	"slices"
	"time"
)

// Automation may hold half of the items and half of the document, so that there is always room for a person's words.
const (
	maxAutomatic         = maxItems / 2
	maxAutomaticDocument = maxDocument / 2
)

// Raise puts an item on behalf of automation, named actor in the log. A person always wins: it is refused with ManualWins
// while a person's item of that id is there, with HeldOff while force_off holds the id, and it leaves room for people
// (TooManyItems, DocumentTooLarge). The same entry again prolongs it. The error is a *Refusal; then nothing has changed.
func (p *Pumpkin) Raise(actor, id string, e Entry) error {
	_, err := p.put(write{actor: actor, id: id, origin: Automatic}, e)
	return err
}

// Lower ends an item that automation has raised, and reports whether there was one. A person's item stays. The error is a
// *Refusal, after Close only.
func (p *Pumpkin) Lower(actor, id string) (bool, error) {
	return p.clear(write{actor: actor, id: id, origin: Automatic})
}

// raise is write for automation.
func (b board) raise(now time.Time, who held, e Entry) (board, error) {
	id := who.notice.ID
	if h, ok := b.find(id); ok && h.origin != Automatic {
		return b, refuse(ManualWins, "%q is held by %s; automation does not touch it", id, h.actor)
	}
	if h, ok := b.heldOff(now, id); ok {
		return b, refuse(HeldOff, "%s keeps automation off until %s", h.actor, h.until.UTC().Format(time.RFC3339))
	}
	who.origin = Automatic
	next, err := b.write(now, who, e)
	if err != nil {
		return next, err
	}
	auto := slices.DeleteFunc(slices.Concat(next.held, next.waiting), func(h held) bool { return h.origin != Automatic })
	if len(auto) > maxAutomatic {
		return b, refuse(TooManyItems, "automation holds %d items already, at most %d", len(auto)-1, maxAutomatic)
	}
	if n := len(next.documentOf(auto).render()); n > maxAutomaticDocument {
		return b, refuse(DocumentTooLarge, "automation's items would take %d bytes, at most %d", n, maxAutomaticDocument)
	}
	return next, nil
}

// heldOff returns the hold that keeps automation from id.
func (b board) heldOff(now time.Time, id string) (handsOff, bool) {
	for _, h := range b.holds {
		if (h.id == id || h.id == Everything) && now.Before(h.until) {
			return h, true
		}
	}
	return handsOff{}, false
}

// forceOff returns the board that keeps automation from id until then, without what automation holds of it.
func (b board) forceOff(now time.Time, h handsOff) (board, error) {
	b, _ = b.advance(now)
	next := b
	next.holds = slices.DeleteFunc(slices.Clone(b.holds), func(o handsOff) bool { return o.id == h.id || !now.Before(o.until) })
	if len(next.holds) >= maxItems {
		return b, refuse(TooManyItems, "%d ids are held off, at most %d; end one, or hold off \"*\"", len(next.holds), maxItems)
	}
	next.holds = append(next.holds, h)
	for _, items := range [][]held{b.held, b.waiting} {
		for _, it := range items {
			if it.origin == Automatic && (h.id == Everything || h.id == it.notice.ID) {
				next = next.clearBy(now, it.notice.ID, Automatic) // the hold says already that it was a person
			}
		}
	}
	return next, nil
}

// endForceOff returns the board in which automation may use id again.
func (b board) endForceOff(now time.Time, id string) board {
	b, _ = b.advance(now)
	next := b
	next.holds = slices.DeleteFunc(slices.Clone(b.holds), func(h handsOff) bool { return h.id == id })
	return next
}
