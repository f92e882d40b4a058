package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// How often a store that is down is probed: first soon, for many outages are one lost connection, and then at random between
// the bounds, so that many instances do not knock at once.
const (
	firstProbe = 50 * time.Millisecond
	probeMin   = 200 * time.Millisecond
	probeMax   = 500 * time.Millisecond
)

// maxProbes bounds how many probes may hang in a client that minds no deadline; with its usual 5 s that is enough to go on
// probing.
const maxProbes = 16

// maxWarnings bounds what Report repeats.
const maxWarnings = 16

// greet finds out at the start whether the store answers, so that it is known before the first request.
func (g *Guard) greet() {
	defer close(g.greeted)
	if err := g.probe(); err != nil && g.base.Err() == nil {
		if g.breaker.trip() {
			g.opened(err)
		}
		return
	}
	g.inspect()
}

// inspector is a store that can find out what is wrong with the way it is set up.
type inspector interface {
	Inspect(ctx context.Context) ([]string, error)
	Durability(ctx context.Context) ([]string, error)
}

// inspect passes on what the store finds wrong with itself.
func (g *Guard) inspect() {
	i, ok := g.inner.(inspector)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(g.base, time.Second)
	defer cancel()
	found, err := i.Inspect(ctx)
	if g.strict.Load() && err == nil {
		var more []string
		more, err = i.Durability(ctx)
		found = append(found, more...)
	}
	for _, w := range found {
		g.warn(w)
	}
	if err != nil && g.strict.Load() && failed(ctx, "inspect", err).Kind == Misconfigured {
		g.warn("a limit is strict, and whether Redis may evict or forget balances could not be found out, for that takes the rights " +
			"+config|get and +info")
	} // other users often have no such rights, and the store works without
}

// warn passes a warning on, once.
func (g *Guard) warn(warning string) {
	g.mu.Lock()
	known := slices.Contains(g.warnings, warning) || len(g.warnings) == maxWarnings
	if !known {
		g.warnings = append(g.warnings, warning)
	}
	g.mu.Unlock()
	if !known && g.cfg.Warn != nil {
		g.cfg.Warn(warning)
	}
}

// opened is called by whoever opened the breaker.
func (g *Guard) opened(err *Error) {
	state := Down
	if err.Kind == Misconfigured || err.Kind == OutOfMemory {
		state = Faulty
	}
	g.why.Store(&Error{Kind: NotExecuted, Op: err.Op, Err: fmt.Errorf("it is not asked, for it failed before: %w", err)})
	g.changed(state, err)
	g.life.spawn(g.probeOn)
}

// changed notes a change of state and tells it. Who finds somebody telling leaves it to him, so that the order holds.
func (g *Guard) changed(to State, err error) {
	g.mu.Lock()
	now := time.Now()
	g.untold = append(g.untold, Change{State: to, At: now, Err: err, Lasted: now.Sub(g.since)})
	g.state, g.since = to, now
	g.changes++
	if err != nil {
		g.lastErr = err
	}
	if g.telling {
		g.mu.Unlock()
		return
	}
	g.telling = true
	for len(g.untold) > 0 {
		next := g.untold[0]
		g.untold = g.untold[1:]
		g.mu.Unlock()
		if g.cfg.OnChange != nil {
			g.cfg.OnChange(next)
		}
		g.mu.Lock()
	}
	g.telling = false
	g.mu.Unlock()
}

// probeOn asks the store until it answers, and then closes the breaker.
func (g *Guard) probeOn() {
	wait := firstProbe
	for {
		select {
		case <-g.base.Done():
			return
		case <-time.After(wait):
		}
		err := g.probe()
		if err == nil {
			break
		}
		if g.base.Err() != nil {
			return
		}
		g.mu.Lock()
		g.lastErr = err
		g.mu.Unlock()
		wait = probeMin + rand.N(probeMax-probeMin)
	}
	g.failing.Store(nil)
	g.changed(Up, nil)
	g.breaker.close() // last: whoever opens it again changes the state after us
	g.inspect()
}

// knocker is a store that can find out cheaply that nobody is there.
type knocker interface {
	knock(ctx context.Context) error
}

// probe makes one charge that concerns nobody, on the servers that failed last. It writes, for a replica that was a master
// before still answers who only looks.
func (g *Guard) probe() *Error {
	ctx, cancel := context.WithTimeout(g.base, g.cfg.Timeout)
	defer cancel()
	c := call{op: "take", caller: ctx}
	if keys := g.failing.Load(); keys != nil {
		for _, k := range *keys {
			c.charges = append(c.charges, limits.Charge{Policy: g.probes, Key: k, Cost: 1})
		}
	}
	if len(c.charges) == 0 {
		c.charges = []limits.Charge{{Policy: g.probes, Cost: 1}}
	}
	if g.probing.Add(1) > maxProbes {
		g.probing.Add(-1)
		return &Error{Kind: Unknown, Op: "probe", Err: errLate}
	}
	c.under = &g.probing
	if k, ok := g.inner.(knocker); ok {
		if err := k.knock(ctx); err != nil {
			g.probing.Add(-1)
			return failed(context.Background(), "probe", err)
		}
	}
	err := g.send(ctx, c, new(limits.Decision))
	if err == nil {
		return nil
	}
	kind, ok := KindOf(err)
	if !ok {
		kind = Unknown
	}
	if kind == Cancelled {
		kind = NotExecuted
	}
	return &Error{Kind: kind, Op: "probe", Err: unwrapped(err)}
}
