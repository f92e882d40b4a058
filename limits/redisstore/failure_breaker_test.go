package redisstore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

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
