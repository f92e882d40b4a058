package limits

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"
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
	d, err := s.Take(context.Background(), s.now, []Charge{{p, key, cost}})
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

func TestAFullTableNeverForgetsALimitedKey(t *testing.T) {
	s := newSheet(t, 10)
	p := s.policy("p", TokenBucket{Capacity: 2, Refill: PerHour(1)})
	s.allowed(p, "limited", 2)
	for i := range 9 {
		s.allowed(p, fmt.Sprint("early ", i), 1)
	}
	s.allowed(p, "late 1", 1)
	s.allowed(p, "late 2", 1)
	s.denied(p, "late 3", 1) // newcomers share one balance
	for i := range 1000 {
		s.take(p, fmt.Sprint("flood ", i), 1)
	}
	s.denied(p, "limited", 1)
	s.allowed(p, "early 4", 1)
	s.denied(p, "early 4", 1)
	st := s.Stats()
	if st.Keys != 10 || st.MaxKeys != 10 || st.Dropped != 0 || st.Overflowed != 1003 {
		t.Errorf("%+v, want 10 of 10 keys, none dropped, 1003 charges to the shared balance", st)
	}
	q := s.policy("q", TokenBucket{Capacity: 1, Refill: PerHour(1)})
	s.allowed(q, "limited", 1) // each policy has a shared balance of its own
	s.denied(q, "late 1", 1)
}

// Who used the shared balance must not start with a full one as soon as there is room.
func TestANewcomerWithRoomStartsWhereTheSharedBalanceStands(t *testing.T) {
	s := newSheet(t, 1)
	quick := s.policy("quick", TokenBucket{Capacity: 1, Refill: PerSecond(1)})
	p := s.policy("p", TokenBucket{Capacity: 10, Refill: PerHour(1)})
	s.allowed(quick, "occupies the only place", 1)
	s.allowed(p, "newcomer", 7)
	s.now = s.now.Add(3 * time.Second) // the place becomes free
	s.denied(p, "newcomer", 4)
	d := s.allowed(p, "newcomer", 3)
	if st := s.Stats(); st.Keys != 1 || st.Overflowed != 1 || st.Dropped != 1 {
		t.Errorf("%+v, want one key of its own after one shared charge", st)
	}
	s.refund(d)
	s.allowed(p, "newcomer", 3)
}

func TestARefundReachesTheSharedBalanceItWasTakenFrom(t *testing.T) {
	s := newSheet(t, 1)
	p := s.policy("p", TokenBucket{Capacity: 10, Refill: PerHour(1)})
	own := s.allowed(p, "first", 10)
	shared := s.allowed(p, "second", 6)
	s.denied(p, "third", 5)
	s.refund(shared)
	s.allowed(p, "third", 10)
	s.refund(own)
	s.allowed(p, "first", 10)
	s.denied(p, "third", 1)
}

func TestNoIdleTimeShorterThanTheRefillFreesAKey(t *testing.T) {
	s := newSheet(t, 0)
	p := s.policy("p", TokenBucket{Capacity: 1, Refill: PerHour(1)})
	quick := s.policy("quick", TokenBucket{Capacity: 1000, Refill: PerSecond(1000)})
	s.allowed(p, "k", 1)
	for range 240 { // plenty of traffic, so that every slot is examined again and again
		s.now = s.now.Add(15 * time.Second)
		if s.now.Sub(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)) < time.Hour {
			s.denied(p, "k", 1)
		}
		for i := range 50 {
			s.allowed(quick, fmt.Sprint(i), 1)
		}
	}
	s.allowed(p, "k", 1)
}

func TestIdleKeysGoAFewPerCallAndMemoryFollows(t *testing.T) {
	const keys = 100_000
	s := newSheet(t, 0)
	p := s.policy("p", TokenBucket{Capacity: 1, Refill: PerSecond(1)})
	for i := range keys {
		s.allowed(p, fmt.Sprint(i), 1)
	}
	if st := s.Stats(); st.Keys != keys || st.Dropped != 0 {
		t.Fatalf("%+v after %d keys in one instant", st, keys)
	}
	s.now = s.now.Add(time.Minute)
	for i := range 3 * keys {
		if i%1000 == 0 {
			before := s.Stats().Dropped
			s.take(p, "watched", 0)
			if n := s.Stats().Dropped - before; n > examined {
				t.Fatalf("one call dropped %d keys", n)
			}
		}
		s.take(p, fmt.Sprint("new ", i), 1)
		s.now = s.now.Add(time.Millisecond)
	}
	slots := 0
	for i := range s.shards {
		slots += len(s.shards[i].table.slots)
	}
	// Each key is kept for its second and the grace: about 2000 are alive at 1000 new ones a second.
	if st := s.Stats(); st.Keys > 8000 || slots > 40_000 {
		t.Errorf("%d keys in %d slots remain of %d", st.Keys, slots, keys)
	}
}

