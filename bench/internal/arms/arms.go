// Package arms answers the question: what stands in front of the app? Nothing, a static limit, or Spillway: the three arms
// of every scenario, here as HTTP handlers around the app that package app describes. Package sim has the same arms for
// virtual time.
package arms

import (
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/spillway-go/spillway/bench/internal/app"
	"github.com/spillway-go/spillway/bench/scenarios"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/configfile"
)

// Names are the arms that scenarios compare.
var Names = []string{"none", "static", "spillway"}

// The headers by which the generator tells the built-in app what a request is like.
const (
	WorkHeader       = "X-Bench-Work"       // service time in ns
	PopulationHeader = "X-Bench-Population" // index
	AtHeader         = "X-Bench-At"         // when it was scheduled, ns since the start
)

// Settings reads the configuration of the spillway arm. Health is off unless the scenario asks for it: in bench the load
// generator shares the process.
func Settings(s *scenarios.Scenario) (shed.Config, error) {
	program := configfile.Config{}
	program.Shed.Health.Off = true
	if s.Spillway == "" {
		return program.Shed, nil
	}
	cfg, err := configfile.Parse(s.ID+".spillway", []byte(s.Spillway), program)
	if err != nil {
		return shed.Config{}, fmt.Errorf("bench: %w", err)
	}
	return cfg.Shed, nil
}

// Target is a protected app.
type Target struct {
	Handler http.Handler
	app     *slowApp
	shedder *shed.Shedder
	store   *limits.Memory
	static  *static
}

// Worked is told about each piece of work of the app: when it was scheduled, how long it took, and whether it was in vain.
type Worked func(at, work time.Duration, wasted bool)

// New makes the app of s behind the named arm. The run begins at start.
func New(s *scenarios.Scenario, arm string, start time.Time, worked Worked) (*Target, error) {
	t := &Target{app: &slowApp{app: app.New(s), start: start, scenario: s, worked: worked}}
	t.Handler = t.app
	switch arm {
	case "none":
	case "static":
		t.static = &static{next: t.app, slots: make(chan struct{}, s.Static)}
		t.Handler = t.static
	case "spillway":
		cfg, err := Settings(s)
		if err != nil {
			return nil, err
		}
		if t.store, err = limits.NewMemory(limits.MemoryConfig{}); err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
		cfg.Store = t.store
		if t.shedder, err = shed.New(cfg); err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
		h, err := middleware.ShedWithConfig(middleware.Config{Shedder: t.shedder, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
		t.Handler = h(t.app)
	default:
		return nil, fmt.Errorf("bench: arm %q is none of none, static, spillway", arm)
	}
	return t, nil
}

// Gauge returns the state of the gate; -1 is unknown.
func (t *Target) Gauge() (limit, waiting, inFlight int) {
	switch {
	case t.shedder != nil:
		st := t.shedder.Status()
		return st.Limit, st.Waiting, st.InFlight
	case t.static != nil:
		return cap(t.static.slots), 0, len(t.static.slots)
	}
	return -1, -1, -1
}

// Extras are the figures that are read when everybody has gone: requests that are still counted as running a second later, and
// balances that are kept.
func (t *Target) Extras() map[string]float64 {
	_, _, inFlight := t.Gauge()
	for range 20 {
		if inFlight <= 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
		_, _, inFlight = t.Gauge()
	}
	extras := make(map[string]float64)
	if inFlight >= 0 {
		extras["in_flight_end"] = float64(inFlight)
	}
	if t.store != nil {
		extras["keys"] = float64(t.store.Stats().Keys)
	}
	return extras
}

// Close ends the arm. Requests that are inside go on.
func (t *Target) Close() {
	if t.shedder != nil {
		t.shedder.Close()
	}
}

// slowApp serves as package app computes.
type slowApp struct {
	start    time.Time
	scenario *scenarios.Scenario
	worked   Worked

	mu  sync.Mutex
	app *app.App
}

func (a *slowApp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	work, _ := strconv.ParseInt(r.Header.Get(WorkHeader), 10, 64)
	if work <= 0 {
		work = int64(a.scenario.App.Service)
	}
	population, _ := strconv.Atoi(r.Header.Get(PopulationHeader))
	population = max(0, min(population, len(a.scenario.Populations)-1))
	now := time.Since(a.start)
	a.mu.Lock()
	began, end := a.app.Reserve(now, population, time.Duration(work))
	a.mu.Unlock()
	time.Sleep(end - now)
	if at, err := strconv.ParseInt(r.Header.Get(AtHeader), 10, 64); err == nil && a.worked != nil {
		at := time.Duration(at)
		wasted := r.Context().Err() != nil || time.Since(a.start)-at > a.scenario.Populations[population].Deadline
		a.worked(at, end-began, wasted)
	}
	w.WriteHeader(http.StatusOK)
}

// static is the arm that everybody can write in ten lines: so many at once, and no more.
type static struct {
	next  http.Handler
	slots chan struct{}
}

func (s *static) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
		s.next.ServeHTTP(w, r)
	default:
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}
