package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/redisstore"
)

// rule is a bucket in the words of both sides.
type rule struct {
	capacity int64
	perHour  int64
}

var (
	wide   = rule{1 << 30, 3600} // gives to everybody who asks, and is never full again for a second after
	single = rule{1, 1}          // one, and the next in an hour
	slow   = rule{1000, 1}       // remembers each token for longer than anything is measured
)

// take makes one decision.
type take func(key string) (allowed bool, err error)

// limiter is a contender: open returns how it decides and how to end that.
type limiter struct {
	name, module string
	open         func(s *server, r rule) (take, func(), error)
}

const (
	own    = "Spillway"
	guard  = "Spillway, with its guard"
	leased = "Spillway, with leases"
	peer   = "redis_rate Allow"
	empty  = "an empty script"
)

// limiters are the contenders; the first is Spillway.
var limiters = []limiter{
	{own, "github.com/spillway-go/spillway", openStore(redisstore.Config{}, 1)},
	{guard, "github.com/spillway-go/spillway", openGuard},
	{leased, "github.com/spillway-go/spillway", openLeases},
	{peer, "github.com/go-redis/redis_rate/v10", openRate(0)},
	{peer + ", 256 connections", "github.com/go-redis/redis_rate/v10", openRate(256)},
}

// patient is how long calls may take: nothing is meant to fail here, however busy the machine is.
const patient = 30 * time.Second

var forever = context.Background()

// policies returns n rules that differ in nothing but their names, which have two letters.
func policies(n int, r rule) ([]*limits.Policy, error) {
	var all []*limits.Policy
	for i := range n {
		p, err := limits.NewPolicy("r"+string(rune('a'+i)), limits.TokenBucket{Capacity: r.capacity, Refill: limits.PerHour(r.perHour)})
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func newStore(s *server, config redisstore.Config) (*redisstore.Store, redis.UniversalClient, error) {
	client, err := redisstore.Open("redis://"+s.addr+"/0", redisstore.Options{Timeout: patient})
	if err != nil {
		return nil, nil, err
	}
	store, err := redisstore.New(client, config)
	return store, client, err
}

// closer is a store that has to be closed.
type closer interface {
	limits.Store
	io.Closer
}

// opening opens Spillway's store with so many rules in each decision and puts a layer on it. Who has decided must be one of from.
func opening(config redisstore.Config, rules int, layer func(*redisstore.Store) (closer, error), from ...limits.Source) func(*server, rule) (take, func(), error) {
	return func(s *server, r rule) (take, func(), error) {
		all, err := policies(rules, r)
		if err != nil {
			return nil, nil, err
		}
		store, client, err := newStore(s, config)
		if err != nil {
			return nil, nil, err
		}
		top, err := layer(store)
		if err != nil {
			return nil, nil, err
		}
		return asking(top, all, from...), func() { top.Close(); client.Close() }, nil
	}
}

// openStore opens the store as it is.
func openStore(config redisstore.Config, rules int) func(*server, rule) (take, func(), error) {
	return opening(config, rules, func(s *redisstore.Store) (closer, error) { return s, nil }, limits.FromRedis)
}

// openGuard opens it as programs use it, with its time budget and its breaker.
var openGuard = opening(redisstore.Config{}, 1, func(s *redisstore.Store) (closer, error) {
	return redisstore.NewGuard(s, redisstore.GuardConfig{Timeout: patient, OnFailure: limits.Closed})
}, limits.FromRedis)

// openLeases opens it for quotas of which a process may take some ahead.
var openLeases = opening(redisstore.Config{}, 1, func(s *redisstore.Store) (closer, error) {
	return redisstore.NewLeases(s, redisstore.LeaseConfig{Default: limits.SharedByLease})
}, limits.FromRedis, limits.FromLease)

// openEmpty opens what decides nothing: no limiter that asks Redis for each decision, and for one at a time, can be faster.
func openEmpty(s *server, _ rule) (take, func(), error) {
	client, err := redisstore.Open("redis://"+s.addr+"/0", redisstore.Options{Timeout: patient})
	if err != nil {
		return nil, nil, err
	}
	script := redis.NewScript("return 1")
	return func(key string) (bool, error) {
		n, err := script.EvalSha(forever, client, []string{key}).Int()
		if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
			n, err = script.Eval(forever, client, []string{key}).Int()
		}
		return n == 1, err
	}, func() { client.Close() }, nil
}

// asking decides by the policies together, and fails where anybody else has decided than those that are measured.
func asking(store limits.Store, all []*limits.Policy, from ...limits.Source) take {
	if len(all) == 1 {
		p := all[0]
		return func(key string) (bool, error) {
			d, err := store.Take(forever, time.Time{}, []limits.Charge{{Policy: p, Key: key, Cost: 1}})
			if err == nil && !slices.Contains(from, d.Source) {
				return false, fmt.Errorf("decided by %v, not by %v", d.Source, from)
			}
			return d.Allowed, err
		}
	}
	return func(key string) (bool, error) {
		charges := make([]limits.Charge, 0, 4)
		for _, p := range all {
			charges = append(charges, limits.Charge{Policy: p, Key: key, Cost: 1})
		}
		d, err := store.Take(forever, time.Time{}, charges)
		return d.Allowed, err
	}
}

// openRate opens redis_rate on a client of go-redis with its defaults, but for how long it waits and how many connections it
// may have (0 means the default).
func openRate(connections int) func(*server, rule) (take, func(), error) {
	return func(s *server, r rule) (take, func(), error) {
		client := redis.NewClient(&redis.Options{Addr: s.addr, PoolSize: connections, ReadTimeout: patient, PoolTimeout: patient})
		limiter := redis_rate.NewLimiter(client)
		limit := redis_rate.Limit{Rate: int(r.perHour), Burst: int(r.capacity), Period: time.Hour}
		return func(key string) (bool, error) {
			result, err := limiter.Allow(forever, key, limit)
			if err != nil {
				return false, err
			}
			return result.Allowed == 1, nil
		}, func() { client.Close() }, nil
	}
}

// check holds a limiter to what it is measured at: what it allows it counts, and keys do not touch.
func check(s *server, l limiter) error {
	for _, c := range []struct {
		rule   rule
		second bool
	}{{single, false}, {wide, true}} {
		if err := s.empty(); err != nil {
			return err
		}
		ask, end, err := l.open(s, c.rule)
		if err != nil {
			return err
		}
		err = checkOne(ask, c.second)
		end()
		if err != nil {
			return fmt.Errorf("with a bucket of %d: %w", c.rule.capacity, err)
		}
	}
	return nil
}

func checkOne(ask take, second bool) error {
	for round := range 2 {
		for i := range 50 {
			allowed, err := ask(name(i))
			switch {
			case err != nil:
				return err
			case round == 0 && !allowed:
				return errors.New("the first request of a key is denied: do keys vary?")
			case round == 1 && allowed != second:
				return fmt.Errorf("the second request of a key: allowed is %v", allowed)
			}
		}
	}
	return nil
}

// name returns the name of client i, 8 bytes.
func name(i int) string { return fmt.Sprintf("u%07d", i) }
