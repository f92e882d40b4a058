package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// fire plays the plan and returns a shot for every request that was sent; it ends early with ctx. Every connection has a
// worker that takes the next number, sleeps until that request is due, sends it and waits for the answer. So there is
// always somebody asleep for the next due time as long as not all connections are busy, and no request waits for another.
func fire(ctx context.Context, p Plan, open dialer) []Shot {
	shots := make([]Shot, p.Count)
	conns := make([]conn, p.conns())
	for i := range conns {
		conns[i].plan, conns[i].open = p, open
	}
	connect(ctx, conns)

	start := time.Now().Add(20 * time.Millisecond) // the workers are up by then
	var next, sent atomic.Int64
	var wg sync.WaitGroup
	for i := range conns {
		c := &conns[i]
		wg.Go(func() {
			defer c.close()
			for {
				n := int(next.Add(1)) - 1
				if n >= p.Count || !sleep(ctx, time.Until(start.Add(p.due(n)))) {
					return
				}
				s := &shots[n]
				s.Due = p.due(n)
				due := start.Add(s.Due)
				s.Lag = max(time.Since(due), 0)
				c.send(ctx, n, due.Add(p.Timeout), s)
				s.Latency = time.Since(due)
				sent.Add(1)
			}
		})
	}
	wg.Wait()
	if int(sent.Load()) == p.Count {
		return shots
	}
	// Only a cancelled plan comes here; those that were never sent are no failures.
	kept := shots[:0]
	for _, s := range shots {
		if s.Latency > 0 {
			kept = append(kept, s)
		}
	}
	return kept
}

// connect opens all connections before the clock starts, a few at a time so that the server's accept queue holds them.
func connect(ctx context.Context, conns []conn) {
	var wg sync.WaitGroup
	turns := make(chan struct{}, 32)
	for i := range conns {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			conns[i].dial(ctx) // a failure shows at the first request
		})
	}
	wg.Wait()
}

// sleep sleeps for d and reports whether ctx was still alive then.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
