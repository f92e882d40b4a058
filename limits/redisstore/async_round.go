package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// run merges until Close, and then once more.
func (a *Async) run() {
	defer close(a.stopped)
	last := time.Now()
	for {
		wait := time.NewTimer(a.cfg.Every - rand.N(a.cfg.Every/5))
		select {
		case <-wait.C:
			begin := time.Now()
			a.round(last)
			last = begin
		case <-a.base.Done():
			wait.Stop()
			a.round(last)
			return
		}
	}
}

// round tells the store what was admitted here, hears about all balances that were wanted since a time, and forgets those that
// nobody wants.
func (a *Async) round(since time.Time) {
	var batch []*merging
	var views []*view
	send := func() {
		if len(batch) > 0 {
			a.tell(batch, views)
			batch, views = nil, nil
		}
	}
	now := time.Now()
	a.views.Range(func(name, found any) bool {
		w := found.(*view)
		if m := w.tell(name.(balanceName).key, since, now); m != nil {
			if batch, views = append(batch, m), append(views, w); len(batch) == mostTold {
				send()
			}
		} else if w.forget(now.Add(-staleAfter * a.cfg.Every)) {
			a.views.Delete(name)
			a.known.Add(-1)
		}
		return true
	})
	send()
}

// tell sends one message.
func (a *Async) tell(batch []*merging, views []*view) {
	ctx, cancel := context.WithTimeout(context.Background(), max(a.cfg.Every, DefaultTimeout)) // a Guard has its own time
	defer cancel()
	err := a.merger.merge(ctx, batch)
	late, now, n := errors.Is(err, errLate), time.Now(), a.instances()
	for i, m := range batch {
		why := err
		if !late {
			if why = m.err; why == nil && m.now == 0 {
				why = err
			}
		}
		views[i].hear(m, why != nil, mayHaveCharged(why), now, staleAfter*a.cfg.Every, n)
	}
	if err != nil {
		a.merges[1].Add(1)
		return
	}
	a.merges[0].Add(1)
	a.heard.Store(now.UnixNano())
}

// mayHaveCharged reports whether a failed call may have been carried out.
func mayHaveCharged(err error) bool {
	var e *Error
	return err != nil && (!errors.As(err, &e) || e.MayHaveCharged())
}
