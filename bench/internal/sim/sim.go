package sim

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"time"

	"github.com/spillway-go/spillway/bench/internal/app"
	"github.com/spillway-go/spillway/bench/internal/load"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/internal/schedule"
	"github.com/spillway-go/spillway/bench/scenarios"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

// Config is one run.
type Config struct {
	Scenario *scenarios.Scenario
	// Arm is "none", "static", "spillway" or "oracle"; Flaw breaks the library in a named way, to test the criteria.
	Arm, Flaw string
	Level     float64
	Seed      uint64
}

// sim is one run under way.
type sim struct {
	Config
	now      time.Duration
	schedule *schedule.Schedule
	app      *app.App
	gate     gate
	store    *limits.Memory
	recorder *measure.Recorder
	rng      *rand.Rand // of what clients draw while it runs
	agenda   agenda
	pool     pool
	patience []patience
	polling  *polling // nil where nobody polls
	names    [][]string
	tick     time.Duration
	second   time.Duration
}

// Run plays the scenario. The errors are about its settings. When ctx ends it stops early, and the Run is partial.
func Run(ctx context.Context, cfg Config) (*measure.Run, error) {
	s := &sim{
		Config: cfg, schedule: schedule.New(cfg.Scenario, cfg.Level, cfg.Seed), app: app.New(cfg.Scenario),
		recorder: measure.NewRecorder(cfg.Scenario, cfg.Arm, "sim", cfg.Level, cfg.Seed),
		rng:      rand.New(rand.NewPCG(cfg.Seed, 1<<32)),
	}
	var err error
	if s.gate, s.store, err = newGate(cfg.Scenario, cfg.Arm, cfg.Flaw, cfg.Seed, s.app, s); err != nil {
		return nil, err
	}
	if cfg.Arm == "spillway" { // the other arms have no document to poll
		s.polling = newPolling(cfg.Scenario, cfg.Seed)
	}
	for _, p := range cfg.Scenario.Populations {
		s.patience = append(s.patience, patience{timeout: p.Timeout})
		var names []string
		if p.Churn == 0 {
			for i := range p.Clients {
				names = append(names, p.Name+"-"+strconv.Itoa(i))
			}
		}
		s.names = append(s.names, names)
	}
	partial := s.play(ctx)
	run := s.recorder.Finish()
	run.Partial = partial
	return run, nil
}

// eventsPerLook is how many events pass between two looks at the context.
const eventsPerLook = 1 << 14

// play lets time pass until everything has ended.
func (s *sim) play(ctx context.Context) (partial bool) {
	end := s.Scenario.Duration()
	last := end // when the last client has given up
	for _, p := range s.Scenario.Populations {
		last = max(last, end+p.Timeout)
	}
	last += time.Second
	arrival, more := s.schedule.Next()
	for n := 1; ; n++ {
		if n%eventsPerLook == 0 && ctx.Err() != nil {
			return true
		}
		at, who := s.first()
		if more && arrival.At < at {
			at, who = arrival.At, -1
		}
		if s.tick < at {
			at, who = s.tick, -2
		}
		if at > last {
			s.close()
			return false
		}
		s.now = at
		switch {
		case who == -2:
			s.passTime()
		case who == -1:
			s.arrive(arrival)
			arrival, more = s.schedule.Next()
		case who < len(s.patience):
			s.giveUp(s.patience[who].pop())
		default:
			s.happen(s.agenda.next())
		}
		for a := s.gate.woken(); a != nil; a = s.gate.woken() {
			s.follow(a)
		}
	}
}

// first returns when the next event or timeout comes, and which: the index of the population for a timeout.
func (s *sim) first() (at time.Duration, who int) {
	at, who = never, len(s.patience)
	if len(s.agenda.events) > 0 {
		at = s.agenda.events[0].at
	}
	for i := range s.patience {
		if t := s.patience[i].next(); t < at {
			at, who = t, i
		}
	}
	return at, who
}

func (s *sim) passTime() {
	s.gate.tick(s.now)
	s.tick += shed.TickEvery
	if s.now >= s.second {
		s.second += time.Second
		limit, waiting, inFlight := s.gate.gauge()
		s.recorder.Gauge(s.now, limit, waiting, inFlight)
	}
}

