package load

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/internal/schedule"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// Config is one run against one target.
type Config struct {
	Scenario *scenarios.Scenario
	Arm      string
	Mode     string
	Level    float64
	Seed     uint64
	Sender   Sender
	// Built says that the target is our own app, which is told how much work each request is.
	Built bool
	// Recorder collects; it must be the one that the target reports its work to.
	Recorder *Recorder
	// MaxInFlight bounds what is under way at once; 0 means what the schedule can need.
	MaxInFlight int
	// Start is when the schedule begins.
	Start time.Time
	// Gauge reads the state of the gate, if it is known.
	Gauge func() (limit, waiting, inFlight int)
	// Progress is called once a second, if set.
	Progress func(second int, p measure.Point, inFlight int)
}

// Recorder is a measure.Recorder for many goroutines.
type Recorder struct {
	mu sync.Mutex
	*measure.Recorder
}

// Worked records work of the built-in app.
func (r *Recorder) Worked(at, work time.Duration, wasted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Recorder.Worked(at, work, wasted)
}

// attempt is one attempt under way.
type attempt struct {
	schedule.Arrival
	tries int
}

type generator struct {
	Config
	work     chan attempt
	inFlight atomic.Int64
	most     int64
	workers  sync.WaitGroup
	hired    atomic.Int64 // how many workers there are
	names    [][]string
	firstErr atomic.Pointer[error]
	answered atomic.Int64
	base     context.Context // of all requests; ends only when a run that was broken off has waited long enough

	stopping sync.RWMutex // held for reading while a retry is launched
	stopped  bool
}

// patience is how long a run that is broken off waits for the answers that are still to come.
const patience = 2 * time.Second

// Run plays the schedule and returns what was measured. When ctx ends it stops early, and the Run is marked as partial.
func Run(ctx context.Context, cfg Config) *measure.Run {
	g := &generator{Config: cfg, work: make(chan attempt)}
	g.most = int64(cfg.MaxInFlight)
	if g.most == 0 {
		g.most = int64(Needed(cfg.Scenario, cfg.Level))
	}
	g.nameClients()
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { g.watch(stop) })
	base, cancel := context.WithCancel(context.Background())
	defer cancel()
	g.base = base
	partial := g.play(ctx)
	if partial {
		defer time.AfterFunc(patience, cancel).Stop()
	}
	g.stopping.Lock()
	g.stopped = true
	g.stopping.Unlock()
	close(g.work) // nothing is launched any more
	g.workers.Wait()
	close(stop)
	watch.Wait()
	g.Recorder.mu.Lock()
	defer g.Recorder.mu.Unlock()
	run := g.Recorder.Finish()
	run.Partial = partial
	run.Invalid = g.judge(run)
	return run
}

// Needed is how many requests can be under way at once: the peak rate times how long clients have patience, with retries.
func Needed(s *scenarios.Scenario, level float64) int {
	n := 0.0
	for i := range s.Populations {
		p := &s.Populations[i]
		peak := 0.0
		for _, l := range p.Load {
			peak = max(peak, l.From, l.To)
		}
		tries := 1.0
		if p.Retry != nil {
			tries += float64(p.Retry.Max)
		}
		need := peak * s.App.Capacity() * p.Timeout.Seconds()
		if p.Bursts != nil {
			need += p.Bursts.Size * s.Deadline.Seconds() * s.App.Capacity()
		}
		n += need * tries * level
	}
	return int(min(max(64, math.Ceil(1.5*n)), 20_000))
}

func (g *generator) nameClients() {
	for _, p := range g.Scenario.Populations {
		var names []string
		if p.Churn == 0 {
			for i := range p.Clients {
				names = append(names, p.Name+"-"+strconv.Itoa(i))
			}
		}
		g.names = append(g.names, names)
	}
}

// play hands every arrival out at its time. It reports whether it was broken off.
func (g *generator) play(ctx context.Context) (partial bool) {
	sch := schedule.New(g.Scenario, g.Level, g.Seed)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		a, ok := sch.Next()
		if !ok {
			return false
		}
		if wait := a.At - time.Since(g.Start); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return true
			}
		} else if ctx.Err() != nil {
			return true
		}
		g.launch(attempt{Arrival: a})
	}
}

