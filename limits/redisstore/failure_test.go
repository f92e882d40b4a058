package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// fake is a store that fails as it is told to, on the clock of the test's bubble.
type fake struct {
	*limits.Memory
	mu     sync.Mutex
	err    error         // what every call returns
	takes  time.Duration // how long a call lasts
	deaf   bool          // whether it does not mind its context
	asked  atomic.Int64
	under  atomic.Int64
	most   atomic.Int64
	closed atomic.Bool
	beats  func(id string, lasts time.Duration) (int, error)
}

func newFake(t *testing.T) *fake {
	t.Helper()
	m, err := limits.NewMemory(limits.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return &fake{Memory: m}
}

func (f *fake) set(err error, takes time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.takes = err, takes
}

func (f *fake) wait(ctx context.Context) error {
	f.asked.Add(1)
	now := f.under.Add(1)
	defer f.under.Add(-1)
	f.most.Store(max(f.most.Load(), now))
	f.mu.Lock()
	err, takes := f.err, f.takes
	f.mu.Unlock()
	if takes > 0 {
		done := ctx.Done()
		if f.deaf {
			done = nil
		}
		select {
		case <-time.After(takes):
		case <-done:
			return &Error{Kind: Cancelled, Op: "take", Sent: true, Err: ctx.Err()}
		}
	}
	return err
}

func (f *fake) Take(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	if err := f.wait(ctx); err != nil {
		return limits.Decision{}, err
	}
	d, err := f.Memory.Take(context.Background(), now, charges)
	d.Source = limits.FromRedis
	return d, err
}

func (f *fake) Peek(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	if err := f.wait(ctx); err != nil {
		return limits.Decision{}, err
	}
	d, err := f.Memory.Peek(context.Background(), now, charges)
	d.Source = limits.FromRedis
	return d, err
}

func (f *fake) Refund(ctx context.Context, now time.Time, d limits.Decision) error {
	if err := f.wait(ctx); err != nil {
		return err
	}
	return f.Memory.Refund(context.Background(), now, d)
}

func (f *fake) Close() error { f.closed.Store(true); return nil }

func (f *fake) beat(_ context.Context, id string, lasts time.Duration) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.beats == nil {
		return 0, errors.New("cannot count")
	}
	return f.beats(id, lasts)
}

var refused = &Error{Kind: NotExecuted, Op: "take", Err: errors.New("connection refused")}

