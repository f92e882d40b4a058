package limits

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// All logs together are bounded, whatever the keys and the quota, and forgetting keys gives all of it back.
func TestLogsHaveABoundTogether(t *testing.T) {
	const keys, quota, entries = 200, 1000, 2000
	s := newSheet(t, 256) // one shard
	s.entries = entries
	s.room.Store(entries)
	p := s.policy("p", SlidingLog{Rate{Amount: quota, Per: time.Minute}})
	for range quota / 10 {
		for i := range keys {
			s.allowed(p, fmt.Sprint(i), 10)
			s.now = s.now.Add(time.Microsecond)
		}
		if st := s.Stats(); st.MaxEntries != entries || st.Entries > entries+keys*smallestRing {
			t.Fatalf("%+v: want at most %d entries, and %d for each key", st, entries, smallestRing)
		}
	}
	for i := range keys {
		s.denied(p, fmt.Sprint(i), 1)
	}
	var last []Decision
	for range 4 {
		s.now = s.now.Add(time.Minute)
		for range 20 {
			s.now = s.now.Add(time.Microsecond)
			last = append(last, s.allowed(p, "refunded", 1))
		}
		for _, d := range last {
			s.refund(d)
		}
		last = nil
	}
	held := 0
	for _, p := range s.shards[0].pasts.list {
		if p != nil { // its place is free
			held += len(p.ring)
		}
	}
	if st := s.Stats(); st.Entries != held {
		t.Errorf("%d entries are counted, %d are there", st.Entries, held)
	}
	s.now = s.now.Add(time.Hour)
	other := s.policy("other", TokenBucket{Capacity: 10 * quota, Refill: PerHour(1)})
	for range 2 * 256 * longestPause {
		s.take(other, "k", 1)
	}
	if st := s.Stats(); st.Entries != 0 {
		t.Errorf("%+v: want no entries once all keys were dropped", st)
	}
}

// A log without room promises less than one with room, but what it promises is true, and it never allows more than the quota.
func TestALogWithoutRoomIsStricterAndTellsTheTruth(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newSheet(t, 16)
		s.entries = 0
		s.room.Store(0)
		rule := Rule(SlidingLog{Rate{Amount: rapid.Int64Range(1, 60).Draw(rt, "quota"), Per: time.Second}})
		quota, window := rule.(SlidingLog).Quota.Amount, time.Second
		if rapid.Bool().Draw(rt, "burst") {
			rule = Burst{Soft: Rate{Amount: quota, Per: 100 * time.Millisecond}, Hard: Rate{Amount: quota, Per: 100 * time.Millisecond}, Total: Rate{Amount: quota, Per: time.Second}}
			window -= 100 * time.Millisecond
		}
		p := s.policy("p", rule)
		type admitted struct {
			at   time.Time
			cost int64
		}
		var passed []admitted
		for range rapid.IntRange(1, 200).Draw(rt, "steps") {
			s.now = s.now.Add(time.Duration(rapid.IntRange(0, 100_000).Draw(rt, "µs")) * time.Microsecond)
			cost := rapid.Int64Range(1, max(quota/4, 1)).Draw(rt, "cost")
			v := s.verdict(p, "k", cost)
			if v.Reason == OverLimit {
				s.now = s.now.Add(v.RetryAfter)
				if v = s.verdict(p, "k", cost); v.Reason != Allowed {
					rt.Fatalf("refused again after RetryAfter: %+v", v)
				}
			}
			passed = append(passed, admitted{s.now, cost})
			sum := int64(0)
			for _, a := range passed {
				if s.now.Sub(a.at) < window {
					sum += a.cost
				}
			}
			if sum > quota {
				rt.Fatalf("%d of %d passed within %v", sum, quota, window)
			}
			if v.NextAfter > 0 {
				later := s.now.Add(v.NextAfter)
				d, err := s.Peek(context.Background(), later, []Charge{{Policy: p, Key: "k"}})
				if err != nil || d.At(0).Remaining <= v.Remaining {
					rt.Fatalf("%d remain after NextAfter of %+v", d.At(0).Remaining, v)
				}
				d, err = s.Peek(context.Background(), s.now.Add(v.ResetAfter), []Charge{{Policy: p, Key: "k"}})
				if err != nil || d.At(0).Remaining != quota {
					rt.Fatalf("%d remain after ResetAfter of %+v", d.At(0).Remaining, v)
				}
			}
			if n := s.Stats().Entries; n > smallestRing {
				rt.Fatalf("%d entries without room", n)
			}
		}
	})
}
