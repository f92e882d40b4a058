package main

import (
	"flag"
	"net/url"
	"time"

	"github.com/spillway-go/spillway/bench/scenarios"
)

// adhoc is a scenario from flags: one population, one phase.
type adhoc struct {
	rate               float64
	duration           time.Duration
	arrivals           string
	clients            int
	deadline, timeout  time.Duration
	retry              string
	retries            int
	method, path, body string
	rampTo             float64
	spike              float64
}

func (a *adhoc) flags(f *flag.FlagSet) {
	f.Float64Var(&a.rate, "rate", 100, "requests per second")
	f.DurationVar(&a.duration, "duration", 10*time.Second, "how long")
	f.StringVar(&a.arrivals, "arrivals", "poisson", "poisson or constant")
	f.IntVar(&a.clients, "clients", 10, "how many clients, told apart by X-API-Key")
	f.DurationVar(&a.deadline, "deadline", 250*time.Millisecond, "an answer is good only within this time")
	f.DurationVar(&a.timeout, "timeout", time.Second, "when clients give up")
	f.StringVar(&a.retry, "retry", "none", "what clients do after a failure: none, immediate or backoff")
	f.IntVar(&a.retries, "retries", 3, "how often at most, with -retry")
	f.StringVar(&a.method, "method", "GET", "the HTTP `method`")
	f.StringVar(&a.path, "path", "", "the `path` to ask for; without it that of -target")
	f.StringVar(&a.body, "body", "", "the `body` to send")
	f.Float64Var(&a.rampTo, "ramp-to", 0, "the rate moves linearly from -rate to this")
	f.Float64Var(&a.spike, "spike", 0, "in the middle third of the time the rate is this")
}

// aim takes the path to ask for out of the targets, of which the second may be empty, unless -path names one: then it comes behind
// theirs.
func (a *adhoc) aim(targets ...*string) error {
	if a.path != "" {
		return nil
	}
	a.path = "/"
	for i, target := range targets {
		u, err := url.Parse(*target)
		if err != nil || u.Host == "" {
			continue // what is no URL is refused later
		}
		path := u.RequestURI()
		switch {
		case i == 0:
			a.path = path
		case path != "/" && path != a.path:
			return usagef("-target asks for %s and -target2 for %s: both are asked for the same", a.path, path)
		}
		*target = (&url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host}).String()
	}
	return nil
}

func (a *adhoc) scenario() (*scenarios.Scenario, error) {
	switch {
	case !(a.rate > 0 && a.rate <= 1e6):
		return nil, usagef("-rate %v is not above 0 and at most a million", a.rate)
	case a.duration < 100*time.Millisecond || a.duration > 24*time.Hour:
		return nil, usagef("-duration %v is not from 100ms to 24h", a.duration)
	case a.arrivals != "poisson" && a.arrivals != "constant":
		return nil, usagef("-arrivals %q is neither poisson nor constant", a.arrivals)
	case a.clients < 1 || a.clients > 100_000:
		return nil, usagef("-clients %d is not from 1 to 100000", a.clients)
	case a.deadline <= 0 || a.timeout <= 0 || a.timeout > time.Minute || a.deadline > time.Minute:
		return nil, usagef("-deadline and -timeout must be above 0 and at most 1m")
	case a.retry != "none" && a.retry != "immediate" && a.retry != "backoff":
		return nil, usagef("-retry %q is none of none, immediate, backoff", a.retry)
	case a.retries < 1 || a.retries > 100:
		return nil, usagef("-retries %d is not from 1 to 100", a.retries)
	case a.rampTo < 0 || a.spike < 0 || a.rampTo > 1e6 || a.spike > 1e6 || a.rampTo > 0 && a.spike > 0:
		return nil, usagef("-ramp-to and -spike are rates from 0 to a million, and only one of them")
	}
	// Loads are multiples of C, which nobody knows of a foreign server: with C = the highest rate, "goodput" is the share
	// of what was asked for.
	top := max(a.rate, a.rampTo, a.spike)
	share := func(rate float64) scenarios.Load { return scenarios.Load{From: rate / top, To: rate / top} }
	s := &scenarios.Scenario{
		ID: "adhoc", About: "What the flags say.", Arrivals: a.arrivals, Deadline: a.deadline, Levels: []float64{1},
		App: scenarios.App{Slots: 1, Service: time.Duration(float64(time.Second) / top), Spread: "fixed"},
	}
	p := scenarios.Population{
		Name: "clients", Clients: a.clients, Service: s.App.Service, Deadline: a.deadline, Timeout: a.timeout,
		Requests: []scenarios.Request{{Method: a.method, Path: a.path, Body: a.body, Weight: 1}},
	}
	if a.retry != "none" {
		p.Retry = &scenarios.Retry{Max: a.retries, Policy: a.retry}
	}
	switch {
	case a.rampTo > 0:
		s.Phases = []scenarios.Phase{{Name: "ramp", For: a.duration}}
		p.Load = scenarios.Loads{{From: a.rate / top, To: a.rampTo / top}}
	case a.spike > 0:
		third := a.duration / 3
		s.Phases = []scenarios.Phase{{Name: "before", For: third}, {Name: "spike", For: third, Trigger: true}, {Name: "after", For: a.duration - 2*third}}
		p.Load = scenarios.Loads{share(a.rate), share(a.spike), share(a.rate)}
	default:
		s.Phases = []scenarios.Phase{{Name: "load", For: a.duration}}
		p.Load = scenarios.Loads{share(a.rate)}
	}
	s.Populations = []scenarios.Population{p}
	return s, nil
}
