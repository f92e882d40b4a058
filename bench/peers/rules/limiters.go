package main

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/go-chi/httprate"
	"github.com/labstack/echo/v4/middleware"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	"github.com/spillway-go/spillway/limits"
)

// rule is what a limiter is configured with. Libraries differ in what they can express: those with a bucket get capacity
// and amount per period, those that count in windows the larger of both per window.
type rule struct {
	capacity int64
	amount   int64
	per      time.Duration
	window   time.Duration
}

// quota is how much a window allows.
func (r rule) quota() int64 { return max(r.capacity, r.amount) }

var (
	// wide allows everything, and its keys are never full again, so that every limiter has to keep them.
	wide = rule{capacity: 1 << 30, amount: 1, per: time.Second, window: time.Hour}
	// refilled allows everything, and its keys are full again whenever they return, as those of well-behaved clients are. The
	// capacity is worth a second, because some libraries deny whoever is preempted for longer than theirs is worth between
	// reading the clock and writing the balance.
	refilled = rule{capacity: 1 << 20, amount: 1_000_000, per: time.Second, window: time.Second}
	// single allows one request for each key and then denies for an hour.
	single = rule{capacity: 1, amount: 1, per: time.Hour, window: time.Hour}
)

// take asks for one permit for key and tells whether it was given.
type take func(key string) bool

// contender is a library and how it is asked. open returns a new store, and what ends it.
type contender struct {
	name, module string
	open         func(rule) (take, func(), error)
}

var nothing = func() {}

// limiters lists who is compared; the first is the one that the ratios are about.
var limiters = []contender{
	{"Spillway limits.Memory", "github.com/spillway-go/spillway", openSpillway},
	{"x/time/rate in a sync.Map", "golang.org/x/time", openXTime},
	{"sethvargo/go-limiter", "github.com/sethvargo/go-limiter", openSethvargo},
	{"throttled memstore", "github.com/throttled/throttled/v2", openThrottled},
	{"ulule/limiter memory", "github.com/ulule/limiter/v3", openUlule},
	{"httprate local counter", "github.com/go-chi/httprate", openHTTPRate},
	{"failsafe-go bursty in a sync.Map", "github.com/failsafe-go/failsafe-go", openFailsafe(newBursty)},
	{"failsafe-go smooth in a sync.Map", "github.com/failsafe-go/failsafe-go", openFailsafe(newSmooth)},
	{"Echo RateLimiterMemoryStore", "github.com/labstack/echo/v4", openEcho},
}

// openSpillway lets the store read its own clock, as shed does and as all but x/time and httprate do here.
func openSpillway(r rule) (take, func(), error) {
	store, policies, err := spillway(r, 1)
	if err != nil {
		return nil, nil, err
	}
	ctx := context.Background()
	return func(key string) bool {
		charges := [...]limits.Charge{{Policy: policies[0], Key: key, Cost: 1}}
		d, err := store.Take(ctx, time.Time{}, charges[:])
		return err == nil && d.Allowed
	}, nothing, nil
}

// openSpillwayThree asks three rules at once, all or nothing.
func openSpillwayThree(r rule) (take, func(), error) {
	store, policies, err := spillway(r, 3)
	if err != nil {
		return nil, nil, err
	}
	ctx := context.Background()
	return func(key string) bool {
		charges := [...]limits.Charge{
			{Policy: policies[0], Key: key, Cost: 1},
			{Policy: policies[1], Key: key, Cost: 1},
			{Policy: policies[2], Key: key, Cost: 1},
		}
		d, err := store.Take(ctx, time.Time{}, charges[:])
		return err == nil && d.Allowed
	}, nothing, nil
}

// spillway returns a store and n policies of one rule, each with balances of its own.
func spillway(r rule, n int) (*limits.Memory, []*limits.Policy, error) {
	store, err := limits.NewMemory(limits.MemoryConfig{MaxKeys: 4_000_000})
	if err != nil {
		return nil, nil, err
	}
	bucket := limits.TokenBucket{Capacity: r.capacity, Refill: limits.Rate{Amount: r.amount, Per: r.per}}
	policies := make([]*limits.Policy, n)
	for i := range policies {
		if policies[i], err = limits.NewPolicy(fmt.Sprint("rule-", i), bucket); err != nil {
			return nil, nil, err
		}
	}
	return store, policies, nil
}

