package storetest

import (
	"context"
	"errors"
	"math"
	"math/big"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// The oracle keeps its own promises; otherwise it would be no oracle.
func TestModelKeepsThePromises(t *testing.T) {
	for _, l := range laws {
		t.Run(l.name, func(t *testing.T) {
			if err := l.holds(guarded{newModel()}); err != nil {
				t.Error(err)
			}
		})
	}
}

// guarded adds to the model what its arithmetic does not need: a look at the context and at the policies.
type guarded struct{ *model }

func (g guarded) Take(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	if err := ctx.Err(); err != nil {
		return limits.Decision{}, err
	}
	for _, c := range charges {
		if c.Policy == nil {
			return limits.Decision{}, errors.New("no policy")
		}
	}
	return g.model.Take(ctx, now, charges)
}

// Stores with one flaw each are caught by the checks that are about that flaw.
func TestAFlawIsCaughtByTheLawItBreaks(t *testing.T) {
	for _, v := range []struct {
		flaw  string
		store func() limits.Store
		broke []string
	}{
		{"balances are floats", func() limits.Store { return &flawed{float: true} }, []string{
			"rates are exact for as long as one looks",
			"random transcripts agree with the exact model",
		}},
		{"time is not clamped", func() limits.Store { return &flawed{unclamped: true} }, []string{
			"a clock that steps mints nothing and locks nobody out",
			"random transcripts agree with the exact model",
		}},
		{"a refusal is charged", func() limits.Store { return &flawed{chargesRefusals: true} }, []string{
			"a refusal writes nothing",
			"several charges are made or none",
		}},
		{"charges are made one by one", func() limits.Store { return &flawed{oneByOne: true} }, []string{
			"several charges are made or none",
			"charges on one balance add up",
		}},
		{"a refund is always credited", func() limits.Store { return &flawed{creditsAlways: true} }, []string{
			"a refund never mints",
			"random transcripts agree with the exact model",
		}},
		{"check and charge are two steps", func() limits.Store { return &flawed{racy: true} }, []string{
			"of many at once exactly as many pass as may",
		}},
		{"waits are rounded down", func() limits.Store { return &flawed{roundsDown: true} }, []string{
			"RetryAfter, NextAfter and ResetAfter are exact",
		}},
		{"keys are joined with a colon", func() limits.Store { return &flawed{joinsKeys: true} }, []string{
			"policies and keys do not touch",
		}},
		{"a peek is charged", func() limits.Store { return &flawed{chargesPeeks: true} }, []string{
			"a peek answers as a take and changes nothing",
		}},
		{"a reload starts anew", func() limits.Store { return &flawed{swap: apartByRule} }, []string{
			"a policy built anew keeps its balances",
			"a rule of another kind keeps what was used",
		}},
		{"a shadow acts", func() limits.Store { return &flawed{swap: withoutShadow} }, []string{
			"a shadow decides nothing and is charged if it fits",
			"random transcripts agree with the exact model",
		}},
		{"windows are another kind of window", func() limits.Store { return &flawed{swap: otherWindow} }, []string{
			"fixed windows begin on the clock",
			"a sliding log holds over spans of any phase",
			"a sliding window weighs the window before",
			"a sliding window errs by no more than it says",
			"random transcripts agree with the exact model",
		}},
		{"a burst has no debt", func() limits.Store { return &flawed{swap: withoutDebt} }, []string{
			"a burst makes debt and pays it",
			"bursts are bounded over every run of periods, from both sides",
			"a refund makes it as if a burst had not been",
		}},
		{"a total is forgotten", func() limits.Store { return &flawed{swap: withoutTotal} }, []string{
			"a total holds over every run of periods",
			"bursts are bounded over every run of periods, from both sides",
		}},
	} {
		t.Run(v.flaw, func(t *testing.T) {
			for _, name := range v.broke {
				i := slices.IndexFunc(laws, func(l law) bool { return l.name == name })
				if i < 0 {
					t.Fatalf("there is no law %q", name)
				}
				if err := laws[i].holds(v.store()); err == nil {
					t.Errorf("%q holds", name)
				}
			}
		})
	}
}

// flawed is a store that would be right without its flaw. It keeps the model's accounts and breaks them.
type flawed struct {
	float, unclamped, chargesRefusals, oneByOne, creditsAlways, racy, roundsDown, joinsKeys, chargesPeeks bool

	swap func(limits.Charge) limits.Charge // another charge than was asked for

	mu    sync.Mutex
	model *model
}

func apartByRule(c limits.Charge) limits.Charge {
	c.Policy = policy(c.Policy.Name()+c.Policy.Rule().String(), c.Policy.Rule())
	return c
}

func withoutShadow(c limits.Charge) limits.Charge {
	c.Shadow = false
	return c
}

func otherWindow(c limits.Charge) limits.Charge {
	switch r := c.Policy.Rule().(type) {
	case limits.FixedWindow:
		c.Policy = policy(c.Policy.Name(), limits.SlidingLog(r))
	case limits.SlidingLog:
		c.Policy = policy(c.Policy.Name(), limits.FixedWindow(r))
	case limits.SlidingWindow:
		c.Policy = policy(c.Policy.Name(), limits.FixedWindow(r))
	}
	return c
}

func withoutDebt(c limits.Charge) limits.Charge {
	if r, burst := c.Policy.Rule().(limits.Burst); burst {
		c.Policy = policy(c.Policy.Name(), limits.FixedWindow{Quota: r.Hard})
	}
	return c
}

func withoutTotal(c limits.Charge) limits.Charge {
	if r, burst := c.Policy.Rule().(limits.Burst); burst {
		r.Total = limits.Rate{}
		c.Policy = policy(c.Policy.Name(), r)
	}
	return c
}

func (f *flawed) Take(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	if f.racy {
		return f.takeInTwoSteps(ctx, now, charges)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prepare(now, charges)
	if f.oneByOne {
		return f.takeOneByOne(ctx, now, charges)
	}
	d, err := f.model.Take(ctx, now, f.rename(charges))
	if err != nil || d.Allowed {
		return f.answer(d), err
	}
	if f.chargesRefusals {
		f.charge(charges)
	}
	return f.answer(d), nil
}

// charge adds the charges whether they fit or not.
func (f *flawed) charge(charges []limits.Charge) {
	for _, c := range charges {
		at := place{c.Policy.Name(), c.Key}
		a := f.model.account(at, c.Policy.Rule(), 0)
		a.used = new(big.Rat).Add(a.used, whole(c.Cost))
		f.model.balances[at] = a
	}
}

// takeInTwoSteps looks first and charges then; in between others may do the same.
func (f *flawed) takeInTwoSteps(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	d, err := f.Peek(ctx, now, charges)
	runtime.Gosched()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && d.Allowed {
		f.charge(charges)
	}
	return d, err
}

func (f *flawed) takeOneByOne(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	all := limits.Decision{Allowed: true}
	for _, c := range charges {
		d, err := f.model.Take(ctx, now, []limits.Charge{c})
		if err != nil {
			return limits.Decision{}, err
		}
		all.Append(*d.At(0))
		all.Allowed = all.Allowed && d.Allowed
	}
	return all, nil
}

func (f *flawed) Peek(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prepare(now, charges)
	if f.chargesPeeks {
		return f.model.Take(ctx, now, charges)
	}
	d, err := f.model.Peek(ctx, now, f.rename(charges))
	return f.answer(d), err
}

func (f *flawed) Refund(ctx context.Context, now time.Time, d limits.Decision) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.creditsAlways {
		for i := range d.Len() {
			if v := d.At(i); v.Taken != limits.NotTaken {
				v.Taken = math.MaxInt64
			}
		}
	}
	return f.model.Refund(ctx, now, d)
}

// prepare breaks the accounts that are about to be used.
func (f *flawed) prepare(now time.Time, charges []limits.Charge) {
	if f.model == nil {
		f.model = newModel()
	}
	for _, c := range charges {
		if c.Policy == nil || c.Cost < 0 {
			return
		}
		at := place{c.Policy.Name(), c.Key}
		a, ok := f.model.balances[at]
		if !ok {
			continue
		}
		if _, bucket := f.model.meaning(c.Policy.Rule()).(*figures); f.float && bucket {
			tokens, _ := a.used.Float64()
			rate, _ := figuresOf(c.Policy.Rule()).rate.Float64()
			if t := now.UnixMicro(); t > a.last {
				tokens = max(0, tokens-float64(t-a.last)*rate)
				a.last = t
			}
			a.used.SetFloat64(tokens)
		}
		if f.unclamped && now.UnixMicro() < a.last {
			a.last = now.UnixMicro()
		}
		f.model.balances[at] = a
	}
}

func (f *flawed) rename(charges []limits.Charge) []limits.Charge {
	joined := slices.Clone(charges)
	if f.swap != nil {
		for i, c := range joined {
			joined[i] = f.swap(c)
		}
	}
	if !f.joinsKeys {
		return joined
	}
	for i, c := range joined {
		name, key, _ := strings.Cut(c.Policy.Name()+":"+c.Key, ":")
		joined[i] = charge(policy(name, c.Policy.Rule()), key, c.Cost)
	}
	return joined
}

func (f *flawed) answer(d limits.Decision) limits.Decision {
	for i := range d.Len() {
		if v := d.At(i); f.roundsDown {
			v.RetryAfter = v.RetryAfter.Truncate(time.Millisecond)
		}
	}
	return d
}