// guard makes a Guard that has greeted its store, and ends with the test.
func guard(t *testing.T, f limits.Store, cfg GuardConfig) *Guard {
	t.Helper()
	g, err := NewGuard(f, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	synctest.Wait()
	return g
}

func named(t *testing.T, name string, r limits.Rule, options ...limits.Option) *limits.Policy {
	t.Helper()
	p, err := limits.NewPolicy(name, r, options...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func single(p *limits.Policy, key string, cost int64) []limits.Charge {
	return []limits.Charge{{Policy: p, Key: key, Cost: cost}}
}

// take takes, and fails the test on any error but one of a policy that is closed.
func (g *Guard) take(t *testing.T, charges []limits.Charge) (d limits.Decision, unavailable bool) {
	t.Helper()
	d, err := g.Take(context.Background(), time.Time{}, charges)
	var u *limits.UnavailableError
	if err != nil && !errors.As(err, &u) {
		t.Fatal(err)
	}
	return d, err != nil
}

// cut makes the store fail, and charges until the breaker is open.
func cut(t *testing.T, f *fake, g *Guard) {
	t.Helper()
	f.set(refused, 0)
	p := named(t, "cutter", limits.TokenBucket{Capacity: 1, Refill: limits.PerSecond(1)}, limits.WhenStoreFails(limits.Open))
	for range failuresInARow {
		g.take(t, single(p, "", 1))
	}
	if !g.breaker.open() {
		t.Fatal("the breaker is closed")
	}
}

var bucket = limits.TokenBucket{Capacity: 12, Refill: limits.PerSecond(3)}

func TestEachPolicyGetsWhatItWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		g := guard(t, f, GuardConfig{Instances: 3})
		open := named(t, "open", bucket, limits.WhenStoreFails(limits.Open))
		closed := named(t, "closed", bucket, limits.WhenStoreFails(limits.Closed))
		strict := named(t, "strict", bucket, limits.WhenStoreFails(limits.Open), limits.Strict())
		local := named(t, "local", bucket) // the default
		if d, _ := g.take(t, single(closed, "k", 1)); !d.Allowed || d.Source != limits.FromRedis {
			t.Fatalf("while all is well: %+v", d)
		}
		f.set(refused, 0)
		for i := range 100 {
			if d, out := g.take(t, single(open, "k", 1)); out || !d.Allowed || d.Source != limits.FromOpen || d.At(0).Policy != open {
				t.Fatalf("open: %v %v", d.Source, d.Allowed)
			}
			if d, out := g.take(t, single(closed, "k", 1)); !out || d.Allowed || d.Source != limits.FromClosed {
				t.Fatalf("closed: %v %v", d.Source, d.Allowed)
			}
			if _, out := g.take(t, single(strict, "k", 1)); !out {
				t.Fatal("strict passes")
			}
			d, out := g.take(t, single(local, "k", 1))
			if want := i < 4; out || d.Allowed != want || d.Source != limits.FromLocal || d.At(0).Policy != local {
				t.Fatalf("local, %d: %v %v", i, d.Source, d.Allowed)
			}
			if i == 4 && d.At(0).RetryAfter != time.Second {
				t.Errorf("a third of 3/s gives one after %v", d.At(0).RetryAfter)
			}
		}
		both := []limits.Charge{{Policy: open, Key: "k", Cost: 1}, {Policy: local, Key: "other", Cost: 4}}
		if d, _ := g.take(t, both); !d.Allowed || d.Source != limits.FromLocal || d.Len() != 2 || d.At(0).Policy != open || d.At(1).Remaining != 0 {
			t.Errorf("open and local: %+v", d)
		}
		if d, _ := g.take(t, both); d.Allowed || d.Binding().Policy != local {
			t.Errorf("open and local, used up: %+v", d)
		}
		shadow := []limits.Charge{{Policy: closed, Key: "k", Cost: 1, Shadow: true}, {Policy: open, Key: "k", Cost: 1}}
		if d, out := g.take(t, shadow); out || !d.Allowed {
			t.Error("a shadow that is closed refuses")
		}
		if d, out := g.take(t, single(closed, "k", 0)); out || !d.Allowed {
			t.Error("a cost of 0 is refused by a closed policy")
		}
	})
}

func TestWhatCanNeverFitIsNeverPromised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		g := guard(t, f, GuardConfig{Instances: 3})
		cut(t, f, g)
		open := named(t, "open", bucket, limits.WhenStoreFails(limits.Open))
		none := named(t, "none", limits.TokenBucket{Refill: limits.PerSecond(1)})
		local := named(t, "local", bucket)
		for _, c := range [][]limits.Charge{single(open, "k", 13), single(local, "k", 13), single(none, "k", 1)} {
			if d, out := g.take(t, c); out || d.Allowed || d.Binding().Reason != limits.CostTooLarge {
				t.Errorf("%v: %+v", c[0].Policy, d)
			}
		}
		// 5 fits into 12, but not into a third of it: that is nobody's fault, and will pass.
		if d, out := g.take(t, single(local, "k", 5)); !out || d.Allowed {
			t.Errorf("above the share: %+v", d)
		}
		sum := append(single(local, "k", 3), single(local, "k", 3)...)
		if _, out := g.take(t, sum); !out {
			t.Error("above the share in sum: refused for ever")
		}
		if d, _ := g.take(t, single(local, "k", 4)); !d.Allowed {
			t.Error("what was refused was charged")
		}
	})
}

func TestTheLocalBalanceIsWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		g := guard(t, f, GuardConfig{Instances: 3})
		p := named(t, "p", bucket)
		g.take(t, single(p, "k", 3)) // of its 4
		g.take(t, single(p, "big", 5))
		d, _ := g.take(t, single(p, "back", 4))
		if err := g.Refund(context.Background(), time.Time{}, d); err != nil {
			t.Fatal(err)
		}
		cut(t, f, g)
		admitted := func(key string) (n int) {
			for range 20 {
				if d, _ := g.take(t, single(p, key, 1)); d.Allowed {
					n++
				}
			}
			return n
		}
		for key, want := range map[string]int{"k": 1, "big": 0, "back": 4, "new": 4} {
			if got := admitted(key); got != want {
				t.Errorf("%s: %d pass without Redis, want %d", key, got, want)
			}
		}
		time.Sleep(2 * time.Second)
		if got := admitted("k"); got != 2 {
			t.Errorf("after 2 s a third of 3/s gives %d", got)
		}
	})
}

// TestFlappingHandsOutNoBursts: however often Redis goes and comes, one process alone admits its share of the capacity once and
// then its share of the rate.
func TestFlappingHandsOutNoBursts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		g := guard(t, f, GuardConfig{Instances: 3})
		p := named(t, "p", bucket)
		begin, local, stored := time.Now(), 0, 0
		for flap := range 40 {
			if flap%2 == 0 {
				f.set(refused, 0)
			} else {
				f.set(nil, 0)
			}
			for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
				switch d, _ := g.take(t, single(p, "k", 1)); {
				case d.Allowed && d.Source == limits.FromLocal:
					local++
				case d.Allowed:
					stored++
				}
			}
		}
		elapsed := time.Since(begin).Seconds()
		if most := 4 + int(elapsed) + 1; local > most {
			t.Errorf("%d were admitted here in %v s, want at most %d", local, elapsed, most)
		}
		if most := 12 + int(3*elapsed) + 1; stored > most {
			t.Errorf("%d were admitted by the store in %v s, want at most %d", stored, elapsed, most)
		}
		if local == 0 || stored == 0 {
			t.Errorf("%d local and %d stored: this tested nothing", local, stored)
		}
	})
}

func TestADecisionTakesNoLongerThanItsBudget(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t)
			f.deaf = deaf
			g := guard(t, f, GuardConfig{})
			p := named(t, "p", bucket)
			f.set(nil, time.Minute)
			for i := range failuresInARow + 3 {
				begin := time.Now()
				d, _ := g.take(t, single(p, "k", 1))
				took := time.Since(begin)
				if i < failuresInARow && (took < 45*time.Millisecond || took > 50*time.Millisecond) || i >= failuresInARow && took != 0 {
					t.Errorf("deaf %v, decision %d took %v", deaf, i, took)
				}
				if !d.Allowed || d.Source != limits.FromLocal {
					t.Errorf("deaf %v, decision %d: %+v", deaf, i, d)
				}
			}
			f.set(nil, 0)
			time.Sleep(2 * time.Minute) // what the deaf one has under way ends
		})
	}
}

func TestTheCallersContextDoesNotEndACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.set(nil, 20*time.Millisecond)
		g := guard(t, f, GuardConfig{})
		time.Sleep(time.Second)
		p := named(t, "p", bucket)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		d, err := g.Take(ctx, time.Time{}, single(p, "k", 1))
		if err != nil || !d.Allowed || d.Source != limits.FromRedis {
			t.Errorf("%+v, %v", d, err)
		}
		before := f.asked.Load()
		_, err = g.Take(ctx, time.Time{}, single(p, "k", 1))
		if kind, _ := KindOf(err); kind != Cancelled || !errors.Is(err, context.DeadlineExceeded) || f.asked.Load() != before {
			t.Errorf("a caller who has gone: %v", err)
		}
		if ctx := g.inTime(context.WithValue(context.Background(), p, 7)); ctx.Value(p) != 7 {
			t.Error("what the caller's context carries is lost")
		}
	})
}

func TestNothingPilesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.deaf = true
		g := guard(t, f, GuardConfig{MaxCalls: 30, OnFailure: limits.Open})
		p := named(t, "p", bucket)
		f.set(nil, 10*time.Second)
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				begin := time.Now()
				if d, _ := g.take(t, single(p, "k", 1)); !d.Allowed || time.Since(begin) > 50*time.Millisecond {
					t.Errorf("%v after %v", d.Allowed, time.Since(begin))
				}
			})
		}
		wg.Wait()
		time.Sleep(5 * time.Second) // the probes' calls hang too
		if most := f.most.Load(); most > 30+maxProbes {
			t.Errorf("%d calls were under way at once, want at most 30 and %d probes", most, maxProbes)
		}
		f.set(nil, 0)
		time.Sleep(20 * time.Second)
		if d, _ := g.take(t, single(p, "k", 1)); d.Source != limits.FromRedis || g.calls.Load() != 0 {
			t.Errorf("afterwards: %v, %d calls under way", d.Source, g.calls.Load())
		}
	})
}

