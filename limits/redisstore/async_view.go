package redisstore

import (
	"sync"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// view is what a process knows of one balance, and has admitted from it on its own.
type view struct {
	mu     sync.Mutex
	gone   bool // it is not in the table any more
	policy *limits.Policy
	used   time.Time // when it was last wanted

	// What was heard at a time, by the store's clock in µs and by ours; with what was admitted here since. It is believed until
	// another time. The store's clock goes on here n times slower: one of n instances may use one n-th of what the rate brings.
	account [1]limits.Account
	now     int64
	at      time.Time
	until   time.Time
	n       int64

	unsent  int64          // was admitted here, and not told yet
	took    int64          // when the first of that was, by the store's clock
	last    time.Time      // when the last was, by our clock
	sending int64          // is being told
	began   int64          // from when on the store does not know of any of both
	alone   limits.Account // what would be owed had there been nothing else

	charge [1]limits.Charge // is here so that nothing is allocated
}

// use returns the view of a balance, made now if need be. It is nil if there are too many.
func (a *Async) use(c *limits.Charge, now time.Time) *view {
	name := balanceName{c.Policy.Name(), c.Key}
	for {
		found, ok := a.views.Load(name)
		if !ok {
			if a.known.Add(1) > int64(a.cfg.MaxKeys) {
				a.known.Add(-1)
				return nil
			}
			if found, ok = a.views.LoadOrStore(name, &view{policy: c.Policy}); ok {
				a.known.Add(-1)
			}
		}
		w := found.(*view)
		w.mu.Lock()
		gone := w.gone
		w.used = now
		w.mu.Unlock()
		if !gone {
			return w
		}
	}
}

// only says that the one charge is against the one account.
var only = []int{0}

// decide answers a charge, and reports whether enough is known for that.
func (w *view) decide(c *limits.Charge, now time.Time, effect limits.Effect, every time.Duration, v *limits.Verdict) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.Policy != w.policy {
		if c.Policy.Rule() != w.policy.Rule() {
			w.until = time.Time{} // the store takes the balance over
		}
		w.policy = c.Policy
		w.restart(w.time(now))
	}
	if !now.Before(w.until) {
		return false
	}
	at := w.clock(w.time(now))
	w.charge[0] = *c
	var d limits.Decision
	limits.Decide(at, w.charge[:], w.account[:], only, effect, &d)
	*v = *d.At(0)
	if v.Taken != limits.NotTaken {
		w.take(c.Cost, w.time(now), now)
		v.Taken = w.time(now)
	}
	stretch(v, w.n, every)
	return true
}

// stretch makes the times of a verdict such that they hold here: n times as long, for the clock is so much slower, but no longer
// than until the store is asked, if nobody wants anything meanwhile. Then there has been at most one more merge, and what that has
// told is not believed any more.
func stretch(v *limits.Verdict, n int64, every time.Duration) {
	for _, t := range []*time.Duration{&v.RetryAfter, &v.NextAfter, &v.ResetAfter} {
		*t = min(longer(*t, n), max(*t, (staleAfter+2)*every))
	}
}

// take notes what was admitted.
func (w *view) take(cost, at int64, now time.Time) {
	if w.unsent == 0 {
		w.took = at
		if w.sending == 0 {
			w.restart(at)
		}
	}
	w.unsent += cost
	w.last = now
	w.alone.Owe(at, cost)
}

// restart counts what was not told as if all of it had been admitted at one time.
func (w *view) restart(at int64) {
	w.began = at
	w.alone = w.policy.Account(0, 0, 0, nil)
	w.alone.Owe(at, w.unsent+w.sending)
}

// time is the store's time, or a little before.
func (w *view) time(now time.Time) int64 { return w.now + max(now.Sub(w.at), 0).Microseconds() }

// clock is that time as it goes on here.
func (w *view) clock(time int64) int64 { return w.now + max(time-w.now, 0)/w.n }

// cancel undoes a charge that nobody has been told of, and reports whether it was one.
func (w *view) cancel(v *limits.Verdict, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unsent < v.Cost || v.Taken < w.took {
		return false
	}
	w.unsent -= v.Cost
	w.alone.GiveBack(w.time(now), v.Cost, v.Taken)
	w.account[0].GiveBack(w.clock(w.time(now)), v.Cost, w.clock(v.Taken))
	return true
}

// tell returns what is to be merged, or nil if nobody has wanted the balance since a time.
func (w *view) tell(key string, since time.Time, now time.Time) *merging {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unsent > 0 && now.Sub(w.last) > w.policy.Window() {
		w.unsent = 0 // time has paid for all that was owed when the last was admitted
	}
	if w.unsent == 0 && w.used.Before(since) {
		return nil
	}
	m := &merging{policy: w.policy, key: key, amount: w.unsent, began: w.began, alone: w.alone}
	w.sending, w.unsent = w.unsent, 0
	return m
}

// hear takes in what became of a merge. Sent says that what failed may have been carried out.
func (w *view) hear(m *merging, failed, sent bool, now time.Time, lasts time.Duration, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	sending := w.sending
	w.sending = 0
	switch {
	case failed && !sent: // it will be told with the next
		if sending > 0 {
			w.unsent, w.took = w.unsent+sending, m.began
		}
		return
	case failed:
	case !m.same, m.policy.Rule() != w.policy.Rule(): // the store takes the balance over when it is asked
		w.until = time.Time{}
	default:
		w.account[0] = w.policy.Account(m.owed, m.last, m.since, nil)
		w.account[0].Owe(m.now, w.unsent) // what was admitted while the answer was on its way
		w.now, w.at, w.until, w.n = m.now, now, now.Add(lasts), int64(n)
	}
	if w.unsent > 0 {
		w.restart(w.time(now))
	}
}

// forget reports whether a view has not been used since a time, and is not in the table any more then.
func (w *view) forget(since time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = w.unsent == 0 && w.sending == 0 && w.used.Before(since)
	return w.gone
}
