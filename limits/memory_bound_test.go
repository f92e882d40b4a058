package limits

import (
	"fmt"
	"testing"
	"time"
	"unsafe"
)

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

// The same for a rule that remembers single charges: a newcomer goes on with a past of its own.
func TestANewcomerWithRoomTakesItsOwnPastAlong(t *testing.T) {
	s := newSheet(t, 1)
	quick := s.policy("quick", TokenBucket{Capacity: 1, Refill: PerSecond(1)})
	p := s.policy("p", SlidingLog{PerHour(10)})
	s.allowed(quick, "occupies the only place", 1)
	shared := s.allowed(p, "newcomer", 3)
	s.now = s.now.Add(3 * time.Second) // the place becomes free
	s.allowed(p, "newcomer", 5)
	s.denied(p, "newcomer", 3)
	if v := s.verdict(p, "another", 0); v.Remaining != 7 {
		t.Errorf("%d remain of 10 for those who share 3", v.Remaining)
	}
	s.refund(shared)
	s.now = s.now.Add(time.Second)
	s.allowed(p, "another", 10)
	if v := s.verdict(p, "newcomer", 0); v.Remaining != 2 || v.NextAfter != time.Hour-4*time.Second {
		t.Errorf("%+v, want 2 of 10 and the first 3 back an hour after they were taken", v)
	}
}

func TestThePastsOfKeysThatWentAreUsedAgain(t *testing.T) {
	s := newSheet(t, 256) // one shard
	p := s.policy("p", SlidingLog{PerSecond(5)})
	for i := range 5000 {
		s.allowed(p, fmt.Sprint(i), 1)
		s.now = s.now.Add(100 * time.Millisecond)
	}
	if n := len(s.shards[0].pasts.list); n > 100 { // each is kept for its second and the grace
		t.Errorf("%d pasts are kept", n)
	}
	// Where the rule becomes one that needs none, it goes too.
	for i := range 50 {
		key := fmt.Sprint("changed ", i)
		s.allowed(s.policy("q", SlidingLog{PerDay(5)}), key, 1)
		s.allowed(s.policy("q", FixedWindow{PerDay(5)}), key, 1)
	}
	pasts := s.shards[0].pasts
	if used := len(pasts.list) - len(pasts.free); used > 40 {
		t.Errorf("%d pasts are in use", used)
	}
}

// What a rate has charged is not in flight, and giving it back ends nothing that is.
func TestARefundOfAnotherRulesChargeEndsNothingInFlight(t *testing.T) {
	s := newSheet(t, 0)
	d := s.allowed(s.policy("p", TokenBucket{Capacity: 5, Refill: PerHour(1)}), "k", 1)
	s.now = s.now.Add(time.Second)
	running := s.policy("p", InFlight{Max: 1})
	s.allowed(running, "k", 1)
	s.refund(d)
	s.denied(running, "k", 1)
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
	p := s.policy("p", TokenBucket{Capacity: 2, Refill: PerSecond(1)})
	busy := s.policy("busy", TokenBucket{Capacity: 1 << 30, Refill: PerSecond(1)})
	early, passed := s.now, 0
	late := early.Add(4 * time.Second) // full for two seconds
	for range 100 {
		s.now = early
		for s.take(p, "k", 1).Allowed {
			passed++
		}
		s.now = late
		for range smallest { // so that every slot is examined
			s.allowed(busy, "k", 1)
		}
	}
	if s.Stats().Dropped == 0 {
		t.Fatal("nothing was dropped, so nothing is tested")
	}
	if most := 2 + 4; passed > most {
		t.Errorf("%d passed in 4s, want at most %d", passed, most)
	}
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
	if got := unsafe.Sizeof(slot{}); got != 40 {
		t.Errorf("a slot has %d bytes, want 40", got)
	}
}
