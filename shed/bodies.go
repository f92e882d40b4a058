package shed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// Bodies says how slowly the bodies of requests may come. Nobody holds a place under the concurrency limit while its body is awaited:
// the beginning is gathered first. What comes after that, of long bodies, has to come fast enough. Exempt and long-lived routes are
// left alone. The zero value means all defaults.
type Bodies struct {
	// MinRate is how many bytes have to come in the long run; zero means 240 a second, as in Kestrel. The slowest links that people
	// use are ten times as fast.
	MinRate limits.Rate
	// Grace is how long a body may be slower than that: whoever sends less than Grace × MinRate in that time, and not the rest of the
	// body either, is answered 408. Zero means 5 s.
	Grace time.Duration
	// Gather is how many bytes are awaited before the request takes a place; zero means 16 KiB, and negative none: then a place is held
	// while a body comes.
	Gather int
	// Unwatched lets bodies be as slow as they like, and gathers nothing.
	Unwatched bool
}

// The defaults of Bodies.
const (
	defaultGrace  = 5 * time.Second
	defaultGather = 16 << 10
)

// mostGather bounds Gather: that much memory is held for each body that is awaited.
const mostGather = 1 << 20

// WithDefaults returns b with the defaults in place of zeros. Gather is 0 if nothing is to be gathered.
func (b Bodies) WithDefaults() Bodies {
	if b.MinRate == (limits.Rate{}) {
		b.MinRate = limits.Rate{Amount: 240, Per: time.Second, Bytes: true}
	}
	b.Grace, b.Gather = cmp.Or(b.Grace, defaultGrace), max(cmp.Or(b.Gather, defaultGather), 0)
	return b
}

// check refuses what cannot be meant.
func (b Bodies) check() error {
	switch rate := b.WithDefaults().MinRate; {
	case rate.Amount < 1 || rate.Per < time.Millisecond:
		return fmt.Errorf("shed: bodies: min_rate %d in %v is not above 0; leave it out for 240B/s", rate.Amount, rate.Per)
	case b.Grace < 0 || b.Grace > longestMaxWait:
		return fmt.Errorf("shed: bodies: grace %v is not between 0 and %v; leave it out for %v", b.Grace, longestMaxWait, defaultGrace)
	case b.Gather > mostGather:
		return fmt.Errorf("shed: bodies: gather %d is above %d; that much memory is held for each body that is awaited", b.Gather, mostGather)
	}
	return nil
}

// await lets the request await what it must not hold a place for, for as long as it may still be answered.
func (v *visit) await(req *Request) error {
	ctx, cancel := context.WithCancel(v.ctx)
	defer cancel()
	defer context.AfterFunc(v.s.closing, cancel)()
	if v.route.Deadline > 0 {
		ctx, cancel = context.WithDeadline(ctx, v.s.clock.start.Add(v.hard))
		defer cancel()
	}
	err := req.Await(ctx)
	v.now = v.s.clock.now()
	if v.s.closed.Load() {
		return ErrClosed
	}
	if rejection, ok := errors.AsType[*Rejection](err); ok {
		rejection.Route = v.route.Name
		return v.refuse(rejection)
	}
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return v.gone(err)
	}
	return nil
}

// foresee refuses what the rates of the route would refuse now, before anything is awaited and charged.
func (v *visit) foresee(req *Request, decision *limits.Decision) error {
	if err := v.list(v.route.rules, false, req); err != nil || len(v.charges) == 0 {
		return err
	}
	d, err := v.s.store.Peek(v.ctx, v.s.clock.wall(), v.charges)
	v.now = v.s.clock.now()
	if err != nil || d.Allowed { // what a store that is down means is for the charge to say
		return nil
	}
	*decision = d
	v.count(decision)
	return v.overLimit(decision)
}

// spaced reports whether a rule that delays is about the route. Such rules space out what starts, so whoever has a turn uses it when it
// comes: what has to be awaited is awaited before.
func (r *route) spaced() bool {
	return slices.ContainsFunc(r.rules, func(rule *rule) bool { return rule.Excess == Delay })
}

// Cut says that the rest of the request's body comes too slowly: the work will end soon, and its place is free from now on, as after
// Detach. It is counted in Status.BodiesCut.
func (p Permit) Cut() {
	if p.slot == nil {
		return
	}
	p.s.counts.cut.Add(1)
	p.Detach()
}
