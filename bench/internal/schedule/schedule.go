// Package schedule answers the question: when does which client ask, and how much work is it?
//
// The answer is an absolute schedule that depends on the scenario and the seed alone, never on how the answers come: load is
// open, as that of the world is. The same schedule drives simulations and real runs, arm after arm, so that all of them meet
// the same requests with the same service times.
package schedule

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway/bench/scenarios"
)

// Arrival is one request of the schedule.
type Arrival struct {
	At         time.Duration // since the start of the run
	Population int
	Client     int // of the population; with churn, the identity
	Work       time.Duration
	Draw       uint32 // at random, to choose from a mix of requests
}

// Schedule hands out arrivals in the order of their times. New makes one; it is for one goroutine.
type Schedule struct {
	streams []stream
}

// New makes the schedule of s at level times its loads.
func New(s *scenarios.Scenario, level float64, seed uint64) *Schedule {
	sch := new(Schedule)
	for i := range s.Populations {
		p := &s.Populations[i]
		if len(p.Load) > 0 {
			sch.add(newSteady(s, i, level, seed))
		}
		if p.Bursts != nil {
			sch.add(newBursts(s, i, level, seed))
		}
	}
	return sch
}

// stream is an endless or ending sequence of arrivals in order of time.
type stream interface {
	head() Arrival // what comes next
	advance() bool // whether there is one
}

func (s *Schedule) add(st stream) {
	if st.advance() {
		s.streams = append(s.streams, st)
	}
}

// Next returns the next arrival; ok is false at the end.
func (s *Schedule) Next() (a Arrival, ok bool) {
	if len(s.streams) == 0 {
		return Arrival{}, false
	}
	first := 0
	for i := 1; i < len(s.streams); i++ {
		if s.streams[i].head().At < s.streams[first].head().At {
			first = i
		}
	}
	a = s.streams[first].head()
	if !s.streams[first].advance() {
		s.streams = append(s.streams[:first], s.streams[first+1:]...)
	}
	return a, true
}

// source draws what one population's requests are like.
type source struct {
	rng         *rand.Rand
	population  int
	clients     int
	service     time.Duration
	exponential bool
	churn       time.Duration
	identities  int
	next        Arrival
}

func newSource(s *scenarios.Scenario, i int, seed, use uint64) source {
	p := &s.Populations[i]
	return source{
		rng:        rand.New(rand.NewPCG(seed, uint64(i)<<8|use)),
		population: i, clients: p.Clients, service: p.Service, exponential: s.App.Spread == "exponential",
		churn: p.Churn, identities: p.Identities,
	}
}

// arrive makes the arrival at time at of the client with that number.
func (s *source) arrive(at time.Duration, client int) {
	if s.churn > 0 {
		client += s.clients * int(at/s.churn)
		if s.identities > 0 {
			client %= s.identities
		}
	}
	work := s.service
	if s.exponential {
		work = max(1, time.Duration(s.rng.ExpFloat64()*float64(s.service)))
	}
	s.next = Arrival{At: at, Population: s.population, Client: client, Work: work, Draw: s.rng.Uint32()}
}

func (s *source) head() Arrival { return s.next }

// steady is the load that a population's rate gives: the times at which the integral of the rate over time passes the next
// mark. Marks are 1 apart for constant arrivals and exponentially distributed for a Poisson process.
type steady struct {
	source
	poisson bool
	pieces  []piece
	at      time.Duration // of the mark before
}

// piece is a part of the schedule in which the rate is linear.
type piece struct {
	start, end time.Duration
	from, to   float64 // per second
}

func newSteady(s *scenarios.Scenario, i int, level float64, seed uint64) *steady {
	st := &steady{source: newSource(s, i, seed, 1), poisson: s.Arrivals == "poisson"}
	start, c := time.Duration(0), s.App.Capacity()*level
	for n, p := range s.Phases {
		load := s.Populations[i].Load.In(n)
		st.pieces = append(st.pieces, piece{start, start + p.For, load.From * c, load.To * c})
		start += p.For
	}
	return st
}

func (s *steady) advance() bool {
	mark := 1.0
	if s.poisson {
		mark = s.rng.ExpFloat64()
	}
	for len(s.pieces) > 0 {
		p := s.pieces[0]
		at, rest := p.pass(max(s.at, p.start), mark)
		if rest == 0 {
			s.at = at
			s.arrive(at, s.rng.IntN(s.clients))
			return true
		}
		mark, s.pieces = rest, s.pieces[1:]
	}
	return false
}

// pass returns when the integral of the rate from t on reaches mark, or what is missing at the end of the piece.
func (p *piece) pass(t time.Duration, mark float64) (at time.Duration, missing float64) {
	left := (p.end - t).Seconds()
	slope := (p.to - p.from) / (p.end - p.start).Seconds()
	rate := p.from + slope*(t-p.start).Seconds()
	if whole := left * (rate + slope*left/2); whole < mark {
		return 0, mark - max(whole, 0)
	}
	// rate·x + slope/2·x² = mark, in the form that is exact for small slopes.
	x := 2 * mark / (rate + math.Sqrt(max(0, rate*rate+2*slope*mark)))
	return t + min(time.Duration(x*float64(time.Second)), p.end-t), 0
}

// bursts are many arrivals at the same instant, each of the next client.
type bursts struct {
	source
	at, every, end time.Duration
	size, left     int
	client         int
}

func newBursts(s *scenarios.Scenario, i int, level float64, seed uint64) *bursts {
	b := s.Populations[i].Bursts
	size := int(math.Round(b.Size * level * s.Deadline.Seconds() * s.App.Capacity()))
	return &bursts{source: newSource(s, i, seed, 2), at: b.At, every: b.Every, end: s.Duration(), size: size, left: size}
}

func (b *bursts) advance() bool {
	if b.left == 0 {
		if b.every == 0 {
			return false
		}
		b.at, b.left = b.at+b.every, b.size
	}
	if b.at >= b.end || b.left == 0 {
		return false
	}
	b.left--
	b.arrive(b.at, b.client%b.clients)
	b.client++
	return true
}
