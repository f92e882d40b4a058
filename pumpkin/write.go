package pumpkin

import (
	"cmp"
	"errors"
	"log/slog"
	"time"
)

// write says who changes which item, and under which condition.
type write struct {
	actor, remote, id string
	origin            Origin
	action            string // for the audit trail; empty means what the write does
	// allow is asked, under the lock, whether the write may be made on this board; nil means yes.
	allow func(board) error
}

// written is what came of a write.
type written struct {
	board  board
	before uint64 // the rev before it
	local  bool   // the shared store could not be asked
}

func (w written) changed() bool { return w.board.rev != w.before }

// put makes a write and returns the board it led to.
func (p *Pumpkin) put(w write, e Entry) (written, error) {
	var was held
	var had bool
	var done written
	after, local, err := p.commit(func(now time.Time, b board) (board, error) {
		done.before = b.rev
		if was, had = b.find(w.id); w.allow != nil {
			if err := w.allow(b); err != nil {
				return b, err
			}
		}
		who := held{notice: Notice{ID: w.id}, origin: Manual, actor: w.actor}
		if w.origin == Automatic {
			return b.raise(now, who, e)
		}
		return b.write(now, who, e)
	})
	done.board, done.local = after, local
	record := Record{Actor: w.actor, Remote: w.remote, Action: cmp.Or(w.action, "put"), ID: w.id, Reason: e.Reason, Ticket: e.Ticket, Rev: after.rev}
	if had {
		record.Before = itemPointer(was)
	}
	if err != nil {
		p.audit.add(record.refused(err))
		return done, err
	}
	p.writes.Add(1)
	h, _ := after.find(w.id)
	record.After, record.Applied = itemPointer(h), applied(local)
	p.audit.add(record)
	p.log.Info("pumpkin: item put", slog.String("id", w.id), slog.String("actor", w.actor), slog.String("remote", w.remote),
		slog.String("reason", e.Reason), slog.String("ticket", e.Ticket), slog.String("severity", string(e.Severity)),
		slog.Any("features", h.notice.Features), slog.Time("expires", h.expires),
		slog.Uint64("rev", after.rev), slog.Bool("changed", done.changed()), slog.String("applied", applied(local)))
	if warning := p.unenforced(e); warning != "" && w.origin == Manual {
		p.log.Warn("pumpkin: "+warning, slog.String("id", w.id), slog.String("actor", w.actor))
	}
	return done, nil
}

// clear ends an item and reports whether it was there.
func (p *Pumpkin) clear(w write) (bool, error) {
	var was held
	var found bool
	after, local, err := p.commit(func(now time.Time, b board) (board, error) {
		was, found = b.find(w.id)
		if found && w.origin == Automatic && was.origin != Automatic {
			found = false
		}
		if !found {
			return b, nil
		}
		return b.clearBy(now, w.id, w.origin), nil
	})
	record := Record{Actor: w.actor, Remote: w.remote, Action: cmp.Or(w.action, "delete"), ID: w.id, Rev: after.rev}
	if err != nil {
		p.audit.add(record.refused(err))
		return false, err
	}
	if !found && w.origin == Automatic {
		return false, nil // automation may say so again and again
	}
	if found {
		record.Before, record.Reason = itemPointer(was), was.reason
	}
	p.writes.Add(1)
	record.Applied = applied(local)
	p.audit.add(record)
	p.log.Info("pumpkin: item deleted", slog.String("id", w.id), slog.String("actor", w.actor), slog.String("remote", w.remote),
		slog.String("reason", record.Reason), slog.Bool("found", found), slog.Uint64("rev", after.rev), slog.String("applied", applied(local)))
	return found, nil
}

// applied is the word for where a write was made.
func applied(local bool) string {
	if local {
		return "local"
	}
	return "yes"
}

func itemPointer(h held) *Item {
	it := h.item()
	return &it
}

// change replaces the board by what f makes of it, publishes it and sets the timer. f sees a board that is up to date.
// An error of f changes nothing else. What is to be logged is logged after the lock is released: a handler may block.
func (p *Pumpkin) change(f func(now time.Time, b board) (board, error)) (board, error) {
	p.mu.Lock()
	if p.closed {
		b := p.board
		p.mu.Unlock()
		return b, refuse(Closed, "this pumpkin is closed")
	}
	now := time.Now()
	current, events := p.board.advance(now)
	next, err := f(now, current)
	if err != nil {
		next = current
	}
	p.publishLocked(now, next)
	p.mu.Unlock()
	p.report(events)
	if _, refused := errors.AsType[*Refusal](err); !refused {
		p.tell()
	}
	return next, err
}

// report logs what time did.
func (p *Pumpkin) report(events []event) {
	for _, e := range events {
		record := Record{Actor: "clock", ID: e.item.notice.ID, Reason: e.item.reason, Rev: e.rev, Applied: applied(false)}
		attrs := []any{slog.String("id", e.item.notice.ID), slog.String("reason", e.item.reason), slog.Uint64("rev", e.rev)}
		switch e.what {
		case started:
			record.Action, record.After = "start", itemPointer(e.item)
			p.log.Info("pumpkin: item starts as scheduled", attrs...)
		case nearsEnd:
			record.Action, record.After = "ends_soon", itemPointer(e.item)
			p.log.Warn("pumpkin: item ends soon; put it again to prolong it", append(attrs, slog.Time("expires", e.item.expires))...)
		case ended:
			record.Action, record.Before = "expire", itemPointer(e.item)
			p.log.Info("pumpkin: item expired", attrs...)
		}
		p.audit.add(record)
	}
}

// publishLocked shows b to readers and arms the one timer for what happens next.
func (p *Pumpkin) publishLocked(now time.Time, b board) {
	p.board = b
	p.current.Store(newSnapshot(b))
	p.disarmLocked()
	at, ok := b.next()
	if !ok {
		return
	}
	p.timers.Add(1)
	p.timer = time.AfterFunc(at.Sub(now), p.onTime)
}

// disarmLocked stops the timer. One that has fired ends by itself: it waits for the lock, and finds nothing to do or Close.
func (p *Pumpkin) disarmLocked() {
	if p.timer != nil && p.timer.Stop() {
		p.timers.Done()
	}
	p.timer = nil
}

// onTime is the timer's function: the start and the end of an item show without any request.
func (p *Pumpkin) onTime() {
	defer p.timers.Done()
	_, _ = p.change(func(_ time.Time, b board) (board, error) { return b, nil }) // fails only when closed
}