func (s *sim) arrive(arrival schedule.Arrival) {
	if s.polling.away(s.now, arrival.Population, arrival.Client) {
		return // the client knows that it would be in vain
	}
	a := s.pool.get()
	a.Arrival = arrival
	if names := s.names[a.Population]; a.Client < len(names) {
		a.client = names[a.Client]
	} else {
		a.client = s.Scenario.Populations[a.Population].Name + "-" + strconv.Itoa(a.Client)
	}
	a.ip = address(&s.Scenario.Populations[a.Population], a.Client)
	s.launch(a)
}

// address is the client's address as the middleware reduces it: of IPv6 the /64, which one customer holds.
func address(p *scenarios.Population, client int) netip.Addr {
	addr := p.Address(client)
	if !addr.Is6() {
		return addr
	}
	holder, _ := addr.Prefix(64)
	return holder.Addr()
}

// launch sends an attempt to the gate.
func (s *sim) launch(a *attempt) {
	s.recorder.Asked(a.At, a.Population, a.Client, a.tries > 0)
	s.recorder.Sent(0)
	s.patience[a.Population].push(a)
	a.answered = false
	s.gate.admit(s.now, a)
	s.follow(a)
}

// follow goes on with an attempt that the gate has decided about.
func (s *sim) follow(a *attempt) {
	switch a.place {
	case working:
		a.start, a.end = s.app.Reserve(s.now, a.Population, a.Work)
		s.agenda.plan(a.end, workEnds, a)
	case waiting:
		if a.until < never {
			s.agenda.plan(a.until, waitEnds, a)
		}
	case outside:
		if !a.answered {
			s.answer(a, measure.Shed, s.now-a.At)
		}
		s.pool.put(a)
	}
}

// answer ends the client's side.
func (s *sim) answer(a *attempt, o measure.Outcome, latency time.Duration) {
	a.answered = true
	end := measure.End{At: a.At, Population: a.Population, Client: a.Client, Outcome: o, Latency: latency}
	after := time.Duration(0)
	if o == measure.Shed {
		end.Reason, after = a.why, a.after
	}
	s.recorder.Ended(end)
	if o == measure.OK || o == measure.Late {
		return
	}
	tries := a.tries + 1
	delay, ok := load.RetryDelay(s.Scenario.Populations[a.Population].Retry, tries, after, s.rng.Int64N)
	if !ok || s.now+delay >= s.Scenario.Duration() {
		return
	}
	again := s.pool.get()
	again.Arrival, again.client, again.ip, again.tries = a.Arrival, a.client, a.ip, tries
	again.At = s.now + delay
	s.agenda.plan(again.At, retries, again)
}

func (s *sim) giveUp(a *attempt) {
	if !a.answered {
		if a.place == waiting {
			s.gate.leave(s.now, a)
		}
		s.answer(a, measure.Timeout, s.Scenario.Populations[a.Population].Timeout)
	}
	s.pool.put(a)
}

func (s *sim) happen(e event) {
	a := e.a
	a.refs--
	switch e.kind {
	case retries:
		s.launch(a)
		return
	case waitEnds:
		if a.place == waiting && s.now >= a.until {
			s.gate.timeUp(s.now, a)
			s.follow(a)
			return
		}
	case workEnds:
		s.finish(a)
	}
	s.pool.put(a)
}

// finish ends the server's side: the app has done the work.
func (s *sim) finish(a *attempt) {
	a.place = outside
	deadline := s.Scenario.Populations[a.Population].Deadline
	late := s.now-a.At > deadline
	s.recorder.Worked(a.At, a.end-a.start, late || a.answered)
	if a.answered {
		s.gate.done(s.now, a, shed.Ignored) // the client has gone: this says nothing about capacity
		return
	}
	s.gate.done(s.now, a, shed.Success)
	outcome := measure.OK
	if late {
		outcome = measure.Late
	}
	s.answer(a, outcome, s.now-a.At)
}

// close notes what is left when everybody has gone: work that nobody waits for, and slots that did not come back.
func (s *sim) close() {
	for _, e := range s.agenda.events {
		if e.kind == workEnds {
			s.recorder.Worked(e.a.At, e.a.end-e.a.start, true)
		}
	}
	_, _, inFlight := s.gate.gauge()
	s.recorder.Extra("in_flight_end", float64(inFlight))
	if s.polling != nil {
		s.recorder.Extra("polls", s.polling.perPromise(s.Scenario.Duration()))
	}
	if s.store != nil {
		s.recorder.Extra("keys", float64(s.store.Stats().Keys))
	}
}
