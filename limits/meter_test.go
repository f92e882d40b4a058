package limits

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyMeter draws a meter among all that can be built.
func anyMeter(t *rapid.T) *Meter {
	rate := Rate{
		Amount: rapid.Int64Range(1, 1_000_000_000).Draw(t, "amount"),
		Per:    time.Duration(rapid.Int64Range(1, 10*int64(Day/time.Millisecond)).Draw(t, "ms")) * time.Millisecond,
	}
	capacity := rapid.Int64Range(0, 1_000_000).Draw(t, "capacity")
	var wait *turns
	if rapid.Bool().Draw(t, "delayed") {
		wait = &turns{maxWait: time.Duration(rapid.Int64Range(0, int64(Day)).Draw(t, "wait")), queue: rapid.Bool().Draw(t, "queue")}
	}
	m, err := newMeter(capacity, rate, wait)
	if err != nil {
		t.Skip(err)
	}
	return m
}

// anyBalance draws a balance that m can have.
func (m *Meter) anyBalance(t *rapid.T) balance {
	since := rapid.Int64Range(0, 1<<50).Draw(t, "since") / m.tick * m.tick
	return balance{
		owed:  rapid.Int64Range(0, m.most).Draw(t, "owed"),
		since: since,
		last:  since + rapid.Int64Range(0, 1<<40).Draw(t, "spell")/m.tick*m.tick,
	}
}

func TestDrainingInStepsIsDrainingAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMeter(t)
		b := m.anyBalance(t)
		end := b.last + rapid.Int64Range(0, 1<<45).Draw(t, "for")
		want := m.drained(b, m.clock(b, end))
		for now := b.last; now < end; now += rapid.Int64Range(1, 1<<44).Draw(t, "step") {
			at := m.clock(b, now)
			b.owed, b.last = m.drained(b, at), at
		}
		if got := m.drained(b, m.clock(b, end)); got != want {
			t.Fatalf("%d owed after steps, %d at once", got, want)
		}
	})
}

// A reload may come at any time and be taken back: nobody gains by it.
func TestAChangedRuleKeepsWhatWasUsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		older, newer := &edition{math: anyMeter(t)}, &edition{math: anyMeter(t)}
		from, to := older.math.(*Meter), newer.math.(*Meter)
		b := from.anyBalance(t)
		used, _ := from.used(b, b.last)
		if b.owed > used*from.Unit || b.owed <= (used-1)*from.Unit {
			t.Fatalf("%d units of %d are %d used", b.owed, from.Unit, used)
		}
		c := newer.convert(b, older, b.last)
		if got, want := spent(to, c), min(used, ceilDiv(to.most, to.Unit)); got != want {
			t.Fatalf("%d were used, %d are after the change, want %d", used, got, want)
		}
		if c.last < b.last || c.last%to.tick != 0 || c.since > b.since || c.owed > to.most {
			t.Fatalf("%+v became %+v", b, c)
		}
		if again := older.convert(c, newer, c.last); spent(from, again) > from.most/from.Unit+1 {
			t.Fatalf("%+v became %+v and %+v", b, c, again)
		}
		if same := older.convert(b, older, b.last); same != b {
			t.Fatalf("%+v became %+v although nothing changed", b, same)
		}
	})
}

func TestNoNumberOverflows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMeter(t)
		b := m.anyBalance(t)
		now := rapid.OneOf(rapid.Int64Range(0, math.MaxInt64/1000), rapid.SampledFrom([]int64{0, 1, math.MaxInt64 / 1000})).Draw(t, "now")
		cost := rapid.OneOf(rapid.Int64Min(0), rapid.SampledFrom([]int64{m.Capacity, m.Capacity + 1, math.MaxInt64})).Draw(t, "cost")
		after, j := m.judge(b, now, cost, 0)
		o := m.look(b, now)
		back := m.refund(after, now, cost, after.last)
		for name, n := range map[string]int64{
			"owed": after.owed, "retry": int64(j.retryAfter), "delay": int64(j.delay), "remaining": o.remaining, "next": int64(o.nextAfter),
			"reset": int64(o.resetAfter), "owed after a refund": back.owed,
		} {
			if n < 0 {
				t.Fatalf("%s is %d", name, n)
			}
		}
		if j.reason == Allowed && after.owed > m.most {
			t.Fatalf("%d owed, above the most of %d", after.owed, m.most)
		}
		if o.remaining > m.quota() {
			t.Fatalf("%d remain of %d", o.remaining, m.quota())
		}
	})
}

func TestCapacityAndNumbersOfEverydayRulesFit(t *testing.T) {
	for _, r := range []Rule{
		TokenBucket{10_000_000_000, Rate{Amount: 10 << 30, Per: Day, Bytes: true}}, // 10 GB a day
		TokenBucket{1_000_000_000, PerSecond(1_000_000_000)},
		TokenBucket{100_000_000, PerDay(100_000_000)},
		TokenBucket{10_000, PerDay(10)},
		LeakyBucket{1 << 40, Rate{Amount: 1 << 20, Per: time.Second, Bytes: true}},
		Delay{LeakyBucket{1 << 30, Rate{Amount: 64 << 10, Per: time.Second, Bytes: true}}, time.Hour},
	} {
		if _, err := r.compile(); err != nil {
			t.Errorf("%v: %v", r, err)
		}
	}
}

// 2^24 a µs for 2^40 µs is 2^64, which in 64 bits is nothing.
func TestTwelveIdleDaysAtAHugeRateFillTheBucket(t *testing.T) {
	m, err := newMeter(10, PerSecond(1_000_000<<24), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := m.judge(balance{}, 0, 10, 0)
	if o := m.look(b, 1<<40); o.remaining != 10 || o.resetAfter != 0 {
		t.Errorf("%+v remain, want all 10", o)
	}
}

func spent(a arithmetic, b balance) int64 {
	used, _ := a.used(b, b.last)
	return used
}
