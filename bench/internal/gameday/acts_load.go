package gameday

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// controlName is the act in which nothing meets a gateway.
const controlName = "control"

// controlAct is the day without Spillway: the same service, the same flood.
func controlAct() *act {
	return &act{
		name: controlName, title: "Control: the flood without Spillway",
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
			for _, who := range slices.Concat(ours.paying, ours.flood) {
				who.open(newBalancer(alone.addr))
				defer who.client.CloseIdleConnections()
			}
			paying := &group{name: "paying", members: ours.paying, rate: 3, ask: item}
			s.play(ctx, 2*time.Second, paying)
			from := time.Now()
			s.play(ctx, 2*time.Second, paying, ours.flooding())
			to := time.Now()
			s.during("flood", from, to)
			after := &load{}
			after.play(ctx, 4*time.Second, paying)
			s.shots = append(s.shots, after.shots...)
			n, all := tally(after.shots)
			s.expects("paying clients served after the flood had gone", float64(n) < .5*float64(all), fmt.Sprintf("%d of %d", n, all), "< 50 %%: the control must fail")
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
			groups := append(d.crowd.ordinary(), &group{name: "reports", members: d.crowd.searchers, rate: 1, ask: report})
			from := time.Now()
			if err := d.service.set(5); err != nil {
				return err
			}
			banner := d.follow("overload")
			defer banner.stop()
			s.play(ctx, d.length(11*time.Second, 60*time.Second), groups...)
			if err := d.service.set(1); err != nil {
				return err
			}
			to := time.Now()
			s.during("five times slower", from, to)
			s.recovers(ctx, to, groups, "paying", "free")
			s.asPromised("paying")
			c, err := d.service.counts()
			if err != nil {
				return err
			}
			s.expects("inside of the service at most", c.Longest <= 24, fmt.Sprint(c.Longest), "≤ 2 gateways × concurrency.max 12")
			for ctx.Err() == nil && banner.up() && time.Since(to) < 45*time.Second {
				pause(ctx, 200*time.Millisecond)
			}
			banner.stop()
			raised, cleared := banner.times()
			s.hopes("the pumpkin went up by itself", !raised.IsZero() && raised.Before(to), elapsed(raised, from), "while the service was slow")
			s.hopes("and came down by itself", !cleared.IsZero(), elapsed(cleared, to)+" after the service was well", "≤ 45s")
			return nil
		},
	}
}

// elapsed writes when something was, counted from another moment.
func elapsed(at, from time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.Sub(from).Round(100 * time.Millisecond).String()
}

func floodAct() *act {
	return &act{
		name: "flood", title: "Ten times as much as it can do, and everybody tries again",
		about:  "Forty clients with accounts ask for some seconds, and try again at once, twice, when they fail: with that ten times the capacity of the service. It is the flood of the control.",
		expect: "Paying clients are served throughout; the flood gets what its rules and the capacity allow, and 429 or 503 with Retry-After for the rest. Within 5 s of its end everything is as before.",
		play: func(ctx context.Context, s *scene) error {
			d := s.day
			s.play(ctx, 2*time.Second, d.crowd.ordinary()...)
			from := time.Now()
			s.play(ctx, d.length(5*time.Second, 30*time.Second), append(d.crowd.ordinary(), d.crowd.flooding())...)
			to := time.Now()
			s.during("flood", from, to)
			s.recovers(ctx, to, d.crowd.ordinary(), "paying", "free")
			s.asPromised("paying")
			c, err := d.service.counts()
			if err != nil {
				return err
			}
			s.within(perClient, excess{}, c, d.crowd.flood...)
			return nil
		},
	}
}