func TestRedisDecidesAgainWithinASecondWithoutTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		var changes []Change
		g := guard(t, f, GuardConfig{OnChange: func(c Change) { changes = append(changes, c) }})
		p := named(t, "p", bucket)
		for range 20 {
			begin := time.Now()
			cut(t, f, g)
			down := g.Report()
			before := f.asked.Load()
			time.Sleep(10 * time.Second)
			probes := f.asked.Load() - before
			if probes < 20 || probes > 52 {
				t.Errorf("%d probes in 10 s", probes)
			}
			if d, _ := g.take(t, single(p, "k", 0)); d.Source != limits.FromLocal || f.asked.Load() != before+probes {
				t.Error("a store that is down is asked")
			}
			f.set(nil, 0)
			time.Sleep(600 * time.Millisecond)
			if d, _ := g.take(t, single(p, "k", 0)); d.Source != limits.FromRedis {
				t.Error("half a second after it answers the store does not decide")
			}
			if down.State != "down" || !down.Since.Equal(begin) || down.Error == "" || g.Report().State != "up" {
				t.Errorf("reports %+v, then %+v", down, g.Report())
			}
		}
		if len(changes) != 40 {
			t.Fatalf("%d changes were told, want 40", len(changes))
		}
		for i, c := range changes {
			if want := []State{Down, Up}[i%2]; c.State != want || (c.Err == nil) != (want == Up) {
				t.Errorf("change %d: %+v", i, c)
			}
		}
		if l := changes[1].Lasted; l < 10*time.Second || l > 10600*time.Millisecond {
			t.Errorf("the outage lasted %v", l)
		}
	})
}

func TestAStoreThatIsDownAtTheStartIsKnownWithoutTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.set(refused, 0)
		told := 0
		g := guard(t, f, GuardConfig{OnChange: func(c Change) { told++ }})
		if r := g.Report(); r.State != "down" || told != 1 {
			t.Errorf("%+v, told %d times", r, told)
		}
		f.set(&Error{Kind: Misconfigured, Op: "take", Err: errors.New("WRONGPASS")}, 0)
		f2 := newFake(t)
		f2.set(&Error{Kind: Misconfigured, Op: "take", Err: errors.New("WRONGPASS")}, 0)
		if r := guard(t, f2, GuardConfig{}).Report(); r.State != "faulty" {
			t.Errorf("%+v", r)
		}
	})
}

func TestTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b breaker
		for range 1000 { // every third fails: neither enough in a row nor enough of all
			b.success()
			b.success()
			if b.failure() {
				t.Fatal("opens below its share")
			}
			time.Sleep(time.Millisecond)
		}
		b.close()
		n := 0
		for !b.open() && n < 1000 {
			n++
			b.failure()
			b.success()
			time.Sleep(time.Millisecond)
		}
		if n != failureSample/2+1 {
			t.Errorf("every other call fails: opens after %d failures", n)
		}
		b.close()
		for range 100 { // rare failures, however many
			for range failuresInARow - 1 {
				if b.failure() {
					t.Fatal("opens before its row")
				}
			}
			b.success()
			time.Sleep(2 * time.Second)
		}
		for i := range failuresInARow {
			if opened := b.failure(); opened != (i == failuresInARow-1) {
				t.Errorf("failure %d: opened %v", i, opened)
			}
		}
		if b.failure() || b.trip() || !b.open() {
			t.Error("an open breaker opens")
		}
	})
}

