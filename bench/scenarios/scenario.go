package scenarios

import (
	"net/netip"
	"slices"
	"time"
)

// Scenario is one claim about overload as data: an app, the load on it, what goes wrong meanwhile, and what must come out.
type Scenario struct {
	// ID names it on the command line; About says in a sentence what it shows.
	ID    string `yaml:"id"`
	About string `yaml:"about"`
	// Kind is "" for a run over phases, "sweep" for one run per level, "bisect" for the search of the capacity, "probe" for
	// the exact checks of package probe and "overhead" for the cost of protection.
	Kind string `yaml:"kind"`
	// App is what is protected.
	App App `yaml:"app"`
	// Deadline is D: an answer is good only within D of its scheduled time.
	Deadline time.Duration `yaml:"deadline"`
	// Arrivals is "poisson" (the default) or "constant".
	Arrivals string `yaml:"arrivals"`
	// Phases follow each other; loads of populations are given for each.
	Phases []Phase `yaml:"phases"`
	// Levels multiply all loads, one cold run for each; empty means one run at 1.
	Levels []float64 `yaml:"levels"`
	// Populations are groups of clients that behave alike.
	Populations []Population `yaml:"populations"`
	// Disturb is what happens to the app meanwhile.
	Disturb []Disturbance `yaml:"disturb"`
	// Switch is a feature that is switched off meanwhile; absent means none.
	Switch *Switch `yaml:"switch"`
	// Arms are those that are run; empty means none, static and spillway.
	Arms []string `yaml:"arms"`
	// Static is the limit of the static arm; 0 means the app's slots.
	Static int `yaml:"static"`
	// Spillway is the configuration of the library, as its YAML file.
	Spillway string `yaml:"spillway"`
	// Modes are the ways it can be run beside sim: "handler", "socket". Virtual says why there are none.
	Modes   []string `yaml:"modes"`
	Virtual string   `yaml:"virtual"`
	// Length says why the phases of a suite are as long in real time as they are, where Real says so, and RealLevels which of the levels
	// are played there; empty means all.
	Length     string    `yaml:"length"`
	RealLevels []float64 `yaml:"real_levels"`
	// Seeds is how many seeds a whole suite plays in virtual time; 0 means as many as for all.
	Seeds int `yaml:"seeds"`
	// Margin is how far the goodput of the modes may be apart; 0 means 0.05.
	Margin float64 `yaml:"margin"`
	// Pass is what must come out.
	Pass []Criterion `yaml:"pass"`
	// Probe is the quota that the exact checks expect, for kind probe.
	Probe *Probe `yaml:"probe"`
}

// App is a service whose capacity is not CPU: slots that each serve one request at a time, and in front of them an unbounded
// line, first come first served, that ignores cancellation, as pools of threads and of connections do. Its capacity C is
// Slots/Service.
type App struct {
	Slots   int           `yaml:"slots"`
	Service time.Duration `yaml:"service"`
	// Spread is how service times vary: "fixed" (the default) or "exponential".
	Spread string `yaml:"spread"`
}

// Capacity is C in requests per second.
func (a App) Capacity() float64 { return float64(a.Slots) / a.Service.Seconds() }

// Phase is a part of the run. The phase that is marked as trigger is what recovery is counted from and is shaded in
// reports; phases that are marked as warmup are drawn, but judged by nothing.
type Phase struct {
	Name    string        `yaml:"name"`
	For     time.Duration `yaml:"for"`
	Quick   time.Duration `yaml:"quick"` // for a quick suite; 0 means For
	Real    time.Duration `yaml:"real"`  // for the part of a suite that is played in real time; 0 means For
	Trigger bool          `yaml:"trigger"`
	Warmup  bool          `yaml:"warmup"`
}

// Population is a group of clients that behave alike.
type Population struct {
	Name string `yaml:"name"`
	// Clients is how many there are; 0 means 1. Requests fall on them at random.
	Clients int `yaml:"clients"`
	// Load is what they ask for together, as a multiple of C: one for each phase, or one for all.
	Load Loads `yaml:"load"`
	// Bursts come on top.
	Bursts *Bursts `yaml:"bursts"`
	// Route is the path they ask for and, in simulation, the name of the route; "" means "api".
	Route string `yaml:"route"`
	// Service is the mean service time of their requests; 0 means the app's.
	Service time.Duration `yaml:"service"`
	// Cost is the work of a request as it is declared to the rules; 0 means the route's.
	Cost int64 `yaml:"cost"`
	// Deadline is their own D, and Timeout when they give up; 0 means the scenario's D, and D.
	Deadline time.Duration `yaml:"deadline"`
	Timeout  time.Duration `yaml:"timeout"`
	// Churn is how often the population takes new identities; 0 means never. Identities is how many it has; 0 means no end.
	Churn      time.Duration `yaml:"churn"`
	Identities int           `yaml:"identities"`
	// From is the network whose addresses its clients have, each client its own; absent means that no address is told. Identities
	// that are made up are still of somebody's network.
	From netip.Prefix `yaml:"from"`
	// Polls says that they poll the pumpkin and leave its Switch's feature alone once they know that it is off: all that they
	// ask for is that feature.
	Polls bool `yaml:"polls"`
	// Retry is what they do when it failed; absent means nothing.
	Retry *Retry `yaml:"retry"`
	// Requests are mixed by weight, for real targets; empty means GET /Route.
	Requests []Request `yaml:"requests"`
}

