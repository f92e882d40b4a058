// Package probe answers the question: does a server keep its quotas exactly? It asks a few requests at exact times and counts
// which are let through: the three checks that everyone should make before release, and one more for our own library.
//
// In virtual time the counts are exact. Against a real server the clock and the network take part, so that the bounds are
// those that the measured times allow, and no wider.
package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// Ask is one request of a probe, at a time since the probe began.
type Ask struct {
	At     time.Duration
	Server int // 0, or 1 for the second server
	Client string
}

// Answer is what became of it. Sent and Done are when it left and came back.
type Answer struct {
	OK         bool
	Sent, Done time.Duration
	Err        error
}

// Asker asks. Asks with the same time are made at the same instant.
type Asker interface {
	Ask(ctx context.Context, asks []Ask) ([]Answer, error)
}

// Target is what is probed.
type Target struct {
	Asker Asker
	Arm   string
	Mode  string
	// Real says that the answers take time, so that bounds have to allow for it.
	Real bool
	// Single says that there is no second server: the first is asked in its place, and the verdict says so.
	Single bool
	// Name makes clients' names unique, so that a server that was probed before meets new ones.
	Name string
}

// check is one of the probes.
type check struct {
	name, plain, try string
	run              func(ctx context.Context, t *Target, q *scenarios.Probe) (result, error)
}

// result is how many more were let through than should be (fewer, below 0), and what the times allow.
type result struct {
	off, low, high int64
}

// The name of the check that wants a second server, and of what is left of it without one.
const (
	twoServers = "two servers and one last token"
	oneServer  = "one server and one last token"
)

var checks = []check{
	{
		"a burst on a full bucket", "Requests that were let through at once beyond the quota (fewer, below 0).",
		"Too many: several processes count for themselves, or the limit is not where the requests pass. Too few: the quota is not what -quota says.",
		burst,
	},
	{
		"a steady stream after emptying", "Requests that were let through in a steady stream beyond what the rate brings back (fewer, below 0).",
		"Too few: fractions of tokens are lost between requests. Too many: the rate is not what -refill says.",
		steady,
	},
	{
		twoServers, "How many of two requests at the same instant got the one last token, beyond one.",
		"The servers have to share their state, and take a token in one atomic step.",
		lastToken,
	},
}

// Run makes all checks. A check that came to no judgement is an invalid verdict. The errors say that the target could not be asked;
// what was found before is returned with them.
func Run(ctx context.Context, s *scenarios.Scenario, t *Target) ([]judge.Verdict, error) {
	var all []judge.Verdict
	for _, c := range checks {
		if c.name == twoServers && t.Single {
			c.name, c.try = oneServer, "The server has to take a token in one atomic step."
		}
		r, err := c.run(ctx, t, s.Probe)
		if slow, ok := errors.AsType[*tooSlow](err); ok {
			v := verdict(s, t, &c, result{})
			v.Status, v.Note, v.Seeds = judge.Invalid, slow.Error(), 0
			all = append(all, v)
			continue
		}
		if err != nil {
			return all, fmt.Errorf("bench: %s: %w", c.name, err)
		}
		v := verdict(s, t, &c, r)
		if c.name == oneServer && v.Status == judge.Pass {
			v.Note = "only one server was asked; name the second one with -target2"
		}
		all = append(all, v)
	}
	return all, nil
}

func verdict(s *scenarios.Scenario, t *Target, c *check, r result) judge.Verdict {
	value, low, high := judge.Number(r.off), judge.Number(r.low), judge.Number(r.high)
	v := judge.Verdict{
		Scenario: s.ID, Name: c.name, Metric: "too_many", Arm: t.Arm, Mode: t.Mode, Status: judge.Pass,
		Value: value, Low: value, High: value, Seeds: 1, Min: &low, Max: &high, Plain: c.plain, Try: c.try,
	}
	if r.off < r.low || r.off > r.high {
		v.Status = judge.Fail
	}
	if t.Arm != "spillway" && t.Arm != judge.Target {
		// The arms without quotas are controls: a check that they pass sees nothing.
		one := judge.Number(1)
		v.Control, v.Min, v.Max, v.Try = true, &one, nil, ""
		v.Plain = "Without quotas too much passes; if it did not, the check would be blind."
		v.Status = judge.Fail
		if r.off >= 1 {
			v.Status = judge.Pass
		}
	}
	return v
}

