package storetest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// The transcripts: so many, of so many steps each.
const transcripts, steps = 16, 300

// transcriptsAgree plays random calls to the store and to the model. The seeds are fixed, so that a difference can be
// played again.
func transcriptsAgree(s limits.Store) error {
	for seed := range uint64(transcripts) {
		p := newPlay(s, seed)
		for step := range steps {
			if err := p.step(); err != nil {
				return fmt.Errorf("transcript %d, step %d, %v after its start: %w", seed, step, p.now.Sub(p.begin), err)
			}
		}
	}
	return nil
}

// play is one transcript.
type play struct {
	store    limits.Store
	model    *model
	rand     *rand.Rand
	policies []*limits.Policy
	retired  [4]limits.Rule // the rule that each of them had before
	begin    time.Time
	now      time.Time
	latest   time.Time       // the latest now so far
	waits    []time.Duration // promised by the last decision
	held     []pair          // not refunded yet
}

// pair is one call's answer from the store and from the model.
type pair struct{ store, model limits.Decision }

func newPlay(s limits.Store, seed uint64) *play {
	p := &play{store: s, model: newModel(), rand: rand.New(rand.NewPCG(seed, 0x5eed))}
	p.begin = start.Add(time.Duration(seed) * 1000 * time.Hour)
	p.now, p.latest = p.begin, p.begin
	for i := range 4 {
		rule := rules[p.rand.IntN(len(rules))]
		if i == 0 {
			rule = p.anyRule()
		}
		p.policies = append(p.policies, policy(fmt.Sprintf("transcript %d.%d", seed, i), rule))
	}
	return p
}

// anyRule makes up a rule.
func (p *play) anyRule() limits.Rule {
	for {
		r := p.triedRule()
		if _, err := limits.NewPolicy("tried", r); err == nil {
			return r
		}
	}
}

// triedRule makes up a rule that may be impossible.
func (p *play) triedRule() limits.Rule {
	rate := limits.Rate{Amount: 1 + p.rand.Int64N(1<<p.rand.IntN(20)), Per: time.Duration(1+p.rand.Int64N(1<<p.rand.IntN(24))) * time.Millisecond}
	quota := limits.Rate{Amount: p.rand.Int64N(1 << p.rand.IntN(8)), Per: rate.Per}
	switch p.rand.IntN(8) {
	case 0:
		return limits.FixedWindow{Quota: quota}
	case 1:
		return limits.SlidingLog{Quota: quota}
	case 2:
		if p.rand.IntN(4) == 0 {
			return limits.SlidingWindow{Quota: limits.Rate{Amount: rate.Amount << p.rand.IntN(12), Per: rate.Per}}
		}
		return limits.SlidingWindow{Quota: quota}
	case 3, 4:
		burst := limits.Burst{Soft: quota, Hard: quota}
		burst.Hard.Amount += p.rand.Int64N(5*quota.Amount + 2)
		if p.rand.IntN(2) == 0 {
			burst.Total = limits.Rate{Amount: p.rand.Int64N(6*quota.Amount + 1), Per: rate.Per * time.Duration(1+p.rand.IntN(9))}
		}
		return burst
	}
	capacity := p.rand.Int64N(1 << p.rand.IntN(14))
	var r limits.Rule = limits.TokenBucket{Capacity: capacity, Refill: rate}
	if p.rand.IntN(2) == 0 {
		r = limits.LeakyBucket{Capacity: capacity, Leak: rate}
	}
	if p.rand.IntN(3) == 0 {
		r = limits.Delay{Rule: r, MaxWait: time.Duration(p.rand.Int64N(int64(rate.Per) * 4))}
	}
	return r
}

// change gives one of the policies another rule, as a reload does, and sometimes the one it had before.
func (p *play) change() {
	i := p.rand.IntN(len(p.policies))
	name, rule := p.policies[i].Name(), p.policies[i].Rule()
	switch b, burst := rule.(limits.Burst); {
	case burst && p.rand.IntN(2) == 0: // the same periods
		b.Hard.Amount = b.Soft.Amount + p.rand.Int64N(2*b.Soft.Amount+2)
		b.Soft.Amount = 1 + p.rand.Int64N(b.Hard.Amount+1)
		if _, err := limits.NewPolicy("tried", b); err != nil {
			return
		}
		rule = b
	case p.retired[i] != nil && p.rand.IntN(3) == 0:
		rule = p.retired[i]
	default:
		rule = p.anyRule()
	}
	p.retired[i] = p.policies[i].Rule()
	p.policies[i] = policy(name, rule)
}

