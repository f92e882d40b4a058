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

// controlAct is the day without Spillway: the same service, the same flood.
func controlAct() *act {
	return &act{
		name: "control", title: "Control: the flood without Spillway",
		about: "A copy of the service stands alone. Ordinary customers use it, then forty others ask for some seconds, and try at once again, twice, when they fail: ten times as much as it can do.",
		expect: "It collapses: hardly anybody is served in time, and that goes on after the flood has gone, because the service is busy with what nobody waits for any more. " +
			"If it did not, the acts behind a gateway would prove nothing.",
		play: func(ctx context.Context, s *scene) error {
			alone, err := startService(s.day.dir, "service-alone")
			if err != nil {
				return err
			}
			defer alone.kill()
			ours := newCrowd() // with no gateway in front of them
			for _, who := range append(slices.Clone(ours.paying), ours.flood...) {
				who.open(newBalancer(alone.addr))
				defer who.client.CloseIdleConnections()
			}
			paying := &group{name: "paying", members: ours.paying, rate: 3, ask: ask{method: http.MethodGet, path: "/items/1"}}
			s.play(ctx, 2*time.Second, paying)
			from := time.Now()
			flood := &group{name: "flood", members: ours.flood, rate: 10 * serviceCapacity / 40 / 3, retries: 2, ask: ask{method: http.MethodGet, path: "/items/1"}}
			s.play(ctx, 2*time.Second, paying, flood)
			to := time.Now()
			s.during("flood", from, to)
			after := &load{}
			after.play(ctx, 4*time.Second, paying)
			s.shots = append(s.shots, after.shots...)
			n := 0
			for i := range after.shots {
				if after.shots[i].ok() {
					n++
				}
			}
			s.expects("paying clients served after the flood had gone", float64(n) < .5*float64(len(after.shots)),
				fmt.Sprintf("%d of %d", n, len(after.shots)), "< 50 %%: the control must fail")
			return nil
		},
	}
}

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
			groups = append(groups, &group{name: "strangers", members: d.crowd.strangers, rate: 1, ask: ask{method: http.MethodGet, path: "/items/1"}})
			events, answers := d.streams.events.Load(), d.streams.answers.Load()
			var export sync.WaitGroup
			const kib = 192
			var took time.Duration
			var got int64
			export.Go(func() { got, took = download(ctx, d.crowd.free[0], kib) })
			s.play(ctx, d.length(8*time.Second, 60*time.Second), groups...)
			export.Wait()
			s.served(.99, "paying", "free", "payments", "partner", "strangers")
			s.told()
			s.p99("paying", deadline)
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
	r, err := ask{method: http.MethodGet, path: fmt.Sprintf("/export/%d", kib<<10)}.request(ctx, who)
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
			screen := &group{name: "screen", members: d.crowd.screen, atOnce: 20, ask: ask{method: http.MethodGet, path: "/items/1"}}
			orders := &group{name: "orders", members: d.crowd.searchers[:1], atOnce: 10, ask: ask{method: http.MethodPost, path: "/orders", body: 32}}
			pause := d.length(2500*time.Millisecond, 5*time.Second)
			s.play(ctx, pause, append(d.crowd.ordinary(), screen, orders)...)
			s.play(ctx, pause, append(d.crowd.ordinary(), screen)...)
			s.play(ctx, pause, append(d.crowd.ordinary(), screen)...)
			s.served(1, "screen")
			s.served(1, "orders")
			s.served(.99, "paying", "free")
			s.p99("paying", deadline)
			s.told()
			var first, last time.Time
			for _, one := range s.of("orders") {
				if end := one.at.Add(one.took); end.After(last) {
					last = end
				}
				first = one.at
			}
			turns := 9 * time.Second / time.Duration(usual.Orders.Refill)
			s.hopes("the tenth order had to wait for its turn", last.Sub(first) >= turns+serviceTime, last.Sub(first).Round(time.Millisecond).String(),
				"≥ 9 turns of %v and the work", time.Second/time.Duration(usual.Orders.Refill))
			c, err := d.service.control("counts", nil)
			if err != nil {
				return err
			}
			s.within("per-client", usual.Free, excess{}, c, "items", names(d.crowd.screen)...)
			s.within("orders", usual.Orders, excess{}, c, "orders", names(d.crowd.searchers[:1])...)
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
			greedy := &group{name: "greedy", members: d.crowd.greedy, rate: 80, ask: ask{method: http.MethodGet, path: "/items/1"}}
			search := &group{name: "searchers", members: d.crowd.searchers, rate: 9, ask: ask{method: http.MethodGet, path: "/search"}}
			from := time.Now()
			length := d.length(7*time.Second, 60*time.Second)
			s.play(ctx, length, append(d.crowd.ordinary(), greedy, search)...)
			s.during("greedy", from, time.Now())
			s.served(.99, "paying", "free")
			s.p99("paying", deadline)
			s.told()
			c, err := d.service.control("counts", nil)
			if err != nil {
				return err
			}
			s.within("per-client", usual.Free, excess{}, c, "items", names(d.crowd.greedy)...)
			s.gets("per-client", usual.Free, length, c, "items", names(d.crowd.greedy)...)
			s.expects("rule parallel: at once at the service", c.Most["greedy-0 items"] <= 2*usual.Parallel, fmt.Sprint(c.Most["greedy-0 items"]),
				"≤ %d, in each of 2 gateways", usual.Parallel)
			searches := 0
			for _, who := range append(names(d.crowd.searchers), d.crowd.partner.name) {
				searches += c.Arrived[who+" search"]
			}
			seconds := time.Since(s.begin).Seconds()
			most := float64(usual.Soft)*(seconds+2) + float64(usual.Hard-usual.Soft)
			s.expects("rule searches: arrived at the service, of all", float64(searches) <= most, fmt.Sprint(searches), "≤ %d/s × periods + %d = %.0f",
				usual.Soft, usual.Hard-usual.Soft, most)
			return s.comesBack(ctx, d.crowd.greedy[0], ask{method: http.MethodGet, path: "/items/1"})
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
			if send(ctx, a, who, &one); one.status == http.StatusTooManyRequests && one.reason == "over_limit" {
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
		if end := one.at.Add(one.took); !any || end.After(last.at.Add(last.took)) {
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

// pause waits, and reports whether ctx lasted.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func botAct() *act {
	return &act{
		name: "bot", title: "The bot that changes its keys and addresses",
		about: "A bot asks 100 times a second, each time with another key and from another address of the two networks that it has. Then it has rented " +
			"addresses everywhere, and each request comes from another network.",
		expect: "A key that nobody gave out is no identity and new addresses make no new customer: each network gets what one network may have, and nobody else notices. " +
			"Against addresses from everywhere no quota helps; paying clients are served all the same, because they go first.",
		play: func(ctx context.Context, s *scene) error {
			d := s.day
			bot := &group{name: "bot", members: d.crowd.bot, rate: 50, ask: ask{method: http.MethodGet, path: "/items/1"}}
			from := time.Now()
			length := d.length(6*time.Second, 60*time.Second)
			s.play(ctx, length, append(d.crowd.ordinary(), bot)...)
			s.during("two networks", from, time.Now())
			s.served(.99, "paying", "free")
			c, err := d.service.control("counts", nil)
			if err != nil {
				return err
			}
			s.within("per-network", usual.Network, excess{}, c, "items", names(d.crowd.bot)...)
			s.gets("per-network", usual.Network, length, c, "items", names(d.crowd.bot)...)
			from = time.Now()
			everywhere := &group{name: "bot everywhere", members: d.crowd.everywhere, rate: 100, ask: ask{method: http.MethodGet, path: "/items/1"}}
			s.play(ctx, d.length(4*time.Second, 30*time.Second), append(d.crowd.ordinary(), everywhere)...)
			to := time.Now()
			s.during("addresses everywhere", from, to)
			s.recovers(ctx, to, d.crowd.ordinary(), "paying", "free")
			s.servedOf("paying clients served in time while it came from everywhere", .99, s.since(from, "paying"))
			s.p99("paying", deadline)
			s.told()
			return nil
		},
	}
}

func slowAct() *act {
	return &act{
		name: "slow", title: "The service becomes five times slower",
		about: fmt.Sprintf("Every request takes %v instead of %v, so that %.0f a second are possible and more than twice as many are asked for. Then it is well again.", 5*serviceTime, serviceTime, serviceCapacity/5),
		expect: "Paying clients are served as before, the others get what is left and a 503 with Retry-After for the rest. No line builds up inside of the service, so that it is well as soon as its cause is. " +
			"The pumpkin goes up by itself, switches reports off, and comes down by itself.",
		play: func(ctx context.Context, s *scene) error {
			d := s.day
			defer d.service.set(1)
			groups := append(d.crowd.ordinary(), &group{name: "reports", members: d.crowd.searchers, rate: 1, ask: ask{method: http.MethodPost, path: "/reports", body: 32}})
			from := time.Now()
			if err := d.service.set(5); err != nil {
				return err
			}
			told := d.follow("overload")
			s.play(ctx, d.length(11*time.Second, 60*time.Second), groups...)
			if err := d.service.set(1); err != nil {
				return err
			}
			to := time.Now()
			s.during("five times slower", from, to)
			s.recovers(ctx, to, groups, "paying", "free")
			s.served(.99, "paying")
			s.p99("paying", deadline)
			s.told()
			c, err := d.service.control("counts", nil)
			if err != nil {
				return err
			}
			s.expects("inside of the service at most", c.Longest <= 24, fmt.Sprint(c.Longest), "≤ 2 gateways × concurrency.max 12")
			for ctx.Err() == nil && told.up() && time.Since(to) < 45*time.Second {
				pause(ctx, 200*time.Millisecond)
			}
			told.stop()
			raised, cleared := told.times()
			s.hopes("the pumpkin went up by itself", !raised.IsZero() && raised.Before(to), since(raised, from), "while the service was slow")
			s.hopes("and came down by itself", !cleared.IsZero(), since(cleared, to)+" after the service was well", "≤ 45s")
			return nil
		},
	}
}

// since writes when something was, counted from another moment.
func since(at, from time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.Sub(from).Round(100 * time.Millisecond).String()
}

// following sees when an item of the pumpkin goes up, and when it has come down for good.
type following struct {
	mu              sync.Mutex
	raised, cleared time.Time
	stop            func()
}

// follow asks both gateways for their document.
func (d *day) follow(id string) *following {
	f := &following{}
	f.stop = every(200*time.Millisecond, func() {
		up := slices.ContainsFunc(d.gateways, func(g *gateway) bool { return g.tells(id) })
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case up && f.raised.IsZero():
			f.raised = time.Now()
		case up:
			f.cleared = time.Time{}
		case !f.raised.IsZero() && f.cleared.IsZero():
			f.cleared = time.Now()
		}
	})
	return f
}

