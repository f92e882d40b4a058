package pumpkin

import (
	"log/slog"
	"time"
)

// write says who changes which item, and under which condition.
type write struct {
	actor, remote, id string
	// allow is asked, under the lock, whether the write may be made on this board; nil means yes.
	allow func(board) error
}

// put makes a write and returns the board it led to.
func (p *Pumpkin) put(w write, e Entry) (board, error) {
	var before uint64
	after, err := p.change(func(now time.Time, b board) (board, error) {
		before = b.rev
		if w.allow != nil {
			if err := w.allow(b); err != nil {
				return b, err
			}
		}
		return b.put(now, w.id, e)
	})
	if err != nil {
		return after, err
	}
	p.writes.Add(1)
	h, _ := after.find(w.id)
	p.log.Info("pumpkin: item put", slog.String("id", w.id), slog.String("actor", w.actor), slog.String("remote", w.remote),
		slog.String("reason", e.Reason), slog.String("ticket", e.Ticket), slog.String("severity", string(e.Severity)),
		slog.Any("features", h.notice.Features), slog.Time("expires", h.expires),
		slog.Uint64("rev", after.rev), slog.Bool("changed", after.rev != before))
	return after, nil
}

// clear ends an item and reports whether it was there.
func (p *Pumpkin) clear(w write) (bool, error) {
	var was held
	var found bool
	after, err := p.change(func(now time.Time, b board) (board, error) {
		was, found = b.find(w.id)
		return b.clear(now, w.id), nil
	})
	if err != nil {
		return false, err
	}
	p.writes.Add(1)
	p.log.Info("pumpkin: item deleted", slog.String("id", w.id), slog.String("actor", w.actor), slog.String("remote", w.remote),
		slog.String("reason", was.reason), slog.Bool("found", found), slog.Uint64("rev", after.rev))
	return found, nil
}

// change replaces the board by what f makes of it, publishes it and sets the timer. f sees a board without expired items.
// An error of f changes nothing else. What is to be logged is logged after the lock is released: a handler may block.
func (p *Pumpkin) change(f func(now time.Time, b board) (board, error)) (board, error) {
	p.mu.Lock()
	if p.closed {
		b := p.board
		p.mu.Unlock()
		return b, refuse(Closed, "this pumpkin is closed")
	}
	now := time.Now()
	swept, gone := p.board.expire(now)
	next, err := f(now, swept)
	if err != nil {
		next = swept
	}
	p.publishLocked(now, next)
	p.mu.Unlock()
	for _, h := range gone {
		p.log.Info("pumpkin: item expired", slog.String("id", h.notice.ID), slog.String("reason", h.reason), slog.Uint64("rev", swept.rev))
	}
	return next, err
}

// publishLocked shows b to readers and arms the one timer for its next expiry.
func (p *Pumpkin) publishLocked(now time.Time, b board) {
	p.board = b
	p.current.Store(newSnapshot(b))
	p.disarmLocked()
	at, ok := b.next()
	if !ok {
		return
	}
	p.timers.Add(1)
	p.timer = time.AfterFunc(at.Sub(now), p.expire)
}

// disarmLocked stops the timer. One that has fired ends by itself: it waits for the lock, and finds nothing to do or Close.
func (p *Pumpkin) disarmLocked() {
	if p.timer != nil && p.timer.Stop() {
		p.timers.Done()
	}
	p.timer = nil
}

// expire is the timer's function: the end of an item shows without any request.
func (p *Pumpkin) expire() {
	defer p.timers.Done()
	_, _ = p.change(func(_ time.Time, b board) (board, error) { return b, nil }) // fails only when closed
}
