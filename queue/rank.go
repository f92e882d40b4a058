package queue

import "time"

// promised reports that the tier has been passed over as often as it may be: the next turn is its own.
func (t *tier) promised() bool { return t.passed >= PromisedTurn-1 }

// ahead estimates how many of this tier would be served before w.
func (t *tier) ahead(w *Waiter, newest bool) int {
	if t.len == 0 {
		return 0
	}
	f := t.clients.find(w.Client)
	due := f == nil || f.tag-t.clock <= 0
	round := t.cost * scale / int64(t.len) // the virtual time of a round at the present mean cost
	switch {
	case newest && due:
		return 0 // nobody is newer
	case newest:
		return int(min(ceil((f.tag-t.clock)*int64(t.active), round), int64(t.len-f.len)))
	case f == nil:
		return t.ready.len() // whoever becomes ready from now on stands behind
	}
	// Everybody gets as many turns as the client needs for its debt, its others and w.
	rounds := max(ceil(f.tag-t.clock, round), 1) + f.cost*scale/round
	return t.depth.upTo(int(min(rounds, int64(t.longest))))
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

// last returns who is displaced first of this tier: the last of the client with the most waiters, of the one that came to so
// many last. While the newest goes first, the last is the oldest.
func (t *tier) last(newest bool) *Waiter {
	if newest {
		return t.byLen[t.longest].head.oldest
	}
	return t.byLen[t.longest].tail.newest
}

// behind returns who of this tier is displaced by w of the same, or nil: the last of a client that has more waiters than w's
// would have with w. To displace an equal would only mean that another one has waited in vain.
func (t *tier) behind(w *Waiter, newest bool) *Waiter {
	own := 0
	if f := t.clients.find(w.Client); f != nil {
		own = f.len
	}
	if t.longest > own+1 {
		return t.last(newest)
	}
	return nil
}

// Backlog is how many waiters a client has in one priority.
type Backlog struct {
	Client   string
	Priority int
	Waiting  int
}

// Waiting returns how many of a priority wait, those not counted whose deadline was seen to have passed.
func (f *Fair) Waiting(priority int) int {
	return f.tiers[tierOf(priority)].len
}

// NewestFirst reports whether refusals of a priority last at now, so that its newest goes first.
func (f *Fair) NewestFirst(now time.Duration, priority int) bool {
	return f.tiers[tierOf(priority)].surge.lasts(now)
}

// Greediest returns the up to n clients with the most waiters, most first; equals by priority, higher first.
func (f *Fair) Greediest(n int) []Backlog {
	var all []Backlog
	longest := 0
	for i := range f.tiers {
		longest = max(longest, f.tiers[i].longest)
	}
	for l := longest; l > 0; l-- {
		for i := len(f.tiers) - 1; i >= 0; i-- {
			if l > f.tiers[i].longest {
				continue
			}
			for c := f.tiers[i].byLen[l].head; c != nil; c = c.next {
				if len(all) == n {
					return all
				}
				all = append(all, Backlog{Client: c.client, Priority: i + LowestPriority, Waiting: l})
			}
		}
	}
	return all
}