func (f *following) times() (raised, cleared time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.raised, f.cleared
}

// up reports whether the item is up.
func (f *following) up() bool {
	raised, cleared := f.times()
	return !raised.IsZero() && cleared.IsZero()
}

func floodAct() *act {
	return &act{
		name: "flood", title: "Ten times as much as it can do, and everybody tries again",
		about:  "Forty clients with accounts ask for some seconds, and try again at once, twice, when they fail: with that ten times the capacity of the service. It is the flood of the control.",
		expect: "Paying clients are served throughout; the flood gets what its rules and the capacity allow, and 429 or 503 with Retry-After for the rest. Within 5 s of its end everything is as before.",
		play: func(ctx context.Context, s *scene) error {
			d := s.day
			flood := &group{name: "flood", members: d.crowd.flood, rate: 10 * serviceCapacity / 40 / 3, retries: 2, ask: ask{method: http.MethodGet, path: "/items/1"}}
			s.play(ctx, 2*time.Second, d.crowd.ordinary()...)
			from := time.Now()
			s.play(ctx, d.length(5*time.Second, 30*time.Second), append(d.crowd.ordinary(), flood)...)
			to := time.Now()
			s.during("flood", from, to)
			s.recovers(ctx, to, d.crowd.ordinary(), "paying", "free")
			s.served(.99, "paying")
			s.p99("paying", deadline)
			s.told()
			c, err := d.service.control("counts", nil)
			if err != nil {
				return err
			}
			s.within("per-client", usual.Free, excess{}, c, "items", names(d.crowd.flood)...)
			return nil
		},
	}
}