// Dropping a balance must not let callers who read the clock before that see it full too early.
func TestADroppedBalanceCannotBeHadTwiceByAnOldNow(t *testing.T) {
	s := newSheet(t, 256) // one shard
	p := s.policy("p", TokenBucket{Capacity: 2, Refill: PerSecond(1000)})
	sweeper := s.policy("sweeper", TokenBucket{Capacity: 1 << 30, Refill: PerSecond(1)})
	begin, passed := s.now, 0
	for range 1000 {
		s.now = begin
		for s.take(p, "k", 1).Allowed {
			passed++
		}
		s.now = begin.Add(2 * time.Second) // long full
		for range smallest {
			s.allowed(sweeper, "k", 1)
		}
	}
	if s.Stats().Dropped == 0 {
		t.Fatal("nothing was dropped, so nothing is tested")
	}
	if most := 2 + 2000; passed > most {
		t.Errorf("%d passed in 2s, want at most %d", passed, most)
	}
}

func TestTakeAllocatesNothingForUpToFourCharges(t *testing.T) {
	s := newSheet(t, 0)
	quick := s.policy("a", TokenBucket{Capacity: 1 << 40, Refill: PerSecond(1_000_000)})
	empty := s.policy("b", TokenBucket{Capacity: 1, Refill: PerDay(1)})
	turns := s.policy("c", Delay{Rule: LeakyBucket{Capacity: 1 << 40, Leak: PerSecond(1000)}})
	s.allowed(empty, "k", 1)
	four := []Charge{{quick, "k", 1}, {quick, "l", 1}, {turns, "k", 1}, {quick, "k", 1}}
	for name, charges := range map[string][]Charge{"one": four[:1], "three": four[:3], "four": four, "denied": {{quick, "k", 1}, {empty, "k", 1}}} {
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
				if d, err := s.Take(context.Background(), s.now, []Charge{{p, "k", 1}}); err != nil || !d.Allowed {
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
	for range 5000 { // a goroutine or timer per store would be found by the race detector's limit on goroutines
		s := newSheet(t, 100)
		s.allowed(p, "k", 1)
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
		if _, err := s.Take(context.Background(), s.now, []Charge{{p, "k", 1}, c}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
	newer := s.policy("p", TokenBucket{Capacity: 2, Refill: PerHour(1)})
	if _, err := s.Take(context.Background(), s.now, []Charge{{p, "k", 1}, {newer, "l", 1}}); err == nil || !strings.Contains(err.Error(), `limits: charges 0 and 1: one Take cannot hold policy "p" with two different rules`) {
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

func TestTheBoundIsSplitWithoutLoss(t *testing.T) {
	for _, v := range []struct{ maxKeys, shards int }{
		{1, 1}, {10, 1}, {511, 1}, {512, 2}, {5000, 16}, {1 << 14, 64}, {1 << 20, 256}, {1 << 24, 4096},
	} {
		if got := shardsFor(v.maxKeys); got != v.shards {
			t.Errorf("%d keys are split into %d, want %d", v.maxKeys, got, v.shards)
		}
	}
	if got := newSheet(t, 5000).Stats().MaxKeys; got > 5000 || got < 4985 {
		t.Errorf("a bound of 5000 keys became %d", got)
	}
	if unsafe.Sizeof(uintptr(0)) != 8 {
		return // sizes are chosen for 64 bits
	}
	if got := unsafe.Sizeof(shard{}); got != 128 {
		t.Errorf("a shard has %d bytes, want 128", got)
	}
	if got := unsafe.Sizeof(slot{}); got != 48 {
		t.Errorf("a slot has %d bytes, want 48", got)
	}
}