// Request is one kind of request to a real target.
type Request struct {
	Method string            `yaml:"method"`
	Path   string            `yaml:"path"`
	Body   string            `yaml:"body"`
	Header map[string]string `yaml:"header"`
	Weight int               `yaml:"weight"`
}

// Retry says what a client does after a refusal, an error or a timeout.
type Retry struct {
	// Max is how often at most, beside the first try.
	Max int `yaml:"max"`
	// Policy is "immediate", or "backoff" for 100 ms · 2^n with full jitter, and not before Retry-After.
	Policy string `yaml:"policy"`
}

// Bursts are requests that come all at the same instant, each from another client.
type Bursts struct {
	At    time.Duration `yaml:"at"`
	Every time.Duration `yaml:"every"` // 0 means once
	// Size is how many, as a multiple of D·C.
	Size float64 `yaml:"size"`
}

// Disturbance is something that happens to the app for a while.
type Disturbance struct {
	At    time.Duration `yaml:"at"`
	For   time.Duration `yaml:"for"`
	Every time.Duration `yaml:"every"` // 0 means once
	// Slower multiplies service times of what starts meanwhile, for one population or ("") for all.
	Slower     float64 `yaml:"slower"`
	Population string  `yaml:"population"`
	// Stall says that nothing at all goes on meanwhile.
	Stall bool `yaml:"stall"`
	// Lost is how many slots are gone meanwhile; what they had begun they have finished. It is for a disturbance that comes once.
	Lost int `yaml:"lost"`
}

// Criterion is one row of the verdict: a metric of one arm within bounds.
type Criterion struct {
	Name   string `yaml:"name"`
	Metric string `yaml:"metric"`
	// Arm is "none", "static" or "spillway"; "" means spillway.
	Arm string `yaml:"arm"`
	// Phase is where it is measured; "" means all but warm-up. Than is what it is compared with, where the metric compares.
	Phase string `yaml:"phase"`
	Than  string `yaml:"than"`
	// Of names populations; empty means all.
	Of []string `yaml:"of"`
	// Level is the level of a sweep it is about; 0 means the worst of all levels at or above From. ThanLevel is the level
	// that it is compared with, where the metric compares levels.
	Level     float64 `yaml:"level"`
	From      float64 `yaml:"from"`
	ThanLevel float64 `yaml:"than_level"`
	// Min and Max are the bounds; at least one is there.
	Min *float64 `yaml:"min"`
	Max *float64 `yaml:"max"`
	// Slack is how far a run in real time may be beyond the bounds, and SlackWhy what the clock has to do with it.
	Slack    float64 `yaml:"slack"`
	SlackWhy string  `yaml:"slack_why"`
	// Every says that the worst seed counts and not the median, where chance decides which of several states it ends in.
	Every bool `yaml:"every"`
	// Control says that the row proves that the scenario hurts: an arm without protection must come out badly.
	Control bool `yaml:"control"`
	// Pending says why the product cannot do this yet. Such a row prints PENDING and fails only when it turns green.
	Pending string `yaml:"pending"`
	// Plain says what it means for a user, and Try what to do when it fails.
	Plain string `yaml:"plain"`
	Try   string `yaml:"try"`
}

// Probe is the quota that the exact checks expect of a target: a token bucket.
type Probe struct {
	Capacity int64 `yaml:"capacity"`
	Refill   int64 `yaml:"refill"` // tokens per second
}

// Duration is how long all phases take together.
func (s *Scenario) Duration() time.Duration {
	var d time.Duration
	for _, p := range s.Phases {
		d += p.For
	}
	return d
}

// Quicken makes the phases as long as they are in a quick suite.
func (s *Scenario) Quicken() {
	for i := range s.Phases {
		if p := &s.Phases[i]; p.Quick > 0 {
			p.For = p.Quick
		}
	}
}

// Quick is a quickened copy.
func (s *Scenario) Quick() *Scenario {
	quick := *s
	quick.Phases = slices.Clone(s.Phases)
	quick.Quicken()
	return &quick
}

// InRealTime returns the scenario as a suite plays it in real time, where a minute takes a minute.
func (s *Scenario) InRealTime() *Scenario {
	short := *s
	short.Phases = slices.Clone(s.Phases)
	for i := range short.Phases {
		if p := &short.Phases[i]; p.Real > 0 {
			p.For = p.Real
		}
	}
	if len(s.RealLevels) > 0 {
		short.Levels = s.RealLevels
	}
	return &short
}

// Requests is how many requests one run at that level asks for. Retries and bursts count for nothing.
func (s *Scenario) Requests(level float64) (requests float64) {
	for _, p := range s.Populations {
		for i, ph := range s.Phases {
			l := p.Load.In(i)
			requests += (l.From + l.To) / 2 * s.App.Capacity() * level * ph.For.Seconds()
		}
	}
	return requests
}

// Peak is how many attempts a second can come at most, where all are refused. Bursts count for nothing.
func (s *Scenario) Peak(level float64) (peak float64) {
	for i := range s.Phases {
		sum := 0.0
		for _, p := range s.Populations {
			tries := 1.0
			if p.Retry != nil {
				tries += float64(p.Retry.Max)
			}
			l := p.Load.In(i)
			sum += max(l.From, l.To) * s.App.Capacity() * level * tries
		}
		peak = max(peak, sum)
	}
	return peak
}

// Population returns the index of the named population, or -1.
func (s *Scenario) Population(name string) int {
	for i, p := range s.Populations {
		if p.Name == name {
			return i
		}
	}
	return -1
}
