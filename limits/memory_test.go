package limits

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

// sheet is a Memory under test with a time of its own.
type sheet struct {
	testing.TB
	*Memory
	now time.Time
}

func newSheet(t testing.TB, maxKeys int) *sheet {
	t.Helper()
	m, err := NewMemory(MemoryConfig{MaxKeys: maxKeys})
	if err != nil {
		t.Fatal(err)
	}
	return &sheet{t, m, time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}
}

func (s *sheet) policy(name string, r Rule) *Policy {
	s.Helper()
	p, err := NewPolicy(name, r)
	if err != nil {
		s.Fatal(err)
	}
	return p
}

func (s *sheet) take(p *Policy, key string, cost int64) Decision {
	s.Helper()
	d, err := s.Take(context.Background(), s.now, []Charge{{Policy: p, Key: key, Cost: cost}})
	if err != nil {
		s.Fatal(err)
	}
	return d
}

func (s *sheet) allowed(p *Policy, key string, cost int64) Decision {
	s.Helper()
	d := s.take(p, key, cost)
	if !d.Allowed {
		s.Errorf("%d for %q is refused: %+v", cost, key, *d.At(0))
	}
	return d
}

func (s *sheet) denied(p *Policy, key string, cost int64) {
	s.Helper()
	if s.take(p, key, cost).Allowed {
		s.Errorf("%d for %q is allowed", cost, key)
	}
}

func (s *sheet) refund(d Decision) {
	s.Helper()
	if err := s.Refund(context.Background(), s.now, d); err != nil {
		s.Fatal(err)
	}
}

func TestShardsAreVisitedOnceAndInOrder(t *testing.T) {
	for _, order := range [][]uint32{{0}, {3, 5}, {5, 3}, {2, 7, 2, 0, 7, 1}, {4, 4, 4}} {
		var probes []probe
		want := map[int]bool{}
		for _, s := range order {
			probes = append(probes, probe{shard: s})
			want[int(s)] = true
		}
		last, visited := -1, 0
		for s := nextShard(probes, -1); s >= 0; s = nextShard(probes, s) {
			if s <= last || !want[s] {
				t.Errorf("%v: %d after %d", order, s, last)
			}
			last = s
			visited++
		}
		if visited != len(want) {
			t.Errorf("%v: %d visited of %d", order, visited, len(want))
		}
	}
}