// step makes one call to both and compares the answers.
func (p *play) step() error {
	p.move()
	ctx := context.Background()
	if p.rand.IntN(40) == 0 {
		p.change()
	}
	if n := len(p.held); n > 0 && p.rand.IntN(5) == 0 {
		i := p.rand.IntN(n)
		d := p.held[i]
		p.held[i], p.held = p.held[n-1], p.held[:n-1]
		if err := p.store.Refund(ctx, p.now, d.store); err != nil {
			return fmt.Errorf("refund: %w", err)
		}
		p.model.Refund(ctx, p.now, d.model) // never fails
		return p.compare("peek after refund", p.chargesFor(&d.model), p.store.Peek, p.model.Peek)
	}
	if p.rand.IntN(6) == 0 {
		return p.compare("peek", p.charges(), p.store.Peek, p.model.Peek)
	}
	return p.compare("take", p.charges(), p.store.Take, p.model.Take)
}

type call = func(context.Context, time.Time, []limits.Charge) (limits.Decision, error)

func (p *play) compare(verb string, charges []limits.Charge, store, model call) error {
	got, err := store(context.Background(), p.now, charges)
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, describe(charges), err)
	}
	want, err := model(context.Background(), p.now, charges)
	if err != nil {
		return err
	}
	if err := differ(got, want); err != nil {
		rules := ""
		for _, c := range charges {
			rules += "\n" + c.Policy.String()
		}
		return fmt.Errorf("%s %s: %w%s", verb, describe(charges), err, rules)
	}
	p.held = append(p.held, pair{got, want})
	p.waits = p.waits[:0]
	for i := range want.Len() {
		v := want.At(i)
		p.waits = append(p.waits, v.RetryAfter, v.NextAfter, v.ResetAfter, v.Delay)
	}
	return nil
}

// move changes the time: mostly to where something is about to happen.
func (p *play) move() {
	switch p.rand.IntN(10) {
	case 0, 1, 2: // at once
	case 3:
		p.now = p.now.Add(time.Duration(p.rand.Int64N(int64(time.Millisecond))))
	case 4:
		p.now = p.now.Add(time.Duration(p.rand.Int64N(int64(3 * time.Second))))
	case 5, 6, 7: // just when, or just before, a promised time is over
		if len(p.waits) > 0 {
			p.now = p.now.Add(p.waits[p.rand.IntN(len(p.waits))] - time.Duration(p.rand.IntN(2))*time.Microsecond)
		}
	case 8: // back, as goroutines overtake each other
		p.now = p.latest.Add(-time.Duration(p.rand.Int64N(int64(900 * time.Millisecond))))
	case 9:
		if w := p.policies[p.rand.IntN(len(p.policies))].Window(); p.rand.IntN(4) == 0 {
			p.now = p.now.Add(time.Duration(p.rand.Int64N(int64(w) + 1)))
		}
	}
	if p.now.After(p.latest) {
		p.latest = p.now
	}
}

func (p *play) charges() []limits.Charge {
	n := 1
	if p.rand.IntN(2) == 0 {
		n += p.rand.IntN(6) // sometimes more than a Decision holds inline, sometimes twice on one balance
	}
	charges := make([]limits.Charge, n)
	for i := range charges {
		pol := p.policies[p.rand.IntN(len(p.policies))]
		charges[i] = charge(pol, []string{"x", "y"}[p.rand.IntN(2)], p.cost(pol.Quota()))
		charges[i].Shadow = p.rand.IntN(8) == 0
	}
	return charges
}

// cost is often near the edges of what a rule allows.
func (p *play) cost(quota int64) int64 {
	switch p.rand.IntN(12) {
	case 0:
		return 0
	case 1:
		return quota
	case 2:
		return quota + 1
	case 3:
		return math.MaxInt64 - p.rand.Int64N(2)
	case 4, 5, 6, 7:
		return 1
	}
	return 1 + p.rand.Int64N(quota/4+1)
}

// chargesFor asks about the balances of d.
func (p *play) chargesFor(d *limits.Decision) []limits.Charge {
	charges := make([]limits.Charge, d.Len())
	for i := range charges {
		charges[i] = charge(d.At(i).Policy, d.At(i).Key, 1)
	}
	return charges
}