func openXTime(r rule) (take, func(), error) { return xTime(r, 1) }

// xTime asks n limiters for each key, one after the other; a permit that the first gave stays spent if the next denies.
func xTime(r rule, n int) (take, func(), error) {
	maps := make([]sync.Map, n)
	every := rate.Every(r.per / time.Duration(r.amount))
	return func(key string) bool {
		for i := range maps {
			l, ok := maps[i].Load(key)
			if !ok {
				l, _ = maps[i].LoadOrStore(key, rate.NewLimiter(every, int(r.capacity)))
			}
			if !l.(*rate.Limiter).AllowN(time.Now(), 1) {
				return false
			}
		}
		return true
	}, nothing, nil
}

func openSethvargo(r rule) (take, func(), error) {
	store, err := memorystore.New(&memorystore.Config{Tokens: uint64(r.quota()), Interval: r.window})
	if err != nil {
		return nil, nil, err
	}
	ctx := context.Background()
	return func(key string) bool {
		_, _, _, ok, err := store.Take(ctx, key)
		return err == nil && ok
	}, func() { _ = store.Close(ctx) }, nil
}

func openThrottled(r rule) (take, func(), error) {
	store, err := memstore.NewCtx(0) // no LRU: it would forget keys that are limited
	if err != nil {
		return nil, nil, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(int(r.amount), r.per), MaxBurst: int(r.capacity) - 1}
	l, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, nil, err
	}
	// With the default of 10 attempts two cores on one key run into "failed to store updated rate limit data".
	l.SetMaxCASAttemptsLimit(1 << 20)
	ctx := context.Background()
	return func(key string) bool {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return err == nil && !limited
	}, nothing, nil
}

func openUlule(r rule) (take, func(), error) {
	store := memory.NewStoreWithOptions(limiter.StoreOptions{Prefix: limiter.DefaultPrefix, CleanUpInterval: time.Hour})
	l := limiter.New(store, limiter.Rate{Period: r.window, Limit: r.quota()})
	ctx := context.Background()
	return func(key string) bool {
		c, err := l.Get(ctx, key)
		return err == nil && !c.Reached
	}, nothing, nil
}

// openHTTPRate asks the counter as httprate's handler does, under one lock, without the headers it writes.
func openHTTPRate(r rule) (take, func(), error) {
	counter := httprate.NewLocalLimitCounter(r.window)
	l := httprate.NewRateLimiter(int(r.quota()), r.window, httprate.WithLimitCounter(counter))
	var mu sync.Mutex
	return func(key string) bool {
		window := time.Now().UTC().Truncate(r.window)
		mu.Lock()
		defer mu.Unlock()
		_, used, err := l.Status(key)
		if err != nil || int64(math.Round(used))+1 > r.quota() {
			return false
		}
		return counter.IncrementBy(key, window, 1) == nil
	}, nothing, nil
}

func newBursty(r rule) ratelimiter.RateLimiter[any] {
	return ratelimiter.NewBursty[any](uint(r.quota()), r.window)
}

// newSmooth has no burst, so it gets the whole quota as its rate. Above one in a nanosecond it would divide by zero.
func newSmooth(r rule) ratelimiter.RateLimiter[any] {
	return ratelimiter.NewSmoothWithMaxRate[any](max(1, r.per/time.Duration(r.quota())))
}

// openFailsafe keeps one limiter for each key. A smooth limiter of one permit in a nanosecond may make its caller wait for a
// few, which counts as a permit.
func openFailsafe(newLimiter func(rule) ratelimiter.RateLimiter[any]) func(rule) (take, func(), error) {
	return func(r rule) (take, func(), error) {
		var limiters sync.Map
		return func(key string) bool {
			l, ok := limiters.Load(key)
			if !ok {
				l, _ = limiters.LoadOrStore(key, newLimiter(r))
			}
			return l.(ratelimiter.RateLimiter[any]).TryReservePermit(time.Millisecond) >= 0
		}, nothing, nil
	}
}

func openEcho(r rule) (take, func(), error) {
	store := middleware.NewRateLimiterMemoryStoreWithConfig(middleware.RateLimiterMemoryStoreConfig{
		Rate: rate.Every(r.per / time.Duration(r.amount)), Burst: int(r.capacity), ExpiresIn: time.Hour,
	})
	return func(key string) bool {
		ok, err := store.Allow(key)
		return err == nil && ok
	}, nothing, nil
}
