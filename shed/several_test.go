//go:build !race

// One goroutine does everything here, so the race detector would only cost time.

package shed

import (
	"container/heap"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The simulations here put several Machines in front of one backend of 16 places, as several gateways in front of one service are:
// each has an equal share of the load and knows nothing of the others. Service takes 20 ms, exactly or on average. Clients never leave,
// and are served in time when the answer is there within 250 ms.

// several is one run.
type several struct {
	gates  []*Machine
	spread string  // of service times: fixed or exponential
	rate   float64 // arrivals a second at each gate
	slower slower  // all work, whatever its route

	rng     *rand.Rand
	agenda  agenda
	busy    int // places in use
	inside  []*work
	seconds []second
}

// second is what happened in one second.
type second struct {
	asked, good int
	took        []time.Duration // from arrival to answer
	limits      int             // the sum of all gates' limits at its end
}

type work struct {
	Job
	gate    *Machine
	arrived time.Duration
}

// newSeveral prepares a run of so many gates under load times the capacity in all. Each has limits up to highest, 0 for the default.
func newSeveral(t *testing.T, gates, highest int, load float64, spread string, seconds int, seed uint64) *several {
	t.Helper()
	o := &several{
		spread: spread, rate: load * capacity / float64(gates),
		rng: rand.New(rand.NewPCG(seed, 12)), seconds: make([]second, seconds),
	}
	cfg := Config{Queue: Queue{MaxWait: 200 * ms}}
	cfg.Concurrency.Max = highest
	for i := range gates {
		m, err := NewMachine(cfg, time.Unix(1e9, 0), seed*100+uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		o.gates = append(o.gates, m)
	}
	return o
}

func (o *several) play() *several {
	end := time.Duration(len(o.seconds)) * time.Second
	for i, m := range o.gates {
		o.arriveAfter(0, m)
		for at := TickEvery; at < end; at += TickEvery {
			o.agenda.plan(at+time.Duration(i)*17*ms, func(now time.Duration) { m.Tick(now, 0, false) })
		}
	}
	for i := range o.seconds {
		o.agenda.plan(time.Duration(i+1)*time.Second-1, func(time.Duration) {
			for _, m := range o.gates {
				o.seconds[i].limits += m.s.gate.settled()
			}
		})
	}
	for len(o.agenda.events) > 0 && o.agenda.events[0].at < end {
		e := heap.Pop(&o.agenda).(event)
		e.do(e.at)
		for _, m := range o.gates {
			for j := m.Woken(); j != nil; j = m.Woken() {
				o.follow(e.at, j.Owner.(*work))
			}
		}
	}
	return o
}

func (o *several) arriveAfter(now time.Duration, m *Machine) {
	at := now + time.Duration(o.rng.ExpFloat64()/o.rate*float64(time.Second))
	o.agenda.plan(at, func(now time.Duration) {
		o.arriveAfter(now, m)
		w := &work{gate: m, arrived: now}
		w.Owner = w
		o.seconds[now/time.Second].asked++
		m.Admit(now, &w.Job, Request{Client: fmt.Sprint(o.rng.IntN(50))})
		o.follow(now, w)
	})
}

func (o *several) follow(now time.Duration, w *work) {
	switch w.State {
	case Granted:
		o.inside = append(o.inside, w)
		o.serve(now)
	case Standing:
		o.agenda.plan(w.Until, func(now time.Duration) {
			if w.State == Standing {
				w.gate.TimeUp(now, &w.Job)
			}
		})
	}
}

// serve gives the backend's free places to those inside, first come first served.
func (o *several) serve(now time.Duration) {
	for o.busy < slots && len(o.inside) > 0 {
		w := o.inside[0]
		o.inside = o.inside[1:]
		o.busy++
		takes := float64(service)
		if o.spread == "exponential" {
			takes *= o.rng.ExpFloat64()
		}
		if s := &o.slower; now >= s.from && now < s.to {
			takes *= s.by
		}
		o.agenda.plan(now+time.Duration(takes), func(now time.Duration) {
			o.busy--
			o.serve(now)
			w.gate.Done(now, &w.Job, Success)
			sec, took := &o.seconds[now/time.Second], now-w.arrived
			sec.took = append(sec.took, took)
			if took <= patience {
				sec.good++
			}
		})
	}
}

// account is what the seconds from one to another come to.
type account struct {
	goodput float64 // share of what was possible, answered in time
	limits  float64 // the mean sum of limits
	p50     time.Duration
}

func (a account) String() string {
	return fmt.Sprintf("%.2f %4.0f %4d ms", a.goodput, a.limits, a.p50.Milliseconds())
}

// account adds up the seconds [from, to), in which by times fewer were possible than usual.
func (o *several) account(from, to int, by float64) (a account) {
	var possible, good float64
	var took []time.Duration
	for _, s := range o.seconds[from:to] {
		good += float64(s.good)
		possible += min(float64(s.asked), capacity/by)
		a.limits += float64(s.limits) / float64(to-from)
		took = append(took, s.took...)
	}
	a.goodput = good / possible
	slices.Sort(took)
	a.p50 = took[len(took)/2]
	return a
}

// times of a run: the service is as it should be, takes five times as long from the 20th second to the 40th, and is well again.
var times = []struct {
	from, to int
	by       float64
}{{5, 20, 1}, {22, 40, 5}, {45, 60, 1}}

// outcome plays a minute with three seeds and returns for each of the times the medians of the figures.
func outcome(t *testing.T, gates, highest int, load float64, spread string) (all []account) {
	const seeds = 3
	var runs []*several
	for seed := range uint64(seeds) {
		o := newSeveral(t, gates, highest, load, spread, 60, seed+1)
		o.slower = slower{"*", 5, 20 * time.Second, 40 * time.Second}
		runs = append(runs, o.play())
	}
	for _, span := range times {
		var goodput, limits [seeds]float64
		var p50 [seeds]time.Duration
		for i, o := range runs {
			a := o.account(span.from, span.to, span.by)
			goodput[i], limits[i], p50[i] = a.goodput, a.limits, a.p50
		}
		slices.Sort(goodput[:])
		slices.Sort(limits[:])
		slices.Sort(p50[:])
		all = append(all, account{goodput[seeds/2], limits[seeds/2], p50[seeds/2]})
	}
	return all
}

// ownShare is the max that each of some gates needs to do with the others what one gate does alone: 1.5 times its share of the places.
func ownShare(gates int) int { return (3*slots/2 + gates - 1) / gates }

// TestSeveralGatesWithAMaxDoAsWellAsOne: at least 0.9 of what one gate serves in time, before, while and after the service is slow.
// Without a max they do not, and that is a limitation: each takes the queue of the others for the service, and makes room for it.
func TestSeveralGatesWithAMaxDoAsWellAsOne(t *testing.T) {
	const load, spread = 2, "exponential"
	one := outcome(t, 1, 0, load, spread)
	for _, gates := range []int{2, 3, 5} {
		for i, got := range outcome(t, gates, ownShare(gates), load, spread) {
			if got.goodput < .9*one[i].goodput {
				t.Errorf("%d gates, from second %d: %v (goodput, sum of limits, p50); one: %v", gates, times[i].from, got, one[i])
			}
		}
	}
	if without := outcome(t, 3, 0, load, spread); without[1].goodput > .5 {
		t.Errorf("3 gates without a max: %v; if that is mended, say so in the documentation and ask the same of them", without[1])
	}
}

var table = flag.Bool("several", false, "log the table of several gates in front of one service; takes minutes")

// TestTableOfSeveralGates logs what docs/gate.md quotes.
func TestTableOfSeveralGates(t *testing.T) {
	if !*table {
		t.Skip("only with -several")
	}
	for _, spread := range []string{"fixed", "exponential"} {
		for _, load := range []float64{1.2, 2, 5} {
			for _, gates := range []int{1, 2, 3, 5} {
				for _, highest := range []int{0, slots, ownShare(gates)} {
					t.Logf("%-11s %3gx, %d gates, max %2d: %v", spread, load, gates, highest, outcome(t, gates, highest, load, spread))
				}
			}
		}
	}
}
