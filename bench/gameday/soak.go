package gameday

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spillway-go/spillway/bench/report"
)

// Soaking is how much of the service's capacity is asked for during a soak.
const Soaking = .9

// level is what a gateway held at a moment of a soak.
type level struct {
	at time.Duration
	resources
}

// soakActs are a long ordinary day, and its end.
func soakActs(length time.Duration) []*act {
	return []*act{{
		name: "soak", title: "Soak: " + length.String() + " of ordinary work",
		about:  fmt.Sprintf("Gateways built with the race detector bear %.2g of what the service can do: every kind of customer, every kind of route, streams, a program that polls the pumpkin.", Soaking),
		expect: "What they hold at the end is what they held when they were warm: memory, goroutines, descriptors. The race detector has nothing to say, and customers are served.",
		play:   func(ctx context.Context, s *scene) error { return s.soak(ctx, length) },
	}, eveningAct()}
}

// soakLoad is Soaking of the service's capacity, over every route that requests take.
func (d *day) soakLoad() []*group {
	groups := append(d.crowd.ordinary(),
		&group{name: "searchers", members: d.crowd.searchers, rate: 1, ask: ask{method: http.MethodGet, path: "/search"}},
		&group{name: "reports", members: d.crowd.searchers[:2], rate: 1, ask: ask{method: http.MethodPost, path: "/reports", body: 32}},
		&group{name: "orders", members: d.crowd.searchers, rate: .5, ask: ask{method: http.MethodPost, path: "/orders", body: 32}},
		&group{name: "strangers", members: d.crowd.strangers, rate: 1, ask: ask{method: http.MethodGet, path: "/items/1"}},
		&group{name: "exports", members: d.crowd.screen, rate: 1, ask: ask{method: http.MethodGet, path: "/export/1024"}},
		&group{name: "bot", members: d.crowd.bot, rate: 1, ask: ask{method: http.MethodGet, path: "/items/1"}})
	rest := Soaking*serviceCapacity - asked(groups)
	return append(groups, &group{name: "others", members: d.crowd.flood, rate: rest / float64(len(d.crowd.flood)), ask: ask{method: http.MethodGet, path: "/items/1"}})
}

// asked is what groups ask for, in requests a second.
func asked(groups []*group) (rate float64) {
	for _, g := range groups {
		rate += g.rate * float64(len(g.members))
	}
	return rate
}

// soak plays the load and watches what the gateways hold.
func (s *scene) soak(ctx context.Context, length time.Duration) error {
	d := s.day
	var mu sync.Mutex
	levels := make([][]level, len(d.gateways))
	halt := every(max(length/300, 250*time.Millisecond), func() {
		for i, g := range d.gateways {
			if held, err := g.holds(); err == nil {
				mu.Lock()
				levels[i] = append(levels[i], level{time.Since(s.begin), held})
				mu.Unlock()
			}
		}
	})
	s.play(ctx, length, d.soakLoad()...)
	halt()
	s.end = time.Now()
	s.served(.99, "paying")
	s.served(.99, "free", "payments", "partner", "searchers", "orders", "strangers", "exports", "others")
	s.p99("paying", deadline)
	s.told()
	for i, g := range d.gateways {
		s.steady(g.name, levels[i])
		log, err := os.ReadFile(g.log)
		if err != nil {
			return err
		}
		races := strings.Count(string(log), "WARNING: DATA RACE")
		s.expects(g.name+": the race detector found", races == 0, fmt.Sprint(races), "0")
	}
	s.diagrams = levelCharts(d.gateways, levels)
	return nil
}

// kind is one thing that must not grow. What is allowed is a share of what was there and a little for what comes and goes.
type kind struct {
	name, unit string
	of         func(level) float64
	typical    func([]float64) float64 // of a part of the soak
	share      float64
	spare      float64
}

var kinds = []kind{
	{"goroutines", "", func(l level) float64 { return float64(l.goroutines) }, median, 0, 10},
	{"descriptors", "", func(l level) float64 { return float64(l.files) }, median, 0, 20},
	// The least of many looks is what collections leave.
	{"live heap", " MiB", func(l level) float64 { return l.heap / (1 << 20) }, slices.Min[[]float64], .1, 4},
	{"memory of the process", " MiB", func(l level) float64 { return l.resident / (1 << 20) }, median, .1, 16},
}

// steady asks that what a gateway held at the end of a soak is what it held when it was warm. The first fifth is for warming up;
// of the rest the first third is compared with the last.
func (s *scene) steady(name string, all []level) {
	warm := all[len(all)/5:]
	third := len(warm) / 3
	if third == 0 {
		s.expects(name+": what it holds", false, fmt.Sprintf("%d looks", len(all)), "enough looks to compare")
		return
	}
	for _, k := range kinds {
		part := func(some []level) float64 {
			var values []float64
			for _, l := range some {
				values = append(values, k.of(l))
			}
			return k.typical(values)
		}
		before, after := part(warm[:third]), part(warm[len(warm)-third:])
		bound := before*(1+k.share) + k.spare
		allowed := fmt.Sprintf("≤ %.0f%s more", k.spare, k.unit)
		if k.share > 0 {
			allowed = fmt.Sprintf("≤ %.0f %% and %.0f%s more", k.share*100, k.spare, k.unit)
		}
		s.expects(name+": "+k.name, after <= bound, fmt.Sprintf("%.4g%s, when warm %.4g%s", after, k.unit, before, k.unit), "%s", allowed)
	}
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// levelCharts draws what was held.
func levelCharts(gateways []*gateway, levels [][]level) (all []template.HTML) {
	for _, k := range kinds {
		d := report.Diagram{Title: strings.ToUpper(k.name[:1]) + k.name[1:], XLabel: "seconds", YLabel: strings.TrimSpace(k.unit)}
		for i, g := range gateways {
			c := report.Curve{Name: g.name, Class: fmt.Sprintf("p%d", i)}
			for _, l := range levels[i] {
				c.X, c.Y = append(c.X, l.at.Seconds()), append(c.Y, k.of(l))
			}
			d.Curves = append(d.Curves, c)
		}
		all = append(all, d.SVG())
	}
	return all
}