// launch sends an attempt on its way, or counts it as dropped: it is never delayed.
func (g *generator) launch(a attempt) {
	g.Recorder.mu.Lock()
	g.Recorder.Asked(a.At, a.Population, a.Client, a.tries > 0)
	if g.inFlight.Load() >= g.most {
		g.Recorder.Unsent()
		g.Recorder.mu.Unlock()
		return
	}
	g.Recorder.mu.Unlock()
	g.inFlight.Add(1)
	select {
	case g.work <- a:
	default:
		g.hired.Add(1)
		g.workers.Go(func() {
			defer g.hired.Add(-1)
			g.attempt(a)
			for g.hired.Load() <= 2*g.inFlight.Load()+spareWorkers { // those that only a peak needed go
				a, more := <-g.work
				if !more {
					return
				}
				g.attempt(a)
			}
		})
	}
}

// spareWorkers is how many goroutines wait for work beside twice as many as have it.
const spareWorkers = 64

// attempt delivers one attempt and records how it ended.
func (g *generator) attempt(a attempt) {
	defer g.inFlight.Add(-1)
	p := &g.Scenario.Populations[a.Population]
	sent := time.Since(g.Start)
	ctx, cancel := context.WithDeadline(g.base, g.Start.Add(a.At+p.Timeout))
	defer cancel()
	answer := g.Sender.Send(ctx, g.shot(p, &a))
	if g.base.Err() != nil {
		return // broken off: what would have become of it is not known
	}
	now := time.Since(g.Start)
	end := measure.End{At: a.At, Population: a.Population, Client: a.Client, Latency: now - a.At, Service: now - sent}
	end.Outcome = classify(&answer, end.Latency, p.Deadline, ctx)
	switch end.Outcome {
	case measure.Shed:
		end.Reason = strconv.Itoa(answer.Status)
	case measure.Failed:
		end.Reason = "status " + strconv.Itoa(answer.Status)
		if answer.Err != nil {
			end.Reason = kind(answer.Err)
			g.firstErr.CompareAndSwap(nil, &answer.Err)
		}
	case measure.Timeout:
		end.Latency = p.Timeout
	}
	if answer.Err == nil {
		g.answered.Add(1)
	}
	g.Recorder.mu.Lock()
	g.Recorder.Sent(sent - a.At)
	g.Recorder.Ended(end)
	g.Recorder.mu.Unlock()
	if end.Outcome != measure.OK && end.Outcome != measure.Late {
		g.again(a, now, answer.RetryAfter)
	}
}

// again lets the client try again, if it does.
func (g *generator) again(a attempt, now, retryAfter time.Duration) {
	a.tries++
	delay, ok := RetryDelay(g.Scenario.Populations[a.Population].Retry, a.tries, retryAfter, anywhere)
	if !ok || now+delay >= g.Scenario.Duration() {
		return
	}
	a.At = now + delay
	time.AfterFunc(delay, func() {
		g.stopping.RLock()
		defer g.stopping.RUnlock()
		if !g.stopped {
			g.launch(a)
		}
	})
}

func (g *generator) shot(p *scenarios.Population, a *attempt) *Shot {
	s := &Shot{Population: a.Population, Method: http.MethodGet, Path: "/" + p.Route, At: a.At}
	if names := g.names[a.Population]; a.Client < len(names) {
		s.Client = names[a.Client]
	} else {
		s.Client = p.Name + "-" + strconv.Itoa(a.Client)
	}
	if p.From.IsValid() {
		s.From = p.Address(a.Client).String()
	}
	if r := choose(p, a.Draw); r != nil {
		s.Method, s.Path, s.Body, s.Header = r.Method, r.Path, r.Body, r.Header
	}
	if g.Built {
		s.Work = a.Work
	}
	return s
}

func classify(a *Answer, latency, deadline time.Duration, ctx context.Context) measure.Outcome {
	switch {
	case a.Err != nil && ctx.Err() != nil:
		return measure.Timeout
	case a.Err != nil:
		return measure.Failed
	case a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable:
		return measure.Shed
	case a.Status >= 400:
		return measure.Failed
	case latency > deadline:
		return measure.Late
	}
	return measure.OK
}

// watch reads the gauges and shows progress once a second.
func (g *generator) watch(stop <-chan struct{}) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for n := 1; ; n++ {
		select {
		case <-stop:
			return
		case <-t.C:
		}
		now := time.Since(g.Start)
		limit, waiting, inFlight := -1, -1, int(g.inFlight.Load())
		if g.Gauge != nil {
			limit, waiting, inFlight = g.Gauge()
		}
		g.Recorder.mu.Lock()
		g.Recorder.Gauge(now, limit, waiting, inFlight)
		point := g.Recorder.At(max(0, now-time.Second))
		g.Recorder.mu.Unlock()
		if g.Progress != nil {
			g.Progress(n, point, int(g.inFlight.Load()))
		}
	}
}
