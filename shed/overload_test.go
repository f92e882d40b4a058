//go:build !race

// One goroutine does everything here, so the race detector would only cost time.

package shed

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/queue"
)

// The simulations here drive a whole Machine: a backend of 16 places with a queue of its own inside, exponential service of 20 ms
// on average, callers with 250 ms of patience that nobody tells the Machine about.
const (
	slots    = 16
	service  = 20 * time.Millisecond
	capacity = 800.0 // a second
	patience = 250 * time.Millisecond
)

// source asks at random moments, rate times a second.
type source struct {
	client, route string
	rate          float64
}

// yield is what came of it.
type yield struct {
	asked, good, late int
	took              []time.Duration // from arrival to answer
}

func (y yield) share() float64 { return float64(y.good) / float64(y.asked) }

// p50 is the median time to an answer.
func (y yield) p50() time.Duration {
	slices.Sort(y.took)
	return y.took[len(y.took)/2]
}

// overload is one run.
type overload struct {
	m       *Machine
	rng     *rand.Rand
	agenda  agenda
	sources []source
	yields  []yield
	busy    int // places in use
	inside  []*call
	stalled time.Duration // when the backend last stood still
	slower  slower

	measured, end time.Duration // arrivals between the two are counted
}

// slower makes work on one route, or on all of them ("*"), take so many times as long for a time.
type slower struct {
	route    string
	by       float64
	from, to time.Duration
}

type call struct {
	Job
	source         int
	arrived, began time.Duration
	stalled        bool
}

// hiccup is how long the backend stands still when it does.
const hiccup = 100 * time.Millisecond

// newOverload prepares a run of so many seconds, of which the first three are not counted.
func newOverload(t *testing.T, cfg Config, sources []source, seconds int, seed uint64) *overload {
	t.Helper()
	m, err := NewMachine(cfg, time.Unix(1e9, 0), seed)
	if err != nil {
		t.Fatal(err)
	}
	return &overload{
		m: m, rng: rand.New(rand.NewPCG(seed, 11)), sources: sources, yields: make([]yield, len(sources)),
		stalled: -hiccup, measured: 3 * time.Second, end: time.Duration(seconds) * time.Second,
	}
}

// play lets the sources ask until the end.
func (o *overload) play() *overload {
	for i := range o.sources {
		o.arriveAfter(0, i)
	}
	m := o.m
	for at := TickEvery; at < o.end; at += TickEvery {
		o.agenda.plan(at, func(now time.Duration) { m.Tick(now, 0, false) })
	}
	for len(o.agenda.events) > 0 {
		e := heap.Pop(&o.agenda).(event)
		e.do(e.at)
		for j := m.Woken(); j != nil; j = m.Woken() {
			o.follow(e.at, j.Owner.(*call))
		}
	}
	return o
}

func (o *overload) arriveAfter(now time.Duration, i int) {
	at := now + time.Duration(o.rng.ExpFloat64()/o.sources[i].rate*float64(time.Second))
	if at > o.end {
		return
	}
	o.agenda.plan(at, func(now time.Duration) {
		o.arriveAfter(now, i)
		c := &call{source: i, arrived: now}
		c.Owner = c
		if now >= o.measured {
			o.yields[i].asked++
		}
		o.m.Admit(now, &c.Job, Request{Client: o.sources[i].client, Route: o.sources[i].route})
		o.follow(now, c)
	})
}

func (o *overload) follow(now time.Duration, c *call) {
	switch c.State {
	case Granted:
		o.inside = append(o.inside, c)
		o.serve(now)
	case Standing:
		o.agenda.plan(c.Until, func(now time.Duration) {
			if c.State == Standing {
				o.m.TimeUp(now, &c.Job)
			}
		})
	}
}

// hiccups lets the backend stand still every ten seconds.
func (o *overload) hiccups() {
	for at := 5 * time.Second; at < o.end; at += 10 * time.Second {
		o.agenda.plan(at, func(now time.Duration) { o.stalled = now })
	}
}

// serve gives the backend's free places to those inside, first come first served.
func (o *overload) serve(now time.Duration) {
	for o.busy < slots && len(o.inside) > 0 {
		c := o.inside[0]
		o.inside = o.inside[1:]
		o.busy++
		c.began = max(now, o.stalled+hiccup)
		work := o.rng.ExpFloat64() * float64(service)
		if s := &o.slower; (s.route == "*" || s.route == o.sources[c.source].route) && c.began >= s.from && c.began < s.to {
			work *= s.by
		}
		o.agenda.plan(c.began+time.Duration(work), func(now time.Duration) { o.finish(now, c) })
	}
}

// finish ends the work on c, later if the backend stood still meanwhile.
func (o *overload) finish(now time.Duration, c *call) {
	if c.began < o.stalled && !c.stalled {
		c.stalled = true
		o.agenda.plan(now+hiccup, func(now time.Duration) { o.finish(now, c) })
		return
	}
	o.answer(now, c)
}

func (o *overload) answer(now time.Duration, c *call) {
	o.busy--
	o.serve(now)
	o.m.Done(now, &c.Job, Success)
	if c.arrived < o.measured {
		return
	}
	y := &o.yields[c.source]
	if took := now - c.arrived; took <= patience {
		y.good++
		y.took = append(y.took, took)
	} else {
		y.late++
	}
}

// all adds up what came of everybody.
func (o *overload) all() (sum yield) {
	for _, y := range o.yields {
		sum.asked, sum.good, sum.late = sum.asked+y.asked, sum.good+y.good, sum.late+y.late
		sum.took = append(sum.took, y.took...)
	}
	return sum
}

