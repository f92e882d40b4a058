package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/spillway-go/spillway/limits"
)

// gather runs n goroutines that start together and returns when all are done.
func gather(n int, run func(i int)) {
	var all sync.WaitGroup
	barrier := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-barrier
			run(i)
		})
	}
	close(barrier)
	all.Wait()
}

func exactlyOnce(s limits.Store) error {
	c, p := newClient(s), policy("crowd", limits.TokenBucket{Capacity: 50, Refill: limits.PerHour(1)})
	for round := range 30 {
		key := fmt.Sprint("round ", round)
		for _, v := range []struct {
			taken   int64
			callers int
			pass    int64
		}{{49, 40, 1}, {0, 200, 50}} {
			key := fmt.Sprint(key, " of ", v.callers)
			c.allowed(charge(p, key, v.taken))
			var passed atomic.Int64
			gather(v.callers, func(int) {
				w := *c
				if w.take(charge(p, key, 1)).Allowed {
					passed.Add(1)
				}
			})
			if n := passed.Load(); n != v.pass {
				c.failf("%d of %d simultaneous charges pass, want %d", n, v.callers, v.pass)
			}
		}
	}
	return c.err
}

// crossingCharges takes from the same balances in every order from many goroutines, and gives half of it back.
func crossingCharges(s limits.Store) error {
	c := newClient(s)
	p := policy("crossing", limits.TokenBucket{Capacity: 1000, Refill: limits.PerDay(1)})
	keys := []string{"a", "b", "c", "d", "e"}
	const goroutines, rounds = 10, 60
	var mu sync.Mutex
	gather(goroutines, func(g int) {
		w := *c
		for i := range rounds {
			charges := make([]limits.Charge, len(keys))
			for j := range keys {
				charges[j] = charge(p, keys[(j*(1+g%4)+i)%len(keys)], 1)
			}
			d := w.allowed(charges...)
			if i%2 == 0 {
				w.refund(d)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if w.err != nil {
			c.failf("%v", w.err)
		}
	})
	for _, key := range keys {
		c.remaining(p, key, 1000-goroutines*rounds/2)
	}
	return c.err
}
