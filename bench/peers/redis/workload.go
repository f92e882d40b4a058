package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/spillway-go/spillway/bench/peers/stopwatch"
)

// measurement is one case: so many callers, who draw from so many keys.
type measurement struct {
	name    string
	callers int
	keys    int
}

func casesOf(p plan) []measurement {
	return []measurement{
		{"hot key, 256 callers", 256, 1},
		{"hot key, 64 callers", 64, 1},
		{"100 000 keys, 64 callers", 64, p.keys},
		{"100 000 keys, one caller", 1, p.keys},
	}
}

// subject is a contender with a workload. It notes how long each decision took.
type subject struct {
	ask   take
	names []string

	mu   sync.Mutex
	runs []counted // of all callers, in the order in which they ended
}

// counted is one caller's run.
type counted struct {
	n     int
	waits *waits
}

// run makes n decisions one after the other, as one caller. It is an error if one of them is a refusal.
func (s *subject) run(caller, n int) error {
	w := new(waits)
	random := rand.New(rand.NewPCG(uint64(caller), rand.Uint64()))
	for range n {
		key := s.names[0]
		if len(s.names) > 1 {
			key = s.names[random.IntN(len(s.names))]
		}
		begin := time.Now()
		allowed, err := s.ask(key)
		w.add(time.Since(begin))
		if err != nil {
			return err
		}
		if !allowed {
			return fmt.Errorf("%s was denied: it is another case that was timed", key)
		}
	}
	s.mu.Lock()
	s.runs = append(s.runs, counted{n, w})
	s.mu.Unlock()
	return nil
}

// measured returns the waits of the last so many runs; those before were to warm up.
func (s *subject) measured(runs int) *waits {
	all := new(waits)
	for _, r := range s.runs[max(0, len(s.runs)-runs):] {
		all.merge(r.waits)
	}
	return all
}

// result is what one contender did in one case.
type result struct {
	perSecond, spread float64
	p50, p99          time.Duration
	cpu               time.Duration // of the server, for one decision
}

// compare measures contenders in one case, one against the other.
func (p plan) compare(s *server, m measurement, contenders []limiter) (map[string]result, error) {
	if err := s.empty(); err != nil {
		return nil, err
	}
	names := make([]string, m.keys)
	for i := range names {
		names[i] = name(i)
	}
	subjects := make([]*subject, len(contenders))
	clocked := make([]stopwatch.Contender, len(contenders))
	cpus := make([]*cpu, len(contenders))
	for i, c := range contenders {
		ask, end, err := c.open(s, wide)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		defer end()
		subjects[i] = &subject{ask: ask, names: names}
		if err := subjects[i].warm(m); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		cpus[i] = &cpu{server: s, callers: m.callers, run: subjects[i].run}
		clocked[i] = stopwatch.Contender{Name: c.name, Run: cpus[i].timed}
	}
	figures, err := stopwatch.Compare(stopwatch.Plan{Cores: 2, Rounds: p.rounds, Span: p.span, Callers: m.callers}, clocked)
	if err != nil {
		return nil, err
	}
	results := make(map[string]result)
	for i, f := range figures {
		w := subjects[i].measured(p.rounds * m.callers)
		results[f.Name] = result{
			perSecond: 1e9 / f.Nanos, spread: f.Spread, p50: w.at(0.5), p99: w.at(0.99), cpu: cpus[i].perDecision(p.rounds),
		}
	}
	return results, nil
}

// warm gives every key its balance.
func (s *subject) warm(m measurement) error {
	return fillAll(m.keys, func(i int) error {
		_, err := s.ask(s.names[i])
		return err
	})
}

// cpu counts the server's processor time around each run of all callers.
type cpu struct {
	server  *server
	callers int
	run     func(caller, n int) error

	mu     sync.Mutex
	inside int // callers that are in a run, or have been in this one
	begin  time.Duration
	runs   []time.Duration // for one decision
	err    error
}

// timed is run, and notes the server's processor time when the first caller begins and when the last ends.
func (c *cpu) timed(caller, n int) error {
	c.mu.Lock()
	if c.inside == 0 {
		c.begin, c.err = c.server.cpu()
	}
	c.inside++
	c.mu.Unlock()
	err := c.run(caller, n)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inside++; c.inside == 2*c.callers {
		c.inside = 0
		end, err := c.server.cpu()
		if err != nil {
			c.err = err
		}
		c.runs = append(c.runs, (end-c.begin)/time.Duration(n*c.callers))
	}
	if err == nil {
		err = c.err
	}
	return err
}

// perDecision returns the median of the last so many runs.
func (c *cpu) perDecision(runs int) time.Duration {
	return median(c.runs[max(0, len(c.runs)-runs):])
}