type event struct {
	at  time.Duration
	seq int
	do  func(now time.Duration)
}

// agenda is what happens next; equals in the order in which they were planned.
type agenda struct {
	events []event
	seq    int
}

func (a *agenda) plan(at time.Duration, do func(time.Duration)) {
	a.seq++
	heap.Push(a, event{at, a.seq, do})
}

func (a *agenda) Len() int { return len(a.events) }
func (a *agenda) Less(i, j int) bool {
	x, y := a.events[i], a.events[j]
	return x.at < y.at || x.at == y.at && x.seq < y.seq
}
func (a *agenda) Swap(i, j int) { a.events[i], a.events[j] = a.events[j], a.events[i] }
func (a *agenda) Push(x any)    { a.events = append(a.events, x.(event)) }
func (a *agenda) Pop() any {
	last := a.events[len(a.events)-1]
	a.events = a.events[:len(a.events)-1]
	return last
}

// many is n clients that ask for total in equal parts.
func many(n int, total float64) []source {
	var all []source
	for i := range n {
		all = append(all, source{client: fmt.Sprint("steady", i), rate: total / float64(n)})
	}
	return all
}

// enough is a limit that keeps the backend busy with little of a queue inside; the estimate has tests of its own.
func enough() Config {
	cfg := fixed(24, Queue{MaxWait: 200 * ms})
	cfg.Routes = []Route{{Name: "vital", Priority: CriticalPlus}, {Name: "plus", Priority: SheddablePlus}, {Name: "batch", Priority: Sheddable}}
	return cfg
}

// firstCome puts the negative control in the place of the fair line.
func (o *overload) firstCome() *overload {
	o.m.s.gate.line = queue.NewFIFO(DefaultQueueCapacity)
	return o
}

// TestTheServedAreServedInTime: whoever asks, one client or each its own, what can be served is, nobody late, and half of them
// within twice the time that the work alone takes. Of a flood most are refused at once.
func TestTheServedAreServedInTime(t *testing.T) {
	const seconds = 7
	for _, times := range []float64{1.2, 2, 10} {
		for _, clients := range []int{1, 50, 5000} {
			o := newOverload(t, enough(), many(clients, times*capacity), seconds, 1).play()
			y, refused := o.all(), o.m.Status().Refused
			goodput := float64(y.good) / (seconds - 3) / capacity
			if goodput < .97 || float64(y.late) > .01*float64(y.good) || y.p50() > 2*service {
				t.Errorf("%v times the capacity from %d clients: goodput %.3f, %d of %d late, half within %v",
					times, clients, goodput, y.late, y.good, y.p50())
			}
			waited := refused[WaitExpired] + refused[Displaced]
			if atOnce := refused[Overloaded] + refused[QueueFull]; times == 10 && atOnce < 9*waited {
				t.Errorf("from %d clients %d were refused at once and %d after they had waited", clients, atOnce, waited)
			}
		}
	}
	if y := newOverload(t, enough(), many(1, 2*capacity), seconds, 1).firstCome().play().all(); y.p50() < 2*service {
		t.Errorf("the control serves half within %v: the test shows nothing", y.p50())
	}
}

// TestAHiccupIsNoOverload: 100 ms without an answer every ten seconds at 90 % of the capacity are waited out.
func TestAHiccupIsNoOverload(t *testing.T) {
	for _, clients := range []int{1, 50, 5000} {
		var asked, refused int
		for seed := range uint64(3) {
			o := newOverload(t, enough(), many(clients, .9*capacity), 33, seed)
			o.hiccups()
			y := o.play().all()
			asked, refused = asked+y.asked, refused+y.asked-y.good-y.late
		}
		if part := float64(refused) / float64(asked); part > .005 {
			t.Errorf("%d clients: %.4f refused", clients, part)
		}
	}
}

// TestANoisyNeighbourIsTheOnlyOneRefused: 17 steady clients ask for half the capacity, one for one and a half.
func TestANoisyNeighbourIsTheOnlyOneRefused(t *testing.T) {
	steady := func(o *overload) float64 {
		y := o.play().yields
		var sum yield
		for _, y := range y[:17] {
			sum.asked, sum.good = sum.asked+y.asked, sum.good+y.good
		}
		return sum.share()
	}
	sources := append(many(17, .5*capacity), source{client: "greedy", rate: 1.5 * capacity})
	for seed := range uint64(3) {
		if share := steady(newOverload(t, enough(), sources, 13, seed)); share < .99 {
			t.Errorf("%.4f of the steady clients' requests were served", share)
		}
	}
	if share := steady(newOverload(t, enough(), sources, 13, 1).firstCome()); share > .8 {
		t.Errorf("the control serves %.3f: the test shows nothing", share)
	}
}

// TestTheTopPriorityFeelsNoOverload: at twice the capacity, half of it vital.
func TestTheTopPriorityFeelsNoOverload(t *testing.T) {
	sources := []source{
		{"a", "vital", .5 * capacity}, {"a", "plus", .5 * capacity}, {"a", "batch", capacity},
	}
	for seed := range uint64(3) {
		y := newOverload(t, enough(), sources, 13, seed).play().yields
		if y[0].share() < .994 || y[1].share() < .8 || y[2].good == 0 || y[1].share() < y[2].share() {
			t.Errorf("served: vital %.4f, sheddable_plus %.4f, sheddable %.4f", y[0].share(), y[1].share(), y[2].share())
		}
	}
	if y := newOverload(t, enough(), sources, 13, 1).firstCome().play().yields; y[0].share() > .8 {
		t.Errorf("the control serves %.3f of the vital: the test shows nothing", y[0].share())
	}
}
