package gameday

import (
	"context"
	"fmt"
	"html/template"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spillway-go/spillway/bench/internal/page"
)

// soaking is how much of the service's capacity is asked for during a soak.
const soaking = .9

// level is what a gateway held at a moment of a soak.
type level struct {
	at time.Duration
	resources
}

// soakActs are a long ordinary day, and its end.
func soakActs(length time.Duration) []*act {
	return []*act{{
		name: "soak", title: "Soak: " + length.String() + " of ordinary work",
		about:  fmt.Sprintf("Gateways built with the race detector bear %.2g of what the service can do: every kind of customer, every kind of route, streams, a program that polls the pumpkin.", soaking),
		expect: "What they hold at the end is what they held when they were warm: memory, goroutines, descriptors. The race detector has nothing to say, and customers are served.",
		play:   func(ctx context.Context, s *scene) error { return s.soak(ctx, length) },
	}, eveningAct()}
}

// soakLoad is soaking of the service's capacity, over every route that requests take.
func (d *day) soakLoad() []*group {
	groups := append(d.crowd.ordinary(),
		&group{name: "searchers", members: d.crowd.searchers, rate: 1, ask: search},
		&group{name: "reports", members: d.crowd.searchers[:2], rate: 1, ask: report},
		&group{name: "orders", members: d.crowd.searchers, rate: .5, ask: order},
		&group{name: "strangers", members: d.crowd.strangers, rate: 1, ask: item},
		&group{name: "exports", members: d.crowd.screen, rate: 1, ask: export(1024)},
		&group{name: "bot", members: d.crowd.bot, rate: 1, ask: item})
	rest := soaking*serviceCapacity - asked(groups)
	return append(groups, &group{name: "others", members: d.crowd.flood, rate: rest / float64(len(d.crowd.flood)), ask: item})
}

// asked is what groups ask for, in requests a second.
func asked(groups []*group) (rate float64) {
	for _, g := range groups {
		rate += g.rate * float64(len(g.members))
	}
	return rate
}

// soak plays the load and watches what the gateways hold. After the first fifth, which is for warming up, and at the end everybody
// hangs up for a moment: what is open then is not what a busy machine has let pile up.
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
	defer halt()
	s.play(ctx, length/5, d.soakLoad()...)
	warm, err := d.rest(ctx)
	if err != nil {
		return err
	}
	s.play(ctx, length-length/5, d.soakLoad()...)
	s.end = time.Now()
	halt()
	last, err := d.rest(ctx)
	if err != nil {
		return err
	}
	s.served(.99, "paying")
	s.served(.99, "free", "payments", "partner", "searchers", "orders", "strangers", "exports", "others")
	s.p99("paying", deadline)
	s.told()
	for i, g := range d.gateways {
		s.steady(g.name, warm[i], last[i], levels[i])
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

// rest lets everybody hang up and returns the least that each gateway holds within the next seconds, while streams stay.
func (d *day) rest(ctx context.Context) ([]resources, error) {
	d.crowd.hangUp()
	if _, err := d.service.control("hangup", nil); err != nil {
		return nil, err
	}
	all := make([]resources, len(d.gateways))
	for i, g := range d.gateways {
		for looks := 0; looks < 20 && (looks == 0 || pause(ctx, 100*time.Millisecond)); looks++ {
			held, err := g.holds()
			if err != nil {
				return nil, err
			}
			if looks == 0 {
				all[i] = held
			}
			all[i].goroutines, all[i].files = min(all[i].goroutines, held.goroutines), min(all[i].files, held.files)
		}
	}
	return all, nil
}

// kind is one thing that must not grow. What is allowed is a share of what was there, and a little for what comes and goes.
type kind struct {
	name, unit   string
	of           func(resources) float64
	typical      func([]float64) float64 // of a part of the soak; nil is what is held at rest
	share, spare float64
	why          string
}

var kinds = []kind{
	{name: "goroutines at rest", of: func(r resources) float64 { return float64(r.goroutines) }, spare: 10},
	{name: "descriptors at rest", of: func(r resources) float64 { return float64(r.files) }, spare: spare, why: ": connections to Redis that it keeps"},
	// The least of many looks is what collections leave.
	{name: "live heap", unit: " MiB", of: func(r resources) float64 { return r.heap / (1 << 20) }, typical: slices.Min[[]float64], share: .1, spare: 4},
	{name: "memory of the process", unit: " MiB", of: func(r resources) float64 { return r.resident / (1 << 20) }, typical: median, share: .1, spare: 16},
}

// steady asks that what a gateway held at the end of a soak is what it held when it was warm: at rest, and while it worked, where
// the first third after the warming is compared with the last.
func (s *scene) steady(name string, warm, last resources, all []level) {
	working := all[len(all)/5:]
	third := len(working) / 3
	if third == 0 {
		s.expects(name+": what it holds", false, fmt.Sprintf("%d looks", len(all)), "enough looks to compare")
		return
	}
	for _, k := range kinds {
		before, after := k.of(warm), k.of(last)
		if k.typical != nil {
			part := func(some []level) float64 {
				var values []float64
				for _, l := range some {
					values = append(values, k.of(l.resources))
				}
				return k.typical(values)
			}
			before, after = part(working[:third]), part(working[len(working)-third:])
		}
		allowed := fmt.Sprintf("≤ %.0f%s more%s", k.spare, k.unit, k.why)
		if k.share > 0 {
			allowed = fmt.Sprintf("≤ %.0f %% and %.0f%s more", k.share*100, k.spare, k.unit)
		}
		s.expects(name+": "+k.name, after <= before*(1+k.share)+k.spare, fmt.Sprintf("%.4g%s, when warm %.4g%s", after, k.unit, before, k.unit), "%s", allowed)
	}
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// levelCharts draws what was held.
func levelCharts(gateways []*gateway, levels [][]level) (all []template.HTML) {
	for _, k := range kinds {
		d := page.Chart{Title: strings.ToUpper(k.name[:1]) + strings.TrimSuffix(k.name[1:], " at rest"), XLabel: "seconds", YLabel: strings.TrimSpace(k.unit)}
		for i, g := range gateways {
			c := page.Curve{Name: g.name, Class: fmt.Sprintf("p%d", i)}
			for _, l := range levels[i] {
				c.X, c.Y = append(c.X, l.at.Seconds()), append(c.Y, k.of(l.resources))
			}
			d.Curves = append(d.Curves, c)
		}
		all = append(all, d.SVG())
	}
	return all
}
