// Package bars answers the question: how good is the gate, in figures that a change of it can be held against? It plays the
// whole matrix of overload in virtual time, with the code that serves: small and large backends, service times that are fixed
// and that vary, 1.2 to 10 times the load, what comes after it, capacity that goes and comes back, hiccups, a day. Each figure
// is the median over seeds, and has a bar.
package bars

import (
	"fmt"
	"time"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// Bar is one figure that must be reached.
type Bar struct {
	Name string
	// Min and Max bound the median; Max counts if it is not 0 or if Min is 0.
	Min, Max float64
	figure   func(r *measure.Run) float64
}

// Reached tells whether v is within the bounds.
func (b *Bar) Reached(v float64) bool { return v >= b.Min && (b.Min > 0 && b.Max == 0 || v <= b.Max) }

// Case is one experiment and the figures that are read off it.
type Case struct {
	Name     string
	Scenario *scenarios.Scenario
	Bars     []Bar
	// Once says that it is played with one seed only, because it takes minutes.
	Once bool
}

const (
	service = 20 * time.Millisecond
	budget  = 250 * time.Millisecond // of the client, who leaves then
)

// settings is the arm's configuration: a line that takes no longer than the client's budget allows for. Everything else is as it
// comes.
const settings = "queue: {max_wait: 200ms}\n"

// backend is the app of a case.
type backend struct {
	slots  int
	spread string
}

func (b backend) String() string { return fmt.Sprintf("%d slots, %s", b.slots, b.spread) }

// backends are the given sizes with both kinds of service times.
func backends(slots ...int) (all []backend) {
	for _, n := range slots {
		all = append(all, backend{n, "fixed"}, backend{n, "exponential"})
	}
	return all
}

// span is a phase and the load in it.
type span struct {
	name string
	load float64
	last time.Duration
}

func (b backend) scenario(id string, spans []span, disturb ...scenarios.Disturbance) *scenarios.Scenario {
	s := &scenarios.Scenario{
		ID: id, App: scenarios.App{Slots: b.slots, Service: service, Spread: b.spread}, Deadline: budget,
		Arrivals: "poisson", Disturb: disturb, Spillway: settings, Levels: []float64{1}, Static: b.slots,
	}
	p := scenarios.Population{Name: "users", Clients: 50, Route: "api", Service: service, Deadline: budget, Timeout: budget}
	for _, sp := range spans {
		s.Phases = append(s.Phases, scenarios.Phase{Name: sp.name, For: sp.last, Warmup: sp.name == "start"})
		p.Load = append(p.Load, scenarios.Load{From: sp.load, To: sp.load})
	}
	s.Populations = []scenarios.Population{p}
	return s
}

// Cases are all of them. With day the day of overload is among them, which takes minutes.
func Cases(day bool) []Case {
	all := append(overload(), recoveries()...)
	all = append(all, changes()...)
	all = append(all, calm()...)
	if day {
		all = append(all, days()...)
	}
	return all
}

func overload() (all []Case) {
	for _, b := range backends(4, 16, 128) {
		for _, load := range []float64{1.2, 2, 5, 10} {
			least, slowest := 0.97, 2.0
			if b.slots == 4 {
				least, slowest = 0.95, 3.5
				if b.spread == "exponential" && load == 1.2 {
					least = 0.93
				}
			}
			c := Case{
				Name:     fmt.Sprintf("%gx on %v", load, b),
				Scenario: b.scenario("overload", []span{{"start", load, 2 * time.Second}, {"load", load, 8 * time.Second}}),
				Bars: []Bar{
					{Name: "goodput", Min: least, figure: in("load", judge.Goodput)},
					{Name: "p50/service", Max: slowest, figure: median},
					{Name: "late", Max: 0.01, figure: late},
				},
			}
			if b.slots == 128 {
				c.Bars = append(c.Bars, Bar{Name: "second second", Min: 0.95, figure: share(time.Second, 2*time.Second, 1)})
			}
			all = append(all, c)
		}
	}
	return all
}

func recoveries() (all []Case) {
	for _, b := range backends(4, 16, 128) {
		all = append(all, Case{
			Name: fmt.Sprintf("10x to 0.5x on %v", b),
			Scenario: b.scenario("recovery", []span{
				{"start", 10, 2 * time.Second}, {"load", 10, 6 * time.Second}, {"after", 0.5, 10 * time.Second},
			}),
			Bars: []Bar{{Name: "seconds to 99 %", Max: 1, figure: recovered(8*time.Second, 0.99)}},
		})
	}
	return all
}

// left is the share of the capacity that a change leaves for five seconds.
const left = 0.3

func changes() (all []Case) {
	for _, b := range backends(4, 16, 128) {
		least, wait := 0.9, 2*time.Second
		if b.slots == 4 {
			least, wait = 0.8, 4*time.Second
		}
		const at, last = 20 * time.Second, 5 * time.Second
		keeps := max(1, int(float64(b.slots)*left))
		for kind, d := range []scenarios.Disturbance{
			{At: at, For: last, Lost: b.slots - keeps},
			{At: at, For: last, Slower: 1 / left},
		} {
			remains := []float64{float64(keeps) / float64(b.slots), left}[kind]
			all = append(all, Case{
				Name:     fmt.Sprintf("%s for 5 s on %v", []string{"slots to 0.3", "service 3.3x slower"}[kind], b),
				Scenario: b.scenario("change", []span{{"load", 1.5, 35 * time.Second}}, d),
				Bars: []Bar{
					{Name: "meanwhile", Min: least, figure: share(at+wait, at+last, remains)},
					{Name: "afterwards", Min: least, figure: share(at+last+wait, at+2*last, 1)},
				},
			})
		}
	}
	return all
}

func calm() (all []Case) {
	for _, b := range backends(16, 128) {
		all = append(all, Case{
			Name: fmt.Sprintf("0.9x with 100 ms hiccups on %v", b),
			Scenario: b.scenario("hiccups", []span{{"load", 0.9, 65 * time.Second}},
				scenarios.Disturbance{At: 5 * time.Second, For: 100 * time.Millisecond, Every: 10 * time.Second, Stall: true}),
			Bars: []Bar{{Name: "refused", Max: 0.005, figure: refused}},
		}, Case{
			Name:     fmt.Sprintf("0.7x on %v", b),
			Scenario: b.scenario("calm", []span{{"start", 0.7, 2 * time.Second}, {"load", 0.7, 60 * time.Second}}),
			Bars:     []Bar{{Name: "refused", Max: 0, figure: refused}},
		})
	}
	for _, b := range backends(4, 16, 128) {
		all = append(all, Case{
			Name:     fmt.Sprintf("0.3x on %v", b),
			Scenario: b.scenario("quiet", []span{{"load", 0.3, 30 * time.Second}}),
			Bars:     []Bar{{Name: "p50/p50 alone", Max: 1.02, figure: nil}},
		})
	}
	return all
}

func days() (all []Case) {
	for _, b := range backends(4, 16) {
		all = append(all, Case{
			Name: fmt.Sprintf("a day of 1.2x on %v", b), Once: true,
			Scenario: b.scenario("day", []span{{"start", 1.2, 2 * time.Minute}, {"load", 1.2, 24 * time.Hour}}),
			Bars: []Bar{
				{Name: "limit, hourly means apart", Max: 0.1, figure: drift},
				{Name: "goodput", Min: 0.93, figure: in("load", judge.Goodput)},
			},
		})
	}
	return all
}
