package measure

import (
	"time"

	"github.com/spillway-go/spillway/bench/scenarios"
)

// Bounds of what a Recorder keeps, so that a day takes no more memory than a minute.
const (
	mostWindows     = 600
	mostFineWindows = 3000
	fineWindow      = 100 * time.Millisecond
	mostReasons     = 20
)

// Recorder builds a Run from what became of each request. NewRecorder makes one; it is for one goroutine at a time.
type Recorder struct {
	scenario *scenarios.Scenario
	run      *Run
	ends     []time.Duration // of the phases
	clients  [][]Client      // by population; nil for those that change their identities
	live     []liveWindow    // a ring of windows that answers still come for
	lag      Latency
	gauged   int // the window of the last Gauge
	readings int // how many there have been in it
}

// liveWindow collects the latencies of a window until no answer can come for it any more.
type liveWindow struct {
	index   int // -1 when unused
	latency Latency
}

// NewRecorder makes the Recorder for one run.
func NewRecorder(s *scenarios.Scenario, arm, mode string, level float64, seed uint64) *Recorder {
	d := s.Duration()
	window := time.Second
	for d/window > mostWindows {
		window += time.Second
	}
	r := &Recorder{
		scenario: s,
		run: &Run{
			Scenario: s.ID, Arm: arm, Mode: mode, Level: level, Seed: seed,
			Capacity: s.App.Capacity(), Deadline: InMicros(s.Deadline),
			Series: Series{Window: InMicros(window), Points: make([]Point, (d+window-1)/window)},
		},
		live: make([]liveWindow, slowest/window+2),
	}
	for i := range r.live {
		r.live[i].index = -1
	}
	if n := (d + fineWindow - 1) / fineWindow; n <= mostFineWindows {
		r.run.Fine = Fine{Window: InMicros(fineWindow), Asked: make([]int32, n), OK: make([]int32, n)}
	}
	r.layPhases()
	for _, p := range s.Populations {
		var all []Client
		if p.Churn == 0 {
			all = make([]Client, p.Clients)
		}
		r.clients = append(r.clients, all)
	}
	return r
}

func (r *Recorder) layPhases() {
	start := time.Duration(0)
	for _, p := range r.scenario.Phases {
		phase := Phase{Name: p.Name, Start: InMicros(start), End: InMicros(start + p.For), Trigger: p.Trigger, Warmup: p.Warmup}
		for _, pop := range r.scenario.Populations {
			weight := pop.Service.Seconds() / r.scenario.App.Service.Seconds()
			phase.Populations = append(phase.Populations, Population{Name: pop.Name, Weight: weight})
		}
		start += p.For
		r.run.Phases, r.ends = append(r.run.Phases, phase), append(r.ends, start)
	}
}

// phase returns the index of the phase at t; what comes after the end belongs to the last.
func (r *Recorder) phase(t time.Duration) int {
	for i, end := range r.ends {
		if t < end {
			return i
		}
	}
	return len(r.ends) - 1
}

// Asked counts an attempt that was scheduled for at; retry tells that it is not the first of its request.
func (r *Recorder) Asked(at time.Duration, population, client int, retry bool) {
	phase := r.phase(at)
	p := &r.run.Phases[phase].Populations[population]
	point := r.point(at)
	p.Attempts++
	point.Attempts++
	if retry {
		return
	}
	p.Asked++
	point.Asked++
	r.run.Generator.Asked++
	if i := int(at / fineWindow); i < len(r.run.Fine.Asked) {
		r.run.Fine.Asked[i]++
	}
	if c := r.client(population, client); c != nil {
		c.Asked[phase]++
	}
}

// Sent counts an attempt that left the generator lag after its time.
func (r *Recorder) Sent(lag time.Duration) {
	r.run.Generator.Sent++
	if lag > 0 {
		r.lag.Add(lag)
	}
}

// Unsent counts an attempt that the generator dropped because too much was in flight.
func (r *Recorder) Unsent() { r.run.Generator.Unsent++ }

// End is how one attempt ended.
type End struct {
	At                 time.Duration // scheduled
	Population, Client int
	Outcome            Outcome
	Latency            time.Duration // since At
	Service            time.Duration // since the actual send; 0 means unknown
	Reason             string        // of a refusal or an error
}

