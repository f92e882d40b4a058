package redisstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/limits"
)

func TestFaultHang(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(*testing.T, *redistest.Server) redis.UniversalClient{
		"our client": func(t *testing.T, s *redistest.Server) redis.UniversalClient {
			c, err := Open(at(s), Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			return c
		},
		"a client as it comes": func(t *testing.T, s *redistest.Server) redis.UniversalClient {
			c := redis.NewClient(&redis.Options{Addr: s.Addr})
			t.Cleanup(func() { c.Close() })
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Single(t)
			g := guarded(t, client(t, s), GuardConfig{})
			p := named(t, "p", slow)
			var c tally
			stop := c.load(t, g, 50, always(p, "k"))
			wait.Until(t, "decisions by Redis", func() bool { return c.by[limits.FromRedis].Load() > 500 })
			s.Stop()
			g.hears(t, Down)
			goroutines := runtime.NumGoroutine()
			before := c.by[limits.FromLocal].Load()
			wait.Until(t, "decisions without Redis", func() bool { return c.by[limits.FromLocal].Load() > before+5000 })
			if now := runtime.NumGoroutine(); now > goroutines+200 {
				t.Errorf("goroutines grew from %d to %d while Redis hung", goroutines, now)
			}
			s.Cont()
			g.hears(t, Up)
			after := c.by[limits.FromRedis].Load()
			wait.Until(t, "decisions by Redis again", func() bool { return c.by[limits.FromRedis].Load() > after+500 })
			stop()
			if l := time.Duration(c.longest.Load()); l > 2500*time.Millisecond {
				t.Errorf("a decision took %v, the store's timeout is 50ms", l)
			}
			all := c.by[limits.FromRedis].Load() + c.by[limits.FromLocal].Load()
			if n := charged(t, s.Client(t), p, "k"); n > all || n < c.admitted[limits.FromRedis].Load() {
				t.Errorf("Redis was charged %d for %d decisions, of which it made %d", n, all, c.by[limits.FromRedis].Load())
			}
		})
	}
}

// TestFaultSilentFromTheStart: connections are taken, and nothing is ever answered.
func TestFaultSilentFromTheStart(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	s.Stop()
	g := opened(t, at(s), Options{}, GuardConfig{})
	g.hears(t, Down)
	var c tally
	for range 1000 {
		if from := c.one(t, g, single(named(t, "p", slow), "k", 1)); from != limits.FromLocal {
			t.Fatalf("decided by %v", from)
		}
	}
	if r := g.Report(); r.Changes != 1 || r.Decisions["local"] != 1000 {
		t.Errorf("%+v", r)
	}
	s.Cont()
	g.hears(t, Up)
}

func TestFaultRefusedThenRestarted(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	g := opened(t, at(s), Options{PoolSize: 8}, GuardConfig{Timeout: time.Second})
	p := named(t, "p", slow)
	var c tally
	stop := c.load(t, g, 200, always(p, "k"))
	wait.Until(t, "decisions by Redis", func() bool { return c.by[limits.FromRedis].Load() > 500 })
	for range 3 {
		s.Kill()
		g.hears(t, Down)
		time.Sleep(20 * time.Millisecond) // some calls and probes while nobody listens; the test does not need them
		s.Restart(t)
		g.hears(t, Up)
		before := c.by[limits.FromRedis].Load()
		wait.Until(t, "decisions by Redis again", func() bool { return c.by[limits.FromRedis].Load() > before+500 })
	}
	stop()
	for i, change := range g.changes[:len(g.changes)/2*2] {
		if want := []State{Down, Up}[i%2]; change.State != want {
			t.Errorf("change %d is %v, want %v", i, change.State, want)
		}
	}
	if n, most := charged(t, s.Client(t), p, "k"), c.admitted[limits.FromRedis].Load(); n >= most {
		t.Errorf("after restarts that lose all %d are charged, of %d altogether", n, most)
	}
}

