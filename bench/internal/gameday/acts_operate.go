package gameday

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/spillway-go/spillway/internal/browser"
)

func rollAct() *act {
	return &act{
		name: "roll", title: "One gateway is killed, then both are rolled", cuts: true,
		about:  "A gateway is killed as if its machine were lost, and started again. Then one after the other is asked to end, does so, and is started anew, as when a new version is rolled out.",
		expect: "The load balancer sends everybody to the one that is left. A gateway that is asked to end finishes what runs and exits with 0. Quotas are in Redis, so that nobody gets a new one; streams come back by themselves.",
		play: func(ctx context.Context, s *scene) error {
			d := s.day
			groups := append(d.crowd.ordinary(), d.crowd.greedily(30))
			stop := s.keepPlaying(ctx, groups)
			err := d.roll(ctx, s)
			to := time.Now()
			stop()
			if err != nil {
				return err
			}
			events, answers := d.streams.events.Load(), d.streams.answers.Load()
			s.recovers(ctx, to, groups, "paying", "free")
			events, answers = d.streams.events.Load()-events, d.streams.answers.Load()-answers
			s.hopes("streams are back: events and answers to WebSockets", events > 0 && answers > 0, fmt.Sprintf("%d and %d", events, answers), "> 0")
			s.asPromised("paying", "free")
			c, err := d.service.counts()
			if err != nil {
				return err
			}
			// An answer that was lost with the gateway is asked for again: that one was charged twice, never once too little.
			s.within(perClient, excess{}, c, d.crowd.greedy...)
			return nil
		},
	}
}

// roll kills a gateway and starts it again, then ends and starts one after the other.
func (d *day) roll(ctx context.Context, s *scene) error {
	if !pause(ctx, 2*time.Second) {
		return ctx.Err()
	}
	from := time.Now()
	d.gateways[0].kill()
	pause(ctx, d.length(2*time.Second, 5*time.Second))
	if err := d.gateways[0].start(ctx); err != nil {
		return err
	}
	s.during("gateway-a is gone", from, time.Now())
	for _, g := range d.gateways {
		if !pause(ctx, 2*time.Second) {
			return ctx.Err()
		}
		from := time.Now()
		err := g.stop()
		took := time.Since(from)
		s.expects(g.name+" ends when asked", err == nil, fmt.Sprintf("%v after %v", ending(err), took.Round(10*time.Millisecond)), "exit 0")
		s.hopes("within its time", took <= 10*time.Second, took.Round(10*time.Millisecond).String(), "≤ 10s")
		if err := g.start(ctx); err != nil {
			return err
		}
		s.during(g.name+" is rolled", from, time.Now())
	}
	return nil
}

// ending says how a program ended.
func ending(err error) string {
	if err == nil {
		return "exit 0"
	}
	return err.Error()
}

func reloadAct() *act {
	return &act{
		name: "reload", title: "New rules in the middle of a flood, then a bad file",
		about:  "While four clients ask 60 times a second, where 10 are agreed, the file is replaced by one that halves their quota. Then by one with a mistake, then by the first.",
		expect: "The new numbers hold for all, in both gateways, and nobody gets a fresh quota from the change. The file with the mistake changes nothing and is reported. Nobody is disturbed.",
		play: func(ctx context.Context, s *scene) error {
			d := s.day
			defer d.configure(usual)
			flood := &group{name: "flood", members: d.crowd.flood[:4], rate: 60, ask: item}
			groups := append(d.crowd.ordinary(), flood)
			stop := s.keepPlaying(ctx, groups)
			from := time.Now()
			err := d.reload(ctx, s)
			to := time.Now()
			s.during("files change", from, to)
			stop()
			if err != nil {
				return err
			}
			s.recovers(ctx, to, groups, "paying", "free")
			s.asPromised("paying", "free")
			c, err := d.service.counts()
			if err != nil {
				return err
			}
			// A change keeps what was used, as far as it fits into the new capacity: who had used all of the smaller one has the
			// difference when the larger one comes back.
			more := float64(usual.Free.Capacity-tighter.Free.Capacity) / float64(usual.Free.Capacity)
			s.within(perClient, excess{capacities: more}, c, d.crowd.flood[:4]...)
			return nil
		},
	}
}