// Ended records how an attempt ended.
func (r *Recorder) Ended(e End) {
	phase := r.phase(e.At)
	p := &r.run.Phases[phase].Populations[e.Population]
	p.Counts[e.Outcome]++
	p.Latency[e.Outcome].Add(e.Latency)
	if e.Service > 0 {
		p.Service.Add(e.Service)
	}
	if e.Reason != "" {
		r.reason(p, e.Reason)
	}
	r.point(e.At).Counts[e.Outcome]++
	switch e.Outcome {
	case OK:
		if i := int(e.At / fineWindow); i < len(r.run.Fine.OK) {
			r.run.Fine.OK[i]++
		}
		if c := r.client(e.Population, e.Client); c != nil {
			c.OK[phase]++
		}
		r.window(e.At).Add(e.Latency)
	case Late, Timeout:
		r.window(e.At).Add(e.Latency)
	}
}

func (r *Recorder) reason(p *Population, reason string) {
	if p.Reasons == nil {
		p.Reasons = make(map[string]int64)
	}
	if _, known := p.Reasons[reason]; !known && len(p.Reasons) >= mostReasons {
		reason = "other"
	}
	p.Reasons[reason]++
}

// Worked records work of the app for a request that was scheduled for at; wasted tells that its answer was of no use.
func (r *Recorder) Worked(at, work time.Duration, wasted bool) {
	p := &r.run.Phases[r.phase(at)]
	p.Work += InMicros(work)
	if wasted {
		p.Wasted += InMicros(work)
	}
}

// Gauge notes the state of the gate at now.
func (r *Recorder) Gauge(now time.Duration, limit, waiting, inFlight int) {
	if i := int(now / r.run.Series.Window.Duration()); i < len(r.run.Series.Points) {
		p := &r.run.Series.Points[i]
		p.Limit, p.Waiting, p.InFlight = limit, waiting, inFlight
		if i != r.gauged {
			r.gauged, r.readings = i, 0
		}
		r.readings++
		p.MeanLimit += (float64(limit) - p.MeanLimit) / float64(r.readings)
	}
}

// Extra notes a figure that only some scenarios have.
func (r *Recorder) Extra(name string, value float64) {
	if r.run.Extra == nil {
		r.run.Extra = make(map[string]float64)
	}
	r.run.Extra[name] = value
}

// At returns the counts of the window at t, to show while the run goes on.
func (r *Recorder) At(t time.Duration) Point { return *r.point(t) }

// Finish ends the run and returns it.
func (r *Recorder) Finish() *Run {
	for i := range r.live {
		r.settle(&r.live[i])
	}
	g := &r.run.Generator
	g.LagP50, g.LagP99 = InMicros(r.lag.Quantile(.5)), InMicros(r.lag.Quantile(.99))
	g.LagMax = InMicros(r.lag.Quantile(1))
	r.run.Clients = r.keptClients()
	return r.run
}

func (r *Recorder) point(at time.Duration) *Point {
	i := int(at / r.run.Series.Window.Duration())
	return &r.run.Series.Points[min(i, len(r.run.Series.Points)-1)]
}

// window returns the histogram of the window at, ending one that had the same place long before.
func (r *Recorder) window(at time.Duration) *Latency {
	index := min(int(at/r.run.Series.Window.Duration()), len(r.run.Series.Points)-1)
	w := &r.live[index%len(r.live)]
	if w.index != index {
		r.settle(w)
		w.index = index
	}
	return &w.latency
}

func (r *Recorder) settle(w *liveWindow) {
	if w.index >= 0 {
		p := &r.run.Series.Points[w.index]
		p.P50, p.P99 = InMicros(w.latency.Quantile(.5)), InMicros(w.latency.Quantile(.99))
		w.latency.Reset()
		w.index = -1
	}
}

func (r *Recorder) client(population, client int) *Client {
	all := r.clients[population]
	if client >= len(all) {
		return nil
	}
	c := &all[client]
	if c.Asked == nil {
		c.Population = population
		c.Asked, c.OK = make([]int64, len(r.ends)), make([]int64, len(r.ends))
	}
	return c
}
