//go:build !race

// One goroutine does everything here, so the race detector would only cost time.

package shed

import (
	"testing"
	"time"
)

// shops is three routes that ask for load times the capacity, the second for a fifth of that; the slow one is 20 times slower from
// the 13th second to the 33rd.
func shops(load float64) []source {
	return []source{
		{"a", "vital", .5 * load * capacity}, {"b", "slow", .2 * load * capacity}, {"c", "", .3 * load * capacity},
	}
}

func shop() Config {
	cfg := enough()
	cfg.Routes = append(cfg.Routes, Route{Name: "slow"})
	cfg.Routes[0].Priority = Critical
	return cfg
}

// unwatched is the control: no lanes.
func (o *overload) unwatched() *overload {
	o.m.s.gate.lanes.all = nil
	for _, r := range o.m.s.current().routes {
		r.lane = nil
	}
	o.m.s.current().other.lane = nil
	return o
}

func (o *overload) others() float64 {
	return yield{asked: o.yields[0].asked + o.yields[2].asked, good: o.yields[0].good + o.yields[2].good}.share()
}

func TestASlowRouteLeavesTheOthersTheirPlaces(t *testing.T) {
	dead := slower{"slow", 20, 13 * time.Second, 33 * time.Second}
	for seed := range uint64(5) {
		o := newOverload(t, shop(), shops(.6), 33, seed)
		o.slower = dead
		o.play()
		if share := o.others(); share < .995 {
			t.Errorf("seed %d: %.4f of the other routes' requests were served in time", seed, share)
		}
		if o.yields[1].good == 0 || o.m.Status().InFlight != 0 {
			t.Errorf("seed %d: the slow route was served %d times, %d in flight at the end", seed, o.yields[1].good, o.m.Status().InFlight)
		}
	}
	o := newOverload(t, shop(), shops(.6), 33, 1).unwatched()
	o.slower = dead
	if share := o.play().others(); share > .8 {
		t.Errorf("the control serves %.3f: the test shows nothing", share)
	}
}

// TestARouteThatIsWellAgainIsFree: a second after the slowness has ended nothing of that route is refused.
func TestARouteThatIsWellAgainIsFree(t *testing.T) {
	for seed := range uint64(5) {
		o := newOverload(t, shop(), shops(.6), 40, seed)
		o.slower = slower{"slow", 20, 10 * time.Second, 20 * time.Second}
		o.measured = 22 * time.Second
		if y := o.play().all(); y.good < y.asked*999/1000 {
			t.Errorf("seed %d: %d of %d served", seed, y.good, y.asked)
		}
	}
}

// TestNoLaneIsNarrowedWithoutNeed: what is slow for all, what stands still for a moment, and what comes in bursts is no route's own.
func TestNoLaneIsNarrowedWithoutNeed(t *testing.T) {
	for _, row := range []struct {
		name    string
		load    float64
		prepare func(o *overload)
		refused float64 // at most, of all
	}{
		{"a busy time", .7, func(*overload) {}, 0.0002},
		{"overload", 1.5, func(*overload) {}, .36},
		{"hiccups", .9, (*overload).hiccups, .005},
		{"all are slow", .3, func(o *overload) { o.slower = slower{"*", 3, 10 * time.Second, 40 * time.Second} }, .005},
		{"all are much slower, and asked for less", .12, func(o *overload) { o.slower = slower{"*", 5, 10 * time.Second, 50 * time.Second} }, .005},
	} {
		var asked, good, bare int
		for seed := range uint64(3) {
			o := newOverload(t, shop(), shops(row.load), 60, seed)
			row.prepare(o)
			y := o.play().all()
			asked, good = asked+y.asked, good+y.good+y.late
			control := newOverload(t, shop(), shops(row.load), 60, seed).unwatched()
			row.prepare(control)
			z := control.play().all()
			bare += z.asked - z.good - z.late
		}
		part := float64(asked-good) / float64(asked)
		t.Logf("%s: %.5f refused, %.5f without lanes", row.name, part, float64(bare)/float64(asked))
		if part > row.refused {
			t.Errorf("%s: %.5f refused", row.name, part)
		}
	}
}
