//go:build !race

// One goroutine does everything here, so the race detector would only cost time.

package shed

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// bursts is a backend with so many places to which a hundred requests come within 10 ms, every half a minute, each of which takes a
// second, exactly or on average. Whoever is turned away does not come again. It returns the share of the last five of so many bursts
// that was, and the limit after them.
func bursts(t *testing.T, cfg Config, places, n int, exponential bool, seed uint64) (refused float64, limit int) {
	t.Helper()
	const size, every = 100, 30 * time.Second
	m, err := NewMachine(cfg, time.Unix(1e9, 0), seed)
	if err != nil {
		t.Fatal(err)
	}
	var (
		rng    = rand.New(rand.NewPCG(seed, 13))
		do     agenda
		free   = make([]time.Duration, places) // when each place is free
		turned int
	)
	follow := func(now time.Duration, c *call) {
		switch c.State {
		case Granted:
			slices.Sort(free)
			takes := time.Second
			if exponential {
				takes = time.Duration(rng.ExpFloat64() * float64(takes))
			}
			free[0] = max(free[0], now) + takes
			do.plan(free[0], func(now time.Duration) { m.Done(now, &c.Job, Success) })
		case Standing:
			do.plan(c.Until, func(now time.Duration) {
				if c.State == Standing {
					m.TimeUp(now, &c.Job)
				}
			})
		default:
			if c.arrived >= time.Duration(n-5)*every {
				turned++
			}
		}
	}
	for burst := range n {
		for range size {
			at := time.Duration(burst)*every + time.Duration(rng.Int64N(int64(10*ms)))
			do.plan(at, func(now time.Duration) {
				c := &call{arrived: now}
				c.Owner = c
				m.Admit(now, &c.Job, Request{Client: string(rune('a' + rng.IntN(26)))})
				follow(now, c)
			})
		}
	}
	for at := TickEvery; at < time.Duration(n)*every; at += TickEvery {
		do.plan(at, func(now time.Duration) { m.Tick(now, 0, false) })
	}
	for len(do.events) > 0 {
		e := heap.Pop(&do).(event)
		e.do(e.at)
		for j := m.Woken(); j != nil; j = m.Woken() {
			follow(e.at, j.Owner.(*call))
		}
	}
	return float64(turned) / (5 * size), m.s.gate.settled()
}

// Slow work that comes all at once never saturates a window: when the first of it ends nobody is left who wants more.
func TestBurstsOfSlowWorkAreLetInWhereThereIsRoom(t *testing.T) {
	for _, exponential := range []bool{false, true} {
		var turned [5]float64
		for seed := range turned {
			turned[seed], _ = bursts(t, Config{}, 128, 30, exponential, uint64(seed)+1)
		}
		slices.Sort(turned[:])
		if turned[2] > 0.05 {
			t.Errorf("exponential %v: of the last bursts these shares were turned away: %.2f; want hardly any", exponential, turned)
		}
	}
	cfg := Config{}
	cfg.Concurrency.Algorithm, cfg.Concurrency.Initial = "fixed", 20
	if turned, _ := bursts(t, cfg, 128, 10, false, 1); turned < 0.5 {
		t.Errorf("%.2f turned away at a fixed limit of 20: the test cannot tell", turned)
	}
}

// With a small backend the same bursts are what the limit is there for.
func TestBurstsOfSlowWorkAreHeldBackWhereThereIsNoRoom(t *testing.T) {
	for _, exponential := range []bool{false, true} {
		var limits [5]int
		for seed := range limits {
			_, limits[seed] = bursts(t, Config{}, 16, 30, exponential, uint64(seed)+1)
		}
		slices.Sort(limits[:])
		if limits[2] > 3*16 {
			t.Errorf("exponential %v: limits %v for 16 places", exponential, limits)
		}
	}
}
