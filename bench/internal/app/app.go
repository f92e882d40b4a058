// Package app is the service that scenarios protect: slots that each serve one request at a time behind an unbounded line,
// first come first served, which ignores cancellation, as pools of threads and of database connections do. Its capacity is
// exact and costs no CPU, so that the same machine can make the load and the claim.
//
// Because the line is first come first served and service times are known on arrival, the whole fate of a request is known
// on arrival too: [App.Reserve] computes it. A simulation makes an event of it, a real handler sleeps until then; both run
// this code.
package app

import (
	"time"

	"github.com/spillway-go/spillway/bench/scenarios"
)

// App is the service. New makes one; it is for one goroutine at a time.
type App struct {
	free     []time.Duration // a heap of the times at which the slots come free
	disturb  []scenarios.Disturbance
	affected []int  // the population of each disturbance, -1 for all
	gone     []bool // which disturbances have taken their slots
	begins   time.Duration
}

// New makes the app of s.
func New(s *scenarios.Scenario) *App {
	a := &App{free: make([]time.Duration, s.App.Slots), disturb: s.Disturb, begins: 1<<63 - 1}
	a.gone = make([]bool, len(s.Disturb))
	for _, d := range s.Disturb {
		a.affected = append(a.affected, s.Population(d.Population))
		a.begins = min(a.begins, d.At)
	}
	return a
}

// Reserve puts a request that arrives now at the end of the line and returns when its work starts and ends.
func (a *App) Reserve(now time.Duration, population int, work time.Duration) (start, end time.Duration) {
	if now >= a.begins {
		a.lose(now)
	}
	start = max(now, a.free[0])
	end = start + work
	if end > a.begins {
		start, end = a.disturbed(start, work, population)
	}
	a.free[0] = end
	a.sink()
	return start, end
}

// Next returns when the next slot comes free, or has.
func (a *App) Next() time.Duration { return a.free[0] }

// disturbed is the work that would start then, with all that happens to the app meanwhile.
func (a *App) disturbed(start, work time.Duration, population int) (from, to time.Duration) {
	for i, d := range a.disturb {
		if !d.Stall && d.Lost == 0 && a.within(d, start) && (a.affected[i] < 0 || a.affected[i] == population) {
			work = time.Duration(float64(work) * d.Slower)
		}
	}
	for _, d := range a.disturb {
		if d.Stall && a.within(d, start) {
			start += d.For - a.into(d, start)
		}
	}
	end := start + work
	for _, d := range a.disturb {
		if d.Stall && end > d.At {
			if into := a.into(d, end); into < d.For && end-into > start {
				end += d.For
			}
		}
	}
	return start, end
}

// lose takes the slots away that are gone at now: to the app they are busy until they come back.
func (a *App) lose(now time.Duration) {
	for i, d := range a.disturb {
		if d.Lost == 0 || a.gone[i] || now < d.At {
			continue
		}
		a.gone[i] = true
		for range d.Lost {
			a.free[0] = max(a.free[0], d.At+d.For)
			a.sink()
		}
	}
}

// into is how long before t the disturbance last began.
func (a *App) into(d scenarios.Disturbance, t time.Duration) time.Duration {
	since := t - d.At
	if d.Every > 0 && since >= 0 {
		since %= d.Every
	}
	return since
}

func (a *App) within(d scenarios.Disturbance, t time.Duration) bool {
	return t >= d.At && a.into(d, t) < d.For
}

// sink restores the heap after its first element has grown.
func (a *App) sink() {
	h, i := a.free, 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if h[i] <= h[child] {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