func TestTroubleWithOneKeyIsNobodyElsesTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		var warned []string
		g := guard(t, f, GuardConfig{Warn: func(w string) { warned = append(warned, w) }})
		p := named(t, "p", bucket)
		f.set(&Error{Kind: Misconfigured, Op: "take", Err: &wrongValue{"spillway:{k}:p"}}, 0)
		for range 100 {
			if d, _ := g.take(t, single(p, "k", 0)); d.Source != limits.FromLocal {
				t.Fatalf("%+v", d)
			}
		}
		if g.breaker.open() || len(warned) != 1 {
			t.Errorf("open %v, warned %q", g.breaker.open(), warned)
		}
	})
}

func TestRefundsGoWhereTheChargeWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		g := guard(t, f, GuardConfig{Instances: 3})
		p := named(t, "p", bucket)
		window := named(t, "w", limits.FixedWindow{Quota: limits.PerHour(30)})
		stored, _ := g.take(t, single(p, "k", 12))
		cut(t, f, g)
		before := f.asked.Load()
		here, _ := g.take(t, []limits.Charge{{Policy: window, Key: "k", Cost: 10}, {Policy: p, Key: "other", Cost: 4}})
		if !here.Allowed {
			t.Fatalf("%+v", here)
		}
		if err := g.Refund(context.Background(), time.Time{}, here); err != nil {
			t.Fatal(err)
		}
		if d, _ := g.take(t, single(window, "k", 10)); !d.Allowed {
			t.Error("a local refund gave nothing back")
		}
		if err := g.Refund(context.Background(), time.Time{}, stored); err == nil || f.asked.Load() != before {
			t.Errorf("refund to a store that is down: %v", err)
		}
		f.set(nil, 0)
		time.Sleep(time.Second)
		if err := g.Refund(context.Background(), time.Time{}, stored); err != nil {
			t.Fatal(err)
		}
		if d, _ := g.take(t, single(p, "k", 12)); !d.Allowed || d.Source != limits.FromRedis {
			t.Error("a refund to the store gave nothing back")
		}
	})
}

func TestMalformedChargesReachNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		g := guard(t, f, GuardConfig{OnFailure: limits.Open})
		cut(t, f, g)
		for _, c := range [][]limits.Charge{single(nil, "k", 1), single(named(t, "p", bucket), "k", -1), single(&limits.Policy{}, "k", 1)} {
			if _, err := g.Take(context.Background(), time.Time{}, c); err == nil {
				t.Errorf("%v is allowed", c)
			} else if kind, _ := KindOf(err); kind != Malformed {
				t.Error(err)
			}
		}
	})
}

func TestCloseEndsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		g := guard(t, f, GuardConfig{})
		cut(t, f, g)
		if err := g.Close(); err != nil || !f.closed.Load() {
			t.Errorf("%v, inner closed %v", err, f.closed.Load())
		}
		if _, err := g.Take(context.Background(), time.Time{}, nil); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		// A bubble ends only when all its goroutines have.
	})
}

