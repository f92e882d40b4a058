package gameday

import (
	"context"
	"net/http"
	"time"
)

// spending is what the acts about Redis add to an ordinary day: payments far above their strict rule, so that it has to refuse,
// and a greedy client, so that the rule per client has to.
func (d *day) spending() []*group {
	groups := d.crowd.ordinary()
	for _, g := range groups {
		if g.name == "payments" {
			g.rate = 5
		}
	}
	return append(groups, d.crowd.greedily(30))
}

// looking is what it may take to see what both gateways think.
const looking = 250 * time.Millisecond

// stores waits until both gateways say that their store is in the state, and returns how long that took.
func (d *day) stores(ctx context.Context, state string, since time.Time) (time.Duration, error) {
	err := await(ctx, "the store is "+state, func() bool {
		for _, g := range d.gateways {
			v, err := g.look()
			if err != nil || (v.Shed.Store.State == "up") != (state == "up") {
				return false
			}
		}
		return true
	})
	return time.Since(since), err
}

// trouble plays what the acts about Redis have in common: ordinary customers and those who spend while Redis is in trouble, then the
// same after it. cause begins the trouble and mend ends it; it returns when Redis can answer again. losses is how often balances may
// have been filled anew.
func (s *scene) trouble(ctx context.Context, lasts time.Duration, losses float64, cause, mend func() error) error {
	d := s.day
	if err := d.redis.Settle(); err != nil { // on a late machine the sentinels may have found it dead before its time
		return err
	}
	s.play(ctx, time.Second, d.spending()...)
	from := time.Now()
	if err := cause(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.play(ctx, lasts, d.spending()...)
	}()
	noticed, err := d.stores(ctx, "down", from)
	<-done
	if err != nil {
		_ = mend() // the first error counts
		return err
	}
	if err := mend(); err != nil {
		return err
	}
	to := time.Now()
	s.during("Redis is gone", from, to)
	done = make(chan struct{})
	go func() {
		defer close(done)
		s.recovers(ctx, to, d.spending(), "paying", "free")
	}()
	back, err := d.stores(ctx, "up", to)
	<-done
	if err != nil {
		return err
	}
	s.hopes("both gateways noticed", noticed <= 2*time.Second, noticed.Round(10*time.Millisecond).String(), "≤ 2s")
	s.hopes("Redis decides again after", back <= time.Second+looking, back.Round(10*time.Millisecond).String(), "≤ 1 s, and a look at both gateways")
	s.asPromised("paying", "free")
	c, err := d.service.counts()
	if err != nil {
		return err
	}
	// What an outage may cost: the shares of all instances together are one capacity, and losing the data is another.
	s.within(perClient, excess{capacities: 1 + losses, seconds: to.Sub(from).Seconds()}, c, d.crowd.greedy...)
	s.gets(perClient, s.end.Sub(s.begin)-time.Second, c, d.crowd.greedy...)
	s.withinForAll(payments, excess{capacities: losses}, c, d.crowd.payers...)
	s.some("payments were refused rather than uncounted while Redis was gone", http.StatusServiceUnavailable, "store_unavailable", "payments")
	return nil
}

func pausedAct() *act {
	return &act{
		name: "paused", title: "Redis hangs",
		about:  "The process of Redis is stopped: connections stay, nothing is answered. Meanwhile one client and the payments ask for more than their rules allow. Then it goes on.",
		expect: "Nobody waits for Redis. Rules go on in each gateway with its half of the quota; payments, whose rule is strict, are refused with 503. When Redis answers it decides again.",
		play: func(ctx context.Context, s *scene) error {
			r := s.day.redis
			defer func() { r.Master.Cont() }()
			// Shorter than masterDown: nobody takes over.
			return s.trouble(ctx, s.day.length(3*time.Second, 4*time.Second), 0,
				func() error { r.Master.Stop(); return nil }, func() error { r.Master.Cont(); return nil })
		},
	}
}

func restartedAct() *act {
	return &act{
		name: "restarted", title: "Redis is killed, and comes back empty",
		about:  "The process of Redis is killed and started anew without its data some seconds later, before its replica takes over.",
		expect: "As when it hangs. All balances are full again when it is back: one capacity for each client, as the documentation says, and no more.",
		play: func(ctx context.Context, s *scene) error {
			r := s.day.redis
			return s.trouble(ctx, 3*time.Second, 1, func() error { r.Master.Kill(); return nil }, func() error { return r.Master.Relaunch() })
		},
	}
}

func failoverAct() *act {
	return &act{
		name: "failover", title: "Redis is lost, its replica takes over",
		about:  "The process of Redis is killed and stays away. The sentinels make its replica the master; later the old one comes back as the replica's replica.",
		expect: "Until the replica takes over each gateway decides by itself; then Redis decides again, at another address, without a restart of anything. What had not reached the replica is forgotten: at most a capacity.",
		play: func(ctx context.Context, s *scene) error {
			r := s.day.redis
			err := s.trouble(ctx, masterDown, 1, func() error { r.Master.Kill(); return nil }, func() error {
				return await(ctx, "the promotion of the replica", func() bool { return r.IsMaster(r.Replica) })
			})
			if r.Master.Down() {
				if err := r.Master.Relaunch(); err != nil {
					return err
				}
			}
			return err
		},
	}
}
