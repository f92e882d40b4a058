package shed

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// never is an Await that waits for as long as it may.
func never(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Hour):
		return nil
	}
}

func TestAwaitingEndsWithTheDeadlineAndWithClose(t *testing.T) {
	heedless := func(context.Context) error { time.Sleep(3 * time.Second); return nil }
	for name, row := range map[string]struct {
		route, caller, close time.Duration
		await                func(context.Context) error
		want                 time.Duration
		reason               Reason
	}{
		"deadline of the route":       {route: time.Second, await: never, want: time.Second, reason: Deadline},
		"deadline of the caller":      {caller: time.Second, route: 2 * time.Second, await: never, want: time.Second, reason: Deadline},
		"deadline that is not heeded": {route: time.Second, await: heedless, want: 3 * time.Second, reason: Deadline},
		"close":                       {close: time.Second, await: never, want: time.Second},
		"close that is not heeded":    {close: time.Second, await: heedless, want: 3 * time.Second},
		"neither":                     {route: 4 * time.Second, await: heedless, want: 3 * time.Second, reason: "admitted"},
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg := fixed(1, Queue{Capacity: -1})
			cfg.Routes = []Route{{Name: "r", Deadline: row.route}}
			s := open(t, cfg)
			ctx, start := t.Context(), time.Now()
			if row.caller > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, row.caller)
				defer cancel()
			}
			if row.close > 0 {
				time.AfterFunc(row.close, func() { s.Close() })
			}
			p, err := s.Admit(ctx, Request{Route: "r", Await: row.await})
			if took := time.Since(start); took != row.want {
				t.Errorf("%s: %v after %v, want %v", name, err, took, row.want)
			}
			switch rejection, _ := errors.AsType[*Rejection](err); {
			case row.close > 0 && !errors.Is(err, ErrClosed),
				row.reason == Deadline && (rejection == nil || rejection.Reason != Deadline),
				row.reason == "admitted" && err != nil:
				t.Errorf("%s: %v", name, err)
			}
			p.Done(Success)
		})
	}
}

// Where turns space out what starts, nothing is awaited between a turn and its use, for the first turn too.
func TestNothingIsAwaitedBetweenATurnAndItsUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(10, Queue{Capacity: -1})
		cfg.Limits = []Limit{{Name: "smooth", Rule: limits.LeakyBucket{Capacity: 10, Leak: limits.PerSecond(1)}, Excess: Delay, Per: Global}}
		s, start := open(t, cfg), time.Now()
		for i := range 4 {
			p := admitted(t, s, Request{Await: func(context.Context) error {
				if at, want := time.Since(start), time.Duration(max(i-1, 0))*time.Second; at != want {
					t.Errorf("the %d. awaited at %v, want %v, before its turn", i, at, want)
				}
				return nil
			}})
			p.Done(Success)
			if took := time.Since(start); took != time.Duration(i)*time.Second {
				t.Errorf("the %d. after %v, want %v", i, took, time.Duration(i)*time.Second)
			}
		}
	})
}

// A turn is used up once it has come, whatever then keeps its request from starting.
func TestATurnThatHasComeIsUsedUpBeforeTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(10, Queue{Capacity: -1})
		cfg.Limits = []Limit{{
			Name: "smooth", Rule: limits.LeakyBucket{Capacity: 10, Leak: limits.PerSecond(1)}, Excess: Delay, Per: Global,
		}}
		s := open(t, cfg)
		admitted(t, s, Request{}).Done(Success)
		v, req := s.visits.Get().(*visit), Request{}
		v.begin(t.Context(), s.current().route(""), &req)
		var decision limits.Decision
		turn, err := v.arrive(&req, &decision)
		if err == nil {
			err = v.awaitTurn(turn)
		}
		if err != nil {
			t.Fatal(err)
		}
		v.giveBack(&decision) // as when what comes between the turn and the gate fails
		v.end()
		start := time.Now()
		admitted(t, s, Request{}).Done(Success)
		if took := time.Since(start); took != time.Second {
			t.Errorf("the next turn came after %v, want 1s", took)
		}
	})
}

func TestAShadowAwaitsNothing(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"all":   func(c *Config) { c.Shadow = true },
		"route": func(c *Config) { c.Routes = []Route{{Name: "r", Shadow: true}} },
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg := fixed(1, Queue{Capacity: -1})
			change(&cfg)
			s := open(t, cfg)
			p := admitted(t, s, Request{Route: "r", Await: func(context.Context) error {
				t.Errorf("%s: awaited", name)
				return &Rejection{Reason: BodyTooSlow}
			}})
			p.Done(Success)
		})
	}
	if !(Config{}).Ungated().Bodies.Unwatched {
		t.Error("without places slow bodies hold none, and are watched")
	}
}

// Where what has to be awaited comes before the charge, a refusal comes before it all the same, and charges nothing.
func TestWhatTheRulesRefuseIsNotAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(10, Queue{Capacity: -1})
		cfg.Limits = []Limit{
			{Name: "smooth", Rule: limits.LeakyBucket{Capacity: 10, Leak: limits.PerSecond(1)}, Excess: Delay, Per: Global},
			{Name: "quota", Rule: limits.FixedWindow{Quota: limits.Rate{Amount: 1, Per: time.Hour}}, Per: Global},
		}
		s := open(t, cfg)
		awaited := 0
		ask := Request{Await: func(context.Context) error { awaited++; return nil }}
		p := admitted(t, s, ask)
		p.Done(Success)
		for range 2 {
			_, err := s.Admit(t.Context(), ask)
			if r, _ := errors.AsType[*Rejection](err); r == nil || r.Reason != OverLimit || r.Rule != "quota" || len(r.Verdicts) != 2 {
				t.Errorf("%v, want a refusal by quota that tells of both rules", err)
			}
		}
		if st := s.Status(); awaited != 1 || st.Refused[OverLimit] != 2 || st.Rules[1].Refused != 2 || st.Rules[1].Admitted != 1 {
			t.Errorf("awaited %d times, %+v", awaited, st.Rules)
		}
	})
}