func TestGuardConfigIsChecked(t *testing.T) {
	f := newFake(t)
	for _, c := range []GuardConfig{
		{OnFailure: 9}, {Instances: -1}, {Instances: maxInstances + 1}, {Timeout: -1}, {MaxCalls: -1}, {MaxKeys: -1},
	} {
		if _, err := NewGuard(f, c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	if _, err := NewGuard(nil, GuardConfig{}); err == nil {
		t.Error("no store is accepted")
	}
}

func TestSharesAddUp(t *testing.T) {
	for _, r := range []limits.Rule{
		bucket, limits.LeakyBucket{Capacity: 7, Leak: limits.PerSecond(2)},
		limits.Delay{Rule: limits.LeakyBucket{Capacity: 100, Leak: limits.PerSecond(50)}},
		limits.FixedWindow{Quota: limits.PerMinute(100)}, limits.SlidingLog{Quota: limits.PerMinute(5)},
		limits.SlidingWindow{Quota: limits.PerSecond(1)}, limits.FixedWindow{},
		limits.Burst{Soft: limits.PerSecond(100), Hard: limits.PerSecond(200), Total: limits.PerMinute(5000)},
		limits.Burst{Soft: limits.PerSecond(2), Hard: limits.PerSecond(3)},
		limits.TokenBucket{Capacity: 999_983, Refill: limits.PerDay(999_983)},
		limits.InFlight{Max: 8},
	} {
		if r == (limits.FixedWindow{}) {
			r = limits.FixedWindow{Quota: limits.Rate{Amount: 0, Per: time.Second}}
		}
		whole, err := limits.NewPolicy("p", r)
		if err != nil {
			t.Errorf("%v: %v", r, err)
			continue
		}
		for _, n := range []int64{1, 2, 3, 7, 100, 1000} {
			p := divided(whole, n)
			if p == nil {
				t.Errorf("%v has no share for %d instances", r, n)
				continue
			}
			if q := p.Quota(); q > max(whole.Quota()/n, min(whole.Quota(), 1)) && q*int64(whole.Window()) > whole.Quota()*int64(p.Window())/n {
				t.Errorf("%v for %d instances: %v", r, n, p)
			}
			if p.Quota() == 0 && whole.Quota() > 0 {
				t.Errorf("%v for %d instances lets nothing through", r, n)
			}
			if rate, share := rateOf(r), rateOf(p.Rule()); share*float64(n) > rate*(1+1e-9) {
				t.Errorf("%v for %d instances: %v each", r, n, p)
			}
		}
	}
}

// rateOf is what a rule lets through in a second in the long run.
func rateOf(r limits.Rule) float64 {
	per := func(r limits.Rate) float64 { return float64(r.Amount) / r.Per.Seconds() }
	switch r := r.(type) {
	case limits.TokenBucket:
		return per(r.Refill)
	case limits.LeakyBucket:
		return per(r.Leak)
	case limits.Delay:
		return rateOf(r.Rule)
	case limits.FixedWindow:
		return per(r.Quota)
	case limits.SlidingLog:
		return per(r.Quota)
	case limits.SlidingWindow:
		return per(r.Quota)
	case limits.Burst:
		return per(r.Soft)
	}
	return 0
}

func TestInstancesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		there := map[string]time.Time{"a": time.Now().Add(time.Hour), "b": time.Now().Add(time.Hour)}
		f.beats = func(id string, lasts time.Duration) (int, error) {
			if lasts == 0 {
				delete(there, id)
			} else {
				there[id] = time.Now().Add(lasts)
			}
			return len(there), nil
		}
		g := guard(t, f, GuardConfig{Heartbeat: true, Instances: 5})
		if n := g.Report().Instances; n != 3 {
			t.Errorf("%d instances, want 3", n)
		}
		f.mu.Lock()
		delete(there, "a")
		f.mu.Unlock()
		time.Sleep(beatEvery)
		synctest.Wait()
		if n := g.Report().Instances; n != 2 {
			t.Errorf("%d instances, want 2", n)
		}
		f.mu.Lock()
		f.beats = nil
		f.mu.Unlock()
		time.Sleep(10 * beatEvery)
		if n := g.Report().Instances; n != 2 {
			t.Errorf("the last count is forgotten: %d", n)
		}
	})
}

func BenchmarkGuardWhileDown(b *testing.B) {
	m, err := limits.NewMemory(limits.MemoryConfig{})
	if err != nil {
		b.Fatal(err)
	}
	f := &fake{Memory: m}
	f.set(refused, 0)
	g, err := NewGuard(f, GuardConfig{Instances: 3})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	p, err := limits.NewPolicy("p", bucket)
	if err != nil {
		b.Fatal(err)
	}
	charges := single(p, "k", 1)
	for !g.breaker.open() {
		_, _ = g.Take(context.Background(), time.Time{}, charges)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Take(context.Background(), time.Time{}, charges); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleGuard() {
	// The store that the Guard wraps is usually made by New.
	inner, err := limits.NewMemory(limits.MemoryConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := NewGuard(inner, GuardConfig{Instances: 3, OnFailure: limits.Local})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	payments, err := limits.NewPolicy("payments", limits.TokenBucket{Capacity: 5, Refill: limits.PerSecond(1)}, limits.Strict())
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := store.Take(context.Background(), time.Now(), []limits.Charge{{Policy: payments, Key: "customer-42", Cost: 1}})
	fmt.Println(d.Allowed, err)
	// Output: true <nil>
}