// reload replaces the file three times and waits for what becomes of it.
func (d *day) reload(ctx context.Context, s *scene) error {
	rule := func(want string) func() bool {
		return func() bool {
			for _, g := range d.gateways {
				v, err := g.look()
				if err != nil {
					return false
				}
				for _, r := range v.Shed.Rules {
					if r.Name == "per-client" && !strings.Contains(r.Rule, want) {
						return false
					}
				}
			}
			return true
		}
	}
	if !pause(ctx, d.length(time.Second, 5*time.Second)) {
		return ctx.Err()
	}
	begin := time.Now()
	if err := d.configure(tighter); err != nil {
		return err
	}
	if err := await(ctx, "the new rule in both gateways", rule(fmt.Sprint(tighter.Free.Capacity))); err != nil {
		return err
	}
	took := time.Since(begin)
	s.hopes("new rules hold in both gateways after", took <= 5*time.Second, took.Round(10*time.Millisecond).String(), "≤ 5s")
	text := strings.Replace(settings(usual, d.redisURL(), d.live.addr()), "refill: 10/s", "refill: 10 per second", 1)
	if err := write(d.dir, "gateway.yaml", text); err != nil {
		return err
	}
	refused := func() bool {
		for _, g := range d.gateways {
			log, err := os.ReadFile(g.log)
			if err != nil || !strings.Contains(string(log), filepath.Join(d.dir, "gateway.yaml")+":") {
				return false
			}
		}
		return true
	}
	if err := await(ctx, "the report of the mistake", refused); err != nil {
		return err
	}
	s.expects("the mistake changes nothing", rule(fmt.Sprint(tighter.Free.Capacity))(), "the rules of before hold", "in both gateways")
	if err := d.configure(usual); err != nil {
		return err
	}
	return await(ctx, "the first rules again", rule(fmt.Sprint(usual.Free.Capacity)))
}

// searchItem is what the person on call puts up.
const searchItem = `{"severity":"major","message":{"en":"Search is out of order."},"features":{"search":{"off":1}},"ttl":"10m","reason":"game day"}`

func switchAct() *act {
	return &act{
		name: "pumpkin", title: "A feature breaks, and is switched off by hand",
		about:  "Searches fail. The person on call puts up a pumpkin that says so and switches the feature off, and takes it down when search works again. A browser has the shop's page open; a partner's program follows the document.",
		expect: "The browser shows the banner, and the partner stops calling, within one poll (at most 6 s). Who calls all the same is told the same words with 503. When it is cleared, banner and refusals go.",
		play: func(ctx context.Context, s *scene) error {
			d := s.day
			defer d.service.set(1)
			defer d.gateways[1].operate(http.MethodDelete, "/items/search", "")
			tab, end, err := browser.Open(ctx, 800, 600)
			if err != nil {
				return err
			}
			defer end()
			if err := chromedp.Do(tab, chromedp.Navigate("http://"+d.gateways[0].listen+"/")); err != nil {
				return err
			}
			groups := append(d.crowd.ordinary(), &group{name: "searchers", members: d.crowd.searchers, rate: 2, ask: search})
			stop := s.keepPlaying(ctx, groups)
			err = d.switchOff(ctx, tab, s)
			stop()
			if err != nil {
				return err
			}
			s.recovers(ctx, s.marks[len(s.marks)-1].to, groups, "paying", "free", "searchers")
			s.asPromised("paying", "free")
			s.some("who called all the same was told", http.StatusServiceUnavailable, "feature_off", "searchers", "partner")
			spared := 0
			for _, one := range s.of("partner") {
				if one.status == notCalled {
					spared++
				}
			}
			s.expects("calls that the partner left alone", spared > 0, fmt.Sprint(spared), "> 0")
			return nil
		},
	}
}

// seen is how long a page may take to show what has changed: the longest wait between two polls, and what it takes to look.
const seen = 6*time.Second + 500*time.Millisecond

// switchOff breaks the search, puts the pumpkin up and takes it down.
func (d *day) switchOff(ctx, tab context.Context, s *scene) error {
	const banner = `document.querySelector("pumpkin-banner").shadowRoot.textContent.includes("Search is out of order.")`
	becomes := func(expression string) (time.Duration, error) {
		begin := time.Now()
		_, err := chromedp.Run(tab, chromedp.Poll[any](expression, chromedp.WithPollingTimeout(patience)))
		return time.Since(begin), err
	}
	if _, err := becomes(`window.pumpkin && pumpkin.state`); err != nil {
		return err
	}
	from := time.Now()
	if err := d.service.set(1, "search"); err != nil {
		return err
	}
	if !pause(ctx, d.length(time.Second, 5*time.Second)) {
		return ctx.Err()
	}
	// The browser asks gateway-a; what gateway-b is told comes there through Redis.
	if err := d.gateways[1].operate(http.MethodPut, "/items/search", searchItem); err != nil {
		return err
	}
	took, err := becomes(banner)
	if err != nil {
		return err
	}
	shown := func(what string) {
		s.hopes(what, took <= seen, took.Round(10*time.Millisecond).String(), "≤ 6s, and what it takes to look")
	}
	shown("the browser shows the banner after")
	begin := time.Now()
	if err := await(ctx, "the partner knows", func() bool { return d.crowd.news.Blocked("search") }); err != nil {
		return err
	}
	took += time.Since(begin)
	shown("the partner's program knows after")
	if !pause(ctx, time.Second) {
		return ctx.Err()
	}
	if err := d.service.set(1); err != nil {
		return err
	}
	if err := d.gateways[1].operate(http.MethodDelete, "/items/search", ""); err != nil {
		return err
	}
	s.during("search is off", from, time.Now())
	took, err = becomes(`!(` + banner + `) && !pumpkin.blocked("search")`)
	if err != nil {
		return err
	}
	shown("the banner is gone after")
	return nil
}
