package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// call is one call of the store, within the Guard's own time.
type call struct {
	op      string // "take", "peek", "refund" or "merge"
	caller  context.Context
	now     time.Time
	charges []limits.Charge
	undo    *limits.Decision // a pointer, for a call is copied and a Decision is large
	merging []*merging
	under   *atomic.Int64 // counts it while it is under way
}

// make makes the call; what the store has decided is in d.
func (c *call) make(ctx context.Context, inner limits.Store, d *limits.Decision) (err error) {
	switch c.op {
	case "take":
		*d, err = inner.Take(ctx, c.now, c.charges)
	case "peek":
		*d, err = inner.Peek(ctx, c.now, c.charges)
	case "merge":
		err = inner.(merger).merge(ctx, c.merging)
	default:
		err = inner.Refund(ctx, c.now, *c.undo)
	}
	return err
}

// errBusy is not counted as a failure of the store: it is this process that asks too much at once.
var errBusy = errors.New("as many calls are under way as may be")

var errLate = fmt.Errorf("no answer within the store's timeout: %w", context.DeadlineExceeded)

// call asks the store and notes how that went. What was decided is in d: a Decision is large, and a copy at each step would be most
// of what a Guard costs.
func (g *Guard) call(c call, d *limits.Decision) *Error {
	if g.calls.Add(1) > int64(g.cfg.MaxCalls) {
		g.calls.Add(-1)
		g.failed[NotExecuted].Add(1)
		return &Error{Kind: NotExecuted, Op: c.op, Err: errBusy}
	}
	c.under = &g.calls
	if err := g.send(g.inTime(c.caller), c, d); err != nil {
		return g.note(c, err)
	}
	g.breaker.success()
	return nil
}

// send makes a call that ends with ctx.
func (g *Guard) send(ctx context.Context, c call, d *limits.Decision) error {
	if !g.punctual {
		return g.watch(ctx, c, d)
	}
	defer c.under.Add(-1) // also when it panics
	return c.make(ctx, g.inner, d)
}

// note makes an *Error of what a call returned, and opens the breaker when it is time.
func (g *Guard) note(c call, err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Kind: Unknown, Op: c.op, Sent: true, Err: err}
	}
	if e.Kind == Cancelled { // the context was ours, not the caller's: this is our timeout
		late := *e
		late.Kind = NotExecuted
		if late.Sent {
			late.Kind = Unknown
		}
		e = &late
	}
	g.failed[e.Kind].Add(1)
	switch {
	case e.Kind == Malformed, g.base.Err() != nil:
	case concernsOneKey(e):
		g.warn(e.Error())
	default:
		if g.breaker.failure() {
			g.remember(c)
			g.opened(e)
		}
	}
	return e
}

// remember notes which keys a call was about, for the probe to ask about them: on a cluster they tell which server failed.
func (g *Guard) remember(c call) {
	keys := make([]string, 0, len(c.charges))
	for i := range c.charges {
		if k := c.charges[i].Key; !slices.Contains(keys, k) && len(keys) < 4 {
			keys = append(keys, k)
		}
	}
	g.failing.Store(&keys)
}

// concernsOneKey reports whether other keys can be decided about all the same.
func concernsOneKey(err error) bool {
	var own *wrongValue
	return errors.As(err, &own) || has(unwrapped(err), "WRONGTYPE")
}

func unwrapped(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// result is what a watched call came to.
type result struct {
	d        limits.Decision
	err      error
	panicked any
}

// watch makes a call of a store that may not mind its deadline. The number of such calls is bounded by MaxCalls; each counts
// until it has ended, whoever still waits for it.
func (g *Guard) watch(ctx context.Context, c call, d *limits.Decision) error {
	done := make(chan result, 1)
	spawned := g.life.spawn(func() {
		defer c.under.Add(-1)
		var r result
		defer func() {
			if r.panicked = recover(); r.panicked != nil {
				r.err = fmt.Errorf("the store panicked: %v", r.panicked)
			}
			done <- r
		}()
		r.err = c.make(ctx, g.inner, &r.d)
	})
	if !spawned {
		c.under.Add(-1)
		return &Error{Kind: Cancelled, Op: c.op, Err: ErrClosed}
	}
	select {
	case r := <-done:
		if r.panicked != nil {
			panic(r.panicked)
		}
		*d = r.d
		return r.err
	case <-ctx.Done():
		return &Error{Kind: Unknown, Op: c.op, Sent: true, Err: errLate}
	}
}

// epoch is a deadline that the calls of a short time share: making one for each would cost more than all else here.
type epoch struct {
	ctx    context.Context
	cancel context.CancelFunc // after the deadline there is nothing left to cancel; Close cancels all
	until  time.Duration      // it is good for calls until then, counted from the beginning of the Guard
}

// inTime returns a context that ends within the store's timeout (and not before nine tenths of it), and not with the
// caller's: a cancelled call would cost a connection. What the caller's context carries, it carries too.
func (g *Guard) inTime(caller context.Context) context.Context {
	now := time.Since(g.begin) // costs less than time.Now
	e := g.epoch.Load()
	if e == nil || now > e.until {
		ctx, cancel := context.WithTimeout(g.base, g.cfg.Timeout)
		e = &epoch{ctx, cancel, now + g.cfg.Timeout/10}
		g.epoch.Store(e)
	}
	return budgeted{e.ctx, caller}
}

// budgeted ends as its first context does, and carries what both carry.
type budgeted struct {
	context.Context
	caller context.Context
}

func (b budgeted) Value(key any) any {
	if v := b.Context.Value(key); v != nil {
		return v
	}
	return b.caller.Value(key)
}