// beyond is how many more than the quota a burst asks for.
const beyond = 10

// burst empties a full bucket at one instant: exactly the capacity passes.
func burst(ctx context.Context, t *Target, q *scenarios.Probe) (result, error) {
	answers, err := t.Asker.Ask(ctx, repeat(0, int(q.Capacity)+beyond, t.Name+"burst"))
	if err != nil {
		return result{}, err
	}
	ok, first, last := count(answers)
	return result{ok - q.Capacity, 0, t.brought(q, last-first)}, nil
}

// The steady stream: how long, and how many requests for each token that comes back.
const (
	streamTime = 5 * time.Second
	perToken   = 10
)

// steady empties the bucket and then asks ten times as often as tokens come back: exactly one in ten passes.
func steady(ctx context.Context, t *Target, q *scenarios.Probe) (result, error) {
	client := t.Name + "steady"
	asks := repeat(0, int(q.Capacity), client)
	step := time.Second / time.Duration(q.Refill*perToken)
	for n := 1; ; n++ {
		at := time.Duration(n) * step
		if at > streamTime {
			break
		}
		asks = append(asks, Ask{At: at, Client: client})
	}
	answers, err := t.Asker.Ask(ctx, asks)
	if err != nil {
		return result{}, err
	}
	ok, first, last := count(answers)
	due := q.Capacity + int64(streamTime/time.Second)*q.Refill
	if !t.Real {
		return result{ok - due, 0, 0}, nil
	}
	// A token may come while no request is there to take it, once for each late request; what comes late at the end is more.
	return result{ok - due, -2 - due/50, 1 + t.brought(q, last-first-streamTime)}, nil
}

// How often the last token is fought for, and how often a target may be too slow for that before it is given up.
const (
	rounds   = 20
	patience = 3
)

// tooSlow says that a round takes longer than a token needs to come back, so that a second one may pass by right.
type tooSlow struct {
	rounds           int
	quickest, refill time.Duration
	asked            int64
}

func (e *tooSlow) Error() string {
	return fmt.Sprintf("too slow to be judged: %d requests took %v at best, in %d rounds, and a token comes back after %v; "+
		"ask a lighter path (-path), or lower the rate of this server's rule for the test, and -refill with it",
		e.asked, e.quickest.Round(time.Millisecond), e.rounds, e.refill)
}

// lastToken leaves one token and lets two servers ask for it at the same instant.
func lastToken(ctx context.Context, t *Target, q *scenarios.Probe) (result, error) {
	worst, valid, quickest := int64(0), 0, time.Duration(math.MaxInt64)
	for n := range rounds {
		if n >= patience && valid == 0 {
			return result{}, &tooSlow{rounds: n, quickest: quickest, refill: time.Second / time.Duration(q.Refill), asked: q.Capacity + 1}
		}
		client := fmt.Sprint(t.Name, "last", n)
		asks := repeat(0, int(q.Capacity)-1, client)
		asks = append(asks, Ask{At: time.Millisecond, Client: client}, Ask{At: time.Millisecond, Server: 1, Client: client})
		answers, err := t.Asker.Ask(ctx, asks)
		if err != nil {
			return result{}, err
		}
		_, first, last := count(answers)
		quickest = min(quickest, last-first)
		if t.brought(q, last-first) > 0 {
			continue // it took so long that a second token may have come back
		}
		valid++
		got, _, _ := count(answers[len(answers)-2:])
		if off := got - 1; off*off > worst*worst {
			worst = off
		}
	}
	return result{worst, 0, 0}, nil
}

// brought is how many whole tokens may have come back in d.
func (t *Target) brought(q *scenarios.Probe, d time.Duration) int64 {
	if !t.Real {
		return 0
	}
	return max(0, int64(d.Seconds()*float64(q.Refill)))
}

func repeat(at time.Duration, n int, client string) []Ask {
	asks := make([]Ask, n)
	for i := range asks {
		asks[i] = Ask{At: at, Client: client}
	}
	return asks
}

func count(answers []Answer) (ok int64, first, last time.Duration) {
	first = answers[0].Sent
	for _, a := range answers {
		if a.OK {
			ok++
		}
		first, last = min(first, a.Sent), max(last, a.Done)
	}
	return ok, first, last
}
