package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/bench/peers/gates"
)

const (
	meanService = 20 * time.Millisecond
	budget      = 250 * time.Millisecond // how long a client stays
	backlog     = 4 * time.Second        // how much waiting the backend takes on
)

// phase is a time of constant load, in capacities.
type phase struct {
	load float64
	span time.Duration
}

// cell is one experiment: one gate, cold, in front of one backend, and the load that arrives.
type cell struct {
	kind        gates.Kind
	slots       int
	exponential bool // service times; otherwise all are meanService
	phases      []phase
	seed        uint64
}

// capacity is how many requests the backend can serve in a second.
func (c cell) capacity() float64 { return float64(c.slots) / meanService.Seconds() }

// peak is how many requests arrive in a second at most.
func (c cell) peak() float64 {
	most := 0.0
	for _, p := range c.phases {
		most = max(most, p.load*c.capacity())
	}
	return most
}

// outcome says what became of a request.
type outcome uint8

const (
	good     outcome = iota + 1 // answered within the budget
	late                        // answered after it: the client had left
	rejected                    // turned away by the gate
	gone                        // left while it waited at the gate
	failed                      // refused by the backend, whose line was full
	unsent                      // the generator had too many on the way
)

// answer is what became of one request, in microseconds after the moment at which it was due.
type answer struct {
	outcome outcome
	phase   uint8
	due     time.Duration
	lag     uint32 // until it was sent
	took    uint32 // until its answer
}

// request is one that is on the schedule.
type request struct {
	due     time.Duration
	phase   uint8
	service time.Duration
}

// schedule yields the requests of a cell in order. It depends on the seed alone, so every gate meets the same ones.
func (c cell) schedule(yield func(int, request) bool) {
	random := rand.New(rand.NewPCG(c.seed, uint64(c.slots)))
	n := 0
	var start time.Duration
	for k, p := range c.phases {
		rate := p.load * c.capacity()
		for i := range int(rate * p.span.Seconds()) {
			service := meanService
			if c.exponential {
				service = time.Duration(random.ExpFloat64() * float64(meanService))
			}
			due := start + time.Duration(float64(i)/rate*float64(time.Second))
			if !yield(n, request{due, uint8(k), service}) {
				return
			}
			n++
		}
		start += p.span
	}
}

// length is how many requests are on the schedule.
func (c cell) length() int {
	n := 0
	for _, p := range c.phases {
		n += int(p.load * c.capacity() * p.span.Seconds())
	}
	return n
}

// mostOnTheWay bounds the requests that are out at once, far above what a gate and the backend's line can hold.
func (c cell) mostOnTheWay() int64 {
	return int64(c.capacity()*(backlog+budget).Seconds()+c.peak()*budget.Seconds()) + 1000
}

// experiment is a cell that runs.
type experiment struct {
	cell    cell
	gate    *gates.Gate
	backend *backend
	start   time.Time
	onWay   atomic.Int64
	answers []answer
}

// run plays the cell and returns what became of each request, and the gate's limit at the end of each phase.
//
// The load is open: each request is sent when it is due, whatever became of those before. A generator that is late sends at
// once what is due, and says by how much it was late.
func (c cell) run() ([]answer, []int, error) {
	gate, err := c.kind.Open(c.slots)
	if err != nil {
		return nil, nil, err
	}
	defer gate.Close()
	e := &experiment{
		cell: c, gate: gate, backend: newBackend(c.slots, backlog), start: time.Now(),
		answers: make([]answer, c.length()),
	}
	limits := make([]int, len(c.phases))
	most, current := c.mostOnTheWay(), uint8(0)
	var out sync.WaitGroup
	for i, r := range c.schedule {
		if wait := r.due - time.Since(e.start); wait > 0 {
			time.Sleep(wait)
		}
		if r.phase != current {
			limits[current], current = gate.Limit(), r.phase
		}
		if e.onWay.Add(1) > most {
			e.onWay.Add(-1)
			e.answers[i] = answer{outcome: unsent, phase: r.phase, due: r.due}
			continue
		}
		out.Go(func() {
			e.answers[i] = e.serve(r)
			e.onWay.Add(-1)
		})
	}
	limits[current] = gate.Limit()
	out.Wait()
	return e.answers, limits, nil
}

// serve is one request, from its client to the backend and back. The gate sees what a server sees: that the client leaves,
// not when it will.
func (e *experiment) serve(r request) answer {
	lag := time.Since(e.start) - r.due
	ctx, leave := context.WithCancel(context.Background())
	patience := time.AfterFunc(budget-lag, leave)
	defer func() { patience.Stop(); leave() }()
	a := answer{phase: r.phase, due: r.due, lag: micros(lag)}
	a.outcome = e.pass(ctx, r)
	a.took = micros(time.Since(e.start) - r.due)
	return a
}

func (e *experiment) pass(ctx context.Context, r request) outcome {
	leave, ok := e.gate.Enter(ctx)
	if !ok {
		if ctx.Err() != nil {
			return gone
		}
		return rejected
	}
	now := time.Since(e.start)
	end, ok := e.backend.book(now, r.service)
	if !ok {
		leave(gates.Failed)
		return failed
	}
	time.Sleep(end - now)
	if time.Since(e.start)-r.due > budget {
		leave(gates.Late)
		return late
	}
	leave(gates.Good)
	return good
}

func micros(d time.Duration) uint32 { return uint32(max(0, d.Microseconds())) }