// TestFaultRefusedIsOverSoon: the client's own pool stops dialling after as many failures as it is large, and then notices a
// server only up to a second later. Ours does not.
func TestFaultRefusedIsOverSoon(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	g := opened(t, at(s), Options{PoolSize: 4}, GuardConfig{})
	p := named(t, "p", slow)
	s.Kill()
	var wg sync.WaitGroup
	for n := range 100 {
		wg.Go(func() {
			for range 10 { // far more failures than the pool is large
				_, _ = g.Take(context.Background(), time.Time{}, single(p, "k", 1))
				_, err := g.inner.Take(context.Background(), time.Time{}, single(p, fmt.Sprint(n), 1))
				var e *Error
				if !errors.As(err, &e) || e.MayHaveCharged() {
					t.Errorf("nobody there: %v", err)
				}
			}
		})
	}
	wg.Wait()
	g.hears(t, Down) // by itself, or by those failures
	s.Restart(t)
	if err := g.inner.(*Store).client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the first call after the return of the server: %v", err)
	}
	var c tally
	best := time.Hour
	for range 3 { // the quickest of some, for the machine may be busy
		s.Kill()
		for range failuresInARow {
			c.one(t, g, single(p, "k", 1))
		}
		s.Restart(t)
		answering := time.Now()
		wait.Until(t, "a decision by Redis", func() bool { return c.one(t, g, single(p, "k", 1)) == limits.FromRedis })
		best = min(best, time.Since(answering))
	}
	if best > time.Second {
		t.Errorf("Redis decides again %v after it answers, want within a second", best)
	}
}

func TestFaultScriptFlushUnderLoad(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	g := opened(t, at(s), Options{}, GuardConfig{Timeout: patient})
	p := named(t, "p", slow)
	var c tally
	stop := c.load(t, g, 20, func(caller, _ int) []limits.Charge { return single(p, fmt.Sprint(caller), 1) })
	for range 200 {
		s.Do(t, "SCRIPT", "FLUSH")
	}
	wait.Until(t, "decisions", func() bool { return c.by[limits.FromRedis].Load() > 500 })
	stop()
	if n := c.by[limits.FromLocal].Load(); n > 0 {
		t.Errorf("%d decisions were not made by Redis; %+v", n, g.Report())
	}
	var sum int64
	for n := range 20 {
		sum += charged(t, s.Client(t), p, fmt.Sprint(n))
	}
	if sum != c.admitted[limits.FromRedis].Load() {
		t.Errorf("%d were charged and %d admitted", sum, c.admitted[limits.FromRedis].Load())
	}
}

// TestFaultReplyLost: the call was carried out and nobody knows. It is charged once, and the policy decides.
func TestFaultReplyLost(t *testing.T) {
	t.Parallel()
	cluster := redistest.SharedCluster(t)
	owner, _ := cluster.Owner(t, "{k}")
	alone := redistest.Single(t)
	for name, c := range map[string]struct {
		target *redistest.Server
		client func(p *redistest.Proxy) redis.UniversalClient
	}{
		"one server": {alone, func(p *redistest.Proxy) redis.UniversalClient {
			c, err := Open("redis://"+p.Addr, Options{Timeout: patient})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}},
		"one server, a client as it comes": {alone, func(p *redistest.Proxy) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: p.Addr, ContextTimeoutEnabled: true})
		}},
		"a cluster, a client as it comes": {owner, func(p *redistest.Proxy) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), Dialer: p.Dial, ContextTimeoutEnabled: true})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, c.target.Addr)
			client := c.client(proxy)
			t.Cleanup(func() { client.Close() })
			g := guarded(t, client, GuardConfig{Timeout: patient, OnFailure: limits.Open})
			p := named(t, fmt.Sprint("lost ", name, time.Now().UnixNano()), slow) // the cluster is shared
			var sum tally
			for range 3 {
				sum.one(t, g, single(p, "k", 1))
			}
			for range 3 {
				trap := proxy.CutAfter("lost " + name)
				if from := sum.one(t, g, single(p, "k", 1)); from != limits.FromOpen {
					t.Errorf("decided by %v", from)
				}
				<-trap.Sprung()
			}
			// A stopped server carries the call out later, when the caller has long given up.
			proxy.DelayAfter("lost "+name, 100*time.Millisecond)
			g.cfg.Timeout = 20 * time.Millisecond
			g.epoch.Store(nil)
			if from := sum.one(t, g, single(p, "k", 1)); from != limits.FromOpen {
				t.Errorf("a late reply: decided by %v", from)
			}
			g.cfg.Timeout = patient
			g.epoch.Store(nil)
			if from := sum.one(t, g, single(p, "k", 1)); from != limits.FromRedis {
				t.Errorf("afterwards: decided by %v", from)
			}
			// On a busy machine the late one may not even have been sent in its time.
			if n := charged(t, client, p, "k"); n != 8 && n != 7 {
				t.Errorf("%d are charged for 8 decisions", n)
			}
		})
	}
}