func TestTakeAllocatesNothingForUpToFourCharges(t *testing.T) {
	s := newSheet(t, 0)
	quick := s.policy("a", TokenBucket{Capacity: 1 << 40, Refill: PerSecond(1_000_000)})
	empty := s.policy("b", TokenBucket{Capacity: 1, Refill: PerDay(1)})
	turns := s.policy("c", Delay{Rule: LeakyBucket{Capacity: 1 << 40, Leak: PerSecond(1000)}})
	s.allowed(empty, "k", 1)
	window := s.policy("d", FixedWindow{PerSecond(1 << 40)})
	weighted := s.policy("e", SlidingWindow{PerSecond(1 << 30)})
	burst := s.policy("f", Burst{PerSecond(1 << 40), PerSecond(1 << 41), PerMinute(1 << 50)})
	log := s.policy("g", SlidingLog{PerMinute(1 << 20)})
	running := s.policy("h", InFlight{9})
	s.allowed(log, "k", 1)
	windows := []Charge{{Policy: window, Key: "k", Cost: 1}, {Policy: weighted, Key: "k", Cost: 1}, {Policy: burst, Key: "k", Cost: 1}, {Policy: log, Key: "k", Cost: 1}}
	four := []Charge{{Policy: quick, Key: "k", Cost: 1}, {Policy: quick, Key: "l", Cost: 1}, {Policy: turns, Key: "k", Cost: 1}, {Policy: quick, Key: "k", Cost: 1}}
	for name, charges := range map[string][]Charge{"one": four[:1], "three": four[:3], "four": four, "windows": windows, "in flight": {{Policy: running, Key: "k", Cost: 1}, {Policy: burst, Key: "l", Cost: 1, Shadow: true}}, "denied": {{Policy: quick, Key: "k", Cost: 1}, {Policy: empty, Key: "k", Cost: 1}}} {
		ctx, now := context.Background(), s.now
		if n := testing.AllocsPerRun(200, func() {
			d, err := s.Take(ctx, now, charges)
			if err != nil || d.Allowed == (name == "denied") {
				t.Fatalf("%s: %+v, %v", name, d, err)
			}
			if err := s.Refund(ctx, now, d); err != nil {
				t.Fatal(err)
			}
			if d.Binding() == nil {
				t.Fatal("no binding verdict")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// stepped returns t as time.Now would have returned it had the wall clock been set forward by d just before: another
// wall time, the same monotonic reading.
func stepped(t time.Time, d time.Duration) time.Time {
	if unsafe.Sizeof(t) != 16+unsafe.Sizeof(uintptr(0)) {
		panic("time.Time has changed")
	}
	wall := (*uint64)(unsafe.Pointer(&t))
	*wall += uint64(d/time.Second) << 30 // see the comment at time.Time
	return t
}

func TestStepsOfTheWallClockChangeNothing(t *testing.T) {
	s := newSheet(t, 0)
	p := s.policy("p", TokenBucket{Capacity: 5, Refill: PerMinute(1)})
	s.now = time.Now()
	s.allowed(p, "k", 5)
	for _, step := range []time.Duration{time.Hour, -time.Hour, 24 * time.Hour} {
		real := s.now
		s.now = stepped(real, step)
		if got := s.now.Round(0).Sub(real.Round(0)); got != step || s.now.Sub(real) != 0 {
			t.Fatalf("the wall clock stepped by %v and the monotonic one by %v", got, s.now.Sub(real))
		}
		d := s.take(p, "k", 1)
		if d.Allowed || d.At(0).RetryAfter != time.Minute {
			t.Errorf("after a step of %v: %+v", step, *d.At(0))
		}
		s.now = real
	}
	s.now = stepped(s.now.Add(time.Minute), -time.Hour)
	s.allowed(p, "k", 1)
}

func TestTimesFarAwayAreTimesToo(t *testing.T) {
	p := newSheet(t, 0).policy("p", TokenBucket{Capacity: 1, Refill: PerHour(1)})
	for _, now := range []time.Time{{}, time.Unix(0, 0), time.Unix(0, 1), time.Unix(1<<33, 0), time.Unix(1<<50, 0)} {
		s := newSheet(t, 0)
		s.now = now
		d := s.allowed(p, "k", 1)
		s.denied(p, "k", 1)
		s.refund(d)
		s.allowed(p, "k", 1)
	}
}

func TestOnePolicyInTwoStoresHasTwoBalances(t *testing.T) {
	a, b := newSheet(t, 0), newSheet(t, 0)
	p := a.policy("p", TokenBucket{Capacity: 1, Refill: PerHour(1)})
	for _, s := range []*sheet{a, b} {
		s.allowed(p, "k", 1)
	}
	for _, s := range []*sheet{a, b, a} {
		s.denied(p, "k", 1)
	}
}

func TestPoliciesMayBeLearntWhileOthersTake(t *testing.T) {
	s := newSheet(t, 0)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 100 {
				p, err := NewPolicy(fmt.Sprint("policy ", i%10), TokenBucket{Capacity: int64(1000 + i), Refill: PerHour(1)})
				if err != nil {
					t.Error(err)
					return
				}
				if d, err := s.Take(context.Background(), s.now, []Charge{{Policy: p, Key: "k", Cost: 1}}); err != nil || !d.Allowed {
					t.Errorf("goroutine %d: %+v, %v", g, d, err)
				}
			}
		})
	}
	all.Wait()
	for i := range 10 {
		p := s.policy(fmt.Sprint("policy ", i), TokenBucket{Capacity: 1000, Refill: PerHour(1)})
		if d := s.take(p, "k", 0); d.At(0).Remaining != 1000-80 {
			t.Errorf("%v: %d of 1000 remain after 80 charges", p, d.At(0).Remaining)
		}
	}
}

func TestManyStoresComeAndGoWithoutATrace(t *testing.T) {
	p := newSheet(t, 0).policy("p", TokenBucket{Capacity: 1, Refill: PerHour(1)})
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	goroutines, before := runtime.NumGoroutine(), heap()
	for range 20_000 {
		newSheet(t, 100).allowed(p, "k", 1)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines became %d", goroutines, n)
	}
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
}

func TestMemoryRefusesWhatItCannotDo(t *testing.T) {
	if _, err := NewMemory(MemoryConfig{MaxKeys: -1}); err == nil || !strings.Contains(err.Error(), "limits: MemoryConfig.MaxKeys -1 is negative; use 0 for 1048576") {
		t.Errorf("a negative bound: %v", err)
	}
	s := newSheet(t, 0)
	p := s.policy("p", TokenBucket{Capacity: 1, Refill: PerHour(1)})
	for want, c := range map[string]Charge{
		"limits: charge 1: there is no policy":                        {Key: "k", Cost: 1},
		"limits: charge 1: the policy is empty; build it":             {Policy: new(Policy), Cost: 1},
		`limits: charge 1: the cost -3 for policy "p" is negative; g`: {Policy: p, Key: "k", Cost: -3},
	} {
		if _, err := s.Take(context.Background(), s.now, []Charge{{Policy: p, Key: "k", Cost: 1}, c}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
	newer := s.policy("p", TokenBucket{Capacity: 2, Refill: PerHour(1)})
	if _, err := s.Take(context.Background(), s.now, []Charge{{Policy: p, Key: "k", Cost: 1}, {Policy: newer, Key: "l", Cost: 1}}); err == nil || !strings.Contains(err.Error(), `limits: charges 0 and 1: one Take cannot hold policy "p" with two different rules`) {
		t.Errorf("a rule and its successor in one Take: %v", err)
	}
	forged := Decision{Allowed: true}
	forged.Append(Verdict{Policy: p, Key: "k", Cost: -100})
	if err := s.Refund(context.Background(), s.now, forged); err == nil {
		t.Error("a decision with a negative cost is refunded")
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("gone"))
	if _, err := s.Peek(ctx, s.now, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("peek with a done context: %v", err)
	}
	d := s.allowed(p, "k", 1)
	if err := s.Refund(ctx, s.now, d); err != nil {
		t.Errorf("refund with a done context: %v", err)
	}
	s.allowed(p, "k", 1)
}

func TestTheZeroTimeIsTheStoresOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSheet(t, 0)
		p := s.policy("p", TokenBucket{Capacity: 2, Refill: PerMinute(1)})
		s.now = time.Now()
		s.allowed(p, "k", 2)
		s.now = time.Time{}
		if v := s.verdict(p, "k", 1); v.RetryAfter != time.Minute {
			t.Errorf("%+v, want a wait of a minute", v)
		}
		time.Sleep(time.Minute - time.Microsecond)
		s.denied(p, "k", 1)
		time.Sleep(time.Microsecond)
		d := s.allowed(p, "k", 1)
		s.refund(d)
		s.allowed(p, "k", 1)
		s.now = time.Now()
		s.denied(p, "k", 1)
	})
}

// What is usual has a way of its own, and that must not be seen.
func TestTheShortWaysDecideAsTheLongOne(t *testing.T) {
	rules := []Rule{
		TokenBucket{5, PerSecond(3)}, LeakyBucket{4, Rate{Amount: 7, Per: 11 * time.Second}}, TokenBucket{0, PerSecond(1)},
		Delay{Rule: LeakyBucket{3, PerSecond(2)}, MaxWait: time.Second}, Delay{Rule: TokenBucket{2, PerSecond(2)}, MaxWait: time.Second},
		TokenBucket{999_983, PerDay(999_983)}, FixedWindow{PerMinute(9)}, SlidingWindow{PerMinute(9)}, Burst{Soft: PerSecond(2), Hard: PerSecond(5)},
	}
	rapid.Check(t, func(rt *rapid.T) {
		short, long := newSheet(t, 0), newSheet(t, 0)
		long.Memory.begin = short.Memory.begin
		long.Memory.anchor = short.Memory.anchor
		now := short.now
		for range rapid.IntRange(1, 60).Draw(rt, "calls") {
			now = now.Add(time.Duration(rapid.Int64Range(-int64(100*time.Millisecond), int64(time.Second)).Draw(rt, "time")))
			var charges, same []Charge
			for range rapid.IntRange(1, 4).Draw(rt, "charges") {
				i := rapid.IntRange(0, len(rules)-1).Draw(rt, "rule")
				c := Charge{Key: rapid.SampledFrom([]string{"k", "l"}).Draw(rt, "key"), Cost: rapid.Int64Range(0, 4).Draw(rt, "cost")}
				c.Policy = short.policy(fmt.Sprint(i), rules[i])
				charges = append(charges, c)
				c.Policy = long.policy(fmt.Sprint(i), rules[i])
				same = append(same, c)
			}
			got, err := short.Take(context.Background(), now, charges)
			var want Decision
			if lost := long.decide(context.Background(), now, same, true, &want); err != nil || lost != nil {
				rt.Fatal(err, lost)
			}
			if got.Allowed != want.Allowed || got.Len() != want.Len() {
				rt.Fatalf("%+v\nwant %+v", got, want)
			}
			for i := range want.Len() {
				g, w := *got.At(i), *want.At(i)
				if g.Policy, w.Policy = nil, nil; g != w {
					rt.Fatalf("charge %d of %d: %+v\nwant %+v", i, len(charges), g, w)
				}
			}
		}
	})
}
