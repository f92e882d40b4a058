package gameday

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

func morningAct() *act {
	return &act{
		name: "morning", title: "Morning: from little to busy",
		about:  "Customers arrive, from a tenth of the usual number to all of them; strangers without an account look around; somebody downloads an export.",
		expect: "Everybody is served. The export comes at the pace of its rule, and streams live on.",
		play: func(ctx context.Context, s *scene) error {
			d := s.day
			groups := d.crowd.ordinary()
			for _, g := range groups {
				g.shape = func(part float64) float64 { return min(1, .1+1.2*part) }
			}
			groups = append(groups, &group{name: "strangers", members: d.crowd.strangers, rate: 1, ask: item})
			events, answers := d.streams.events.Load(), d.streams.answers.Load()
			var downloads sync.WaitGroup
			const kib = 192
			var took time.Duration
			var got int64
			downloads.Go(func() { got, took = download(ctx, d.crowd.free[0], kib) })
			s.play(ctx, d.length(8*time.Second, 60*time.Second), groups...)
			downloads.Wait()
			s.asPromised("paying", "free", "payments", "partner", "strangers")
			s.expects("an export of 192 KiB arrives whole", got == kib<<10, fmt.Sprintf("%d bytes", got), "%d", kib<<10)
			slowest := time.Duration(float64(kib-usual.Exports.Capacity) / float64(usual.Exports.Refill) * float64(time.Second))
			s.expects("and not faster than its rule", took >= slowest, took.Round(10*time.Millisecond).String(), "≥ (192 − %d) / %d s = %v", usual.Exports.Capacity, usual.Exports.Refill, slowest)
			s.hopes("events reached those who listen", d.streams.events.Load() > events, fmt.Sprint(d.streams.events.Load()-events), "> 0")
			s.hopes("and answers those who talk over WebSockets", d.streams.answers.Load() > answers, fmt.Sprint(d.streams.answers.Load()-answers), "> 0")
			return nil
		},
	}
}

// download fetches an export and returns its size and how long that took.
func download(ctx context.Context, who *customer, kib int) (int64, time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := export(kib<<10).request(ctx, who)
	if err != nil {
		return 0, 0
	}
	begin := time.Now()
	res, err := who.client.Do(r)
	if err != nil {
		return 0, 0
	}
	defer res.Body.Close()
	n, _ := io.Copy(io.Discard, res.Body) // what is missing shows in n
	return n, time.Since(begin)
}

func screenAct() *act {
	return &act{
		name: "screen", title: "A screen that opens with 20 requests at once",
		about:  "One client asks for 20 things in the same moment, three times; another sends 10 orders at once, and orders have to take turns.",
		expect: "Everything is answered: 20 at once fit into the client's bucket. The orders reach the service one after another, at the pace of their rule, and none is refused.",
		play: func(ctx context.Context, s *scene) error {
			d := s.day
			screen := &group{name: "screen", members: d.crowd.screen, atOnce: 20, ask: item}
			orders := &group{name: "orders", members: d.crowd.searchers[:1], atOnce: 10, ask: order}
			length := d.length(2500*time.Millisecond, 5*time.Second)
			s.play(ctx, length, append(d.crowd.ordinary(), screen, orders)...)
			s.play(ctx, length, append(d.crowd.ordinary(), screen)...)
			s.play(ctx, length, append(d.crowd.ordinary(), screen)...)
			s.served(1, "screen", "orders")
			s.asPromised("paying", "free")
			var first, last time.Time
			for _, one := range s.of("orders") {
				if one.ended().After(last) {
					last = one.ended()
				}
				first = one.at
			}
			turns := 9 * time.Second / time.Duration(usual.Orders.Refill)
			s.hopes("the tenth order had to wait for its turn", last.Sub(first) >= turns+serviceTime, last.Sub(first).Round(time.Millisecond).String(),
				"≥ 9 turns of %v and the work", time.Second/time.Duration(usual.Orders.Refill))
			c, err := d.service.counts()
			if err != nil {
				return err
			}
			s.within(perClient, excess{}, c, d.crowd.screen...)
			s.within(orderTurns, excess{}, c, d.crowd.searchers[:1]...)
			return nil
		},
	}
}

func greedyAct() *act {
	return &act{
		name: "greedy", title: "The greedy client",
		about:  "One client asks 80 times a second, where 10 a second are agreed. Four others search more than everybody together may.",
		expect: "The greedy one gets what its rule allows and is told 429 with the true time to come back; nobody else notices.",
		play: func(ctx context.Context, s *scene) error {
			d := s.day
			searchers := &group{name: "searchers", members: d.crowd.searchers, rate: 15, ask: search} // 64 a second, with the partner's
			from := time.Now()
			length := d.length(7*time.Second, 60*time.Second)
			s.play(ctx, length, append(d.crowd.ordinary(), d.crowd.greedily(80), searchers)...)
			to := time.Now()
			s.during("greedy", from, to)
			c, err := d.service.counts()
			if err != nil {
				return err
			}
			s.within(perClient, excess{}, c, d.crowd.greedy...)
			s.gets(perClient, length, c, d.crowd.greedy...)
			s.expects("rule parallel: at once at the service", c.Most["greedy-0 items"] <= 2*usual.Parallel, fmt.Sprint(c.Most["greedy-0 items"]),
				"≤ %d, in each of 2 gateways", usual.Parallel)
			searches := c.arrived("search", append(slices.Clone(d.crowd.searchers), d.crowd.partner)...)
			alone := s.localSinceBegin()
			most := float64(usual.Soft)*(time.Since(s.begin).Seconds()+2) + float64(usual.Hard-usual.Soft) + alone
			s.expects("rule searches: arrived at the service, of all", float64(searches) <= most, fmt.Sprint(searches),
				"≤ %d/s × periods + %d + %.0f decided without Redis = %.0f", usual.Soft, usual.Hard-usual.Soft, alone, most)
			s.recovers(ctx, to, d.crowd.ordinary(), "paying", "free")
			s.asPromised("paying", "free")
			s.some("who searched beyond it was told", http.StatusTooManyRequests, "over_limit", "searchers")
			return s.comesBack(ctx, d.crowd.greedy[0], item)
		},
	}
}

// comesBack lets a client that has just been refused do what it was told: nobody competes with it, so it has to be admitted.
func (s *scene) comesBack(ctx context.Context, who *customer, a ask) error {
	refused := make(chan shot, 100)
	var wg sync.WaitGroup
	for range cap(refused) { // at once, for one after the other they might fit
		wg.Go(func() {
			one := shot{at: time.Now()}
			if send(ctx, a, who, &one); one.says(http.StatusTooManyRequests, "over_limit") {
				refused <- one
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	close(refused)
	last, any := shot{}, false
	for one := range refused {
		if !any || one.ended().After(last.ended()) {
			last, any = one, true
		}
	}
	if !any {
		s.expects("who waits as told is admitted", false, "nobody was refused of 100 at once", "a refusal to follow")
		return nil
	}
	asked := time.Now()
	if !pause(ctx, time.Duration(last.after)*time.Second) {
		return ctx.Err()
	}
	again := shot{at: time.Now()}
	send(ctx, a, who, &again)
	s.expects("who waits as told is admitted", again.status != http.StatusTooManyRequests,
		fmt.Sprintf("told %d s, came after %.2f s: %d", last.after, again.at.Sub(asked).Seconds(), again.status), "no 429")
	return nil
}
