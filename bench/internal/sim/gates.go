package sim

import (
	"fmt"
	"time"

	"github.com/spillway-go/spillway/bench/internal/app"
	"github.com/spillway-go/spillway/bench/internal/arms"
	"github.com/spillway-go/spillway/bench/internal/flawed"
	"github.com/spillway-go/spillway/bench/scenarios"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

// gate is what stands in front of the app. admit and timeUp leave an attempt working (let in), waiting (until says how long)
// or outside (refused); woken returns, one by one, those that other calls have let in or refused.
type gate interface {
	admit(now time.Duration, a *attempt)
	timeUp(now time.Duration, a *attempt)
	leave(now time.Duration, a *attempt)
	done(now time.Duration, a *attempt, o shed.Outcome)
	tick(now time.Duration)
	woken() *attempt
	gauge() (limit, waiting, inFlight int)
}

func newGate(s *scenarios.Scenario, arm, flaw string, seed uint64, app *app.App, features shed.Features) (gate, *limits.Memory, error) {
	switch arm {
	case "none":
		return new(open), nil, nil
	case "static":
		return &static{limit: s.Static}, nil, nil
	case "oracle":
		return newOracle(s, app), nil, nil
	case "spillway":
		cfg, err := arms.Settings(s)
		if err != nil {
			return nil, nil, err
		}
		store, err := limits.NewMemory(limits.MemoryConfig{})
		if err != nil {
			return nil, nil, err
		}
		cfg.Store, cfg.Features = store, features
		if err := flawed.Break(&cfg, flaw); err != nil {
			return nil, nil, err
		}
		m, err := shed.NewMachine(cfg, Epoch, seed)
		if err != nil {
			return nil, nil, fmt.Errorf("bench: %w", err)
		}
		return &spillway{m: m, s: s}, store, nil
	}
	return nil, nil, fmt.Errorf("bench: arm %q is none of none, static, spillway", arm)
}

// Epoch is the wall-clock time at which simulations start.
var Epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// open lets everybody in.
type open struct{ inFlight int }

func (g *open) admit(_ time.Duration, a *attempt)          { g.inFlight++; a.place = working }
func (g *open) timeUp(time.Duration, *attempt)             {}
func (g *open) leave(time.Duration, *attempt)              {}
func (g *open) done(time.Duration, *attempt, shed.Outcome) { g.inFlight-- }
func (g *open) tick(time.Duration)                         {}
func (g *open) woken() *attempt                            { return nil }
func (g *open) gauge() (limit, waiting, inFlight int)      { return -1, 0, g.inFlight }

// static lets so many in and refuses the rest.
type static struct {
	open
	limit int
}

func (g *static) admit(_ time.Duration, a *attempt) {
	if g.inFlight >= g.limit {
		a.place, a.why, a.after = outside, "full", 0
		return
	}
	g.inFlight++
	a.place = working
}

func (g *static) gauge() (limit, waiting, inFlight int) { return g.limit, 0, g.inFlight }

// spillway is the library itself.
type spillway struct {
	m *shed.Machine
	s *scenarios.Scenario
}

func (g *spillway) admit(now time.Duration, a *attempt) {
	p := &g.s.Populations[a.Population]
	g.m.Admit(now, &a.job, shed.Request{Client: a.client, IP: a.ip, Route: p.Route, Cost: p.Cost})
	g.read(a)
}

func (g *spillway) timeUp(now time.Duration, a *attempt) {
	g.m.TimeUp(now, &a.job)
	g.read(a)
}

func (g *spillway) leave(now time.Duration, a *attempt) {
	g.m.Leave(now, &a.job)
	a.place = outside
}

func (g *spillway) done(now time.Duration, a *attempt, o shed.Outcome) { g.m.Done(now, &a.job, o) }
func (g *spillway) tick(now time.Duration)                             { g.m.Tick(now, 0, false) }

func (g *spillway) woken() *attempt {
	j := g.m.Woken()
	if j == nil {
		return nil
	}
	a := j.Owner.(*attempt)
	g.read(a)
	return a
}

// read takes over what the machine has decided.
func (g *spillway) read(a *attempt) {
	switch a.job.State {
	case shed.Granted:
		a.place = working
	case shed.Parked, shed.Standing:
		a.place, a.until = waiting, a.job.Until
	default:
		a.place, a.why, a.after = outside, "", 0
		if r := a.job.Rejection; r != nil {
			a.why, a.after = string(r.Reason), r.RetryAfter
		}
	}
}

func (g *spillway) gauge() (limit, waiting, inFlight int) {
	st := g.m.Status()
	return st.Limit, st.Waiting + st.Parked, st.InFlight
}
