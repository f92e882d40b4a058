package sim

import (
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway/bench/scenarios"
	"github.com/spillway-go/spillway/pumpkin"
)

// polling is what clients know of the feature that is switched off, for those populations that poll. They poll by the very
// schedule of the pumpkin's clients. A client's polls are made up when it is next looked at: they change nothing else.
type polling struct {
	scenario *scenarios.Scenario
	clients  [][]poller // by population; nil for those that do not poll
	rng      *rand.Rand
	polls    int
}

// poller is one client that polls.
type poller struct {
	schedule pumpkin.Schedule
	off      bool          // what it knows
	back     time.Duration // when its turn to come back is
}

// newPolling returns nil where nobody polls.
func newPolling(s *scenarios.Scenario, seed uint64) *polling {
	if s.Switch == nil {
		return nil
	}
	p := &polling{scenario: s, clients: make([][]poller, len(s.Populations)), rng: rand.New(rand.NewPCG(seed, 1<<33))}
	for i := range s.Populations {
		if !s.Populations[i].Polls {
			continue
		}
		p.clients[i] = make([]poller, s.Populations[i].Clients)
		for n := range p.clients[i] {
			p.clients[i][n].schedule.Start(0, p.rng.Float64())
		}
	}
	return p
}

// away reports whether the client leaves the feature alone at now.
func (p *polling) away(now time.Duration, population, client int) bool {
	if p == nil || p.clients[population] == nil {
		return false
	}
	c := &p.clients[population][client]
	p.catchUp(now, c)
	return c.off || now < c.back
}

// catchUp makes the client's polls until now.
func (p *polling) catchUp(now time.Duration, c *poller) {
	w := p.scenario.Switch
	for c.schedule.Due() <= now {
		at := c.schedule.Due()
		p.polls++
		if p.rng.Float64() < w.Lost {
			c.schedule.Failed(at, 0, p.rng.Float64())
			continue
		}
		off := w.OffAt(at)
		if c.off && !off {
			c.back = at + time.Duration(p.rng.Float64()*float64(w.RecoverSpread))
		}
		c.off = off
		c.schedule.Answered(at, w.PollAfter, p.rng.Float64())
	}
}

// perPromise is how many polls there were until end, as a multiple of one for each client and poll_after.
func (p *polling) perPromise(end time.Duration) float64 {
	clients := 0
	for _, all := range p.clients {
		for n := range all {
			p.catchUp(end, &all[n])
		}
		clients += len(all)
	}
	promised := float64(clients) * float64(end) / float64(p.scenario.Switch.PollAfter)
	return float64(p.polls) / max(1, promised)
}

// FeatureOff is the pumpkin on the server's side: features for the machine.
func (s *sim) FeatureOff(feature, _ string) (words string, retryAfter time.Duration, off bool) {
	if w := s.Scenario.Switch; w != nil && w.Feature == feature && w.OffAt(s.now) {
		return "switched off", w.PollAfter, true
	}
	return "", 0, false
}
