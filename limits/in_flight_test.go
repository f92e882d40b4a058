package limits

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestInFlightCountsUntilItIsRefunded(t *testing.T) {
	s := newSheet(t, 0)
	p := s.policy("p", InFlight{Max: 3})
	first, second := s.allowed(p, "k", 1), s.allowed(p, "k", 2)
	d := s.take(p, "k", 1)
	if v := d.At(0); d.Allowed || v.Reason != TooManyInFlight || v.RetryAfter != 0 || v.Remaining != 0 || v.NextAfter != 0 || v.ResetAfter != 0 {
		t.Errorf("with 3 of 3 in flight: %+v", *v)
	}
	s.allowed(p, "l", 3) // another key
	s.now = s.now.Add(24 * time.Hour)
	s.denied(p, "k", 1) // time gives nothing back
	s.refund(second)
	if v := s.verdict(p, "k", 0); v.Remaining != 2 {
		t.Errorf("%d remain of 3 with 1 in flight", v.Remaining)
	}
	s.refund(first)
	if v := s.verdict(p, "k", 4); v.Reason != CostTooLarge {
		t.Errorf("4 of 3: %v", v.Reason)
	}
	s.allowed(p, "k", 3)
	shut := s.policy("shut", InFlight{})
	if v := s.verdict(shut, "k", 1); v.Reason != CostTooLarge {
		t.Errorf("1 of 0: %v", v.Reason)
	}
}

func TestAChangedMaximumKeepsWhatIsInFlight(t *testing.T) {
	s := newSheet(t, 0)
	wide := s.policy("p", InFlight{Max: 5})
	var running []Decision
	for range 5 {
		running = append(running, s.allowed(wide, "k", 1))
	}
	tight := s.policy("p", InFlight{Max: 2})
	for i, d := range running {
		s.denied(tight, "k", 1)
		s.refund(d)
		if left := 4 - i; left < 2 {
			s.refund(s.allowed(tight, "k", 1))
			break
		}
	}
	// What another rule counts is not in flight, and what is in flight is used.
	bucket := s.policy("p", TokenBucket{Capacity: 10, Refill: PerHour(1)})
	if v := s.verdict(bucket, "k", 0); v.Remaining != 9 {
		t.Errorf("%d remain of 10 with 1 in flight", v.Remaining)
	}
	s.allowed(bucket, "l", 10)
	s.allowed(tight, "l", 2)
}

func TestKeysWithNothingInFlightAreForgotten(t *testing.T) {
	s := newSheet(t, 256)
	p := s.policy("p", InFlight{Max: 1})
	held := s.allowed(p, "held", 1)
	for i := range 1000 {
		s.refund(s.allowed(p, fmt.Sprint(i), 1))
		s.now = s.now.Add(time.Second)
	}
	if st := s.Stats(); st.Keys > 100 {
		t.Errorf("%d keys are kept with 1 in flight", st.Keys)
	}
	s.denied(p, "held", 1)
	s.refund(held)
	s.allowed(p, "held", 1)
}

// verdict returns the verdict of a take.
func (s *sheet) verdict(p *Policy, key string, cost int64) Verdict {
	s.Helper()
	d := s.take(p, key, cost)
	return *d.At(0)
}

// In a full table newcomers share a balance; whatever they share, all that is raised comes down again.
func TestWhatIsInFlightComesDownThoughTheTableIsFull(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m, err := NewMemory(MemoryConfig{MaxKeys: rapid.IntRange(1, 4).Draw(r, "max keys")})
		if err != nil {
			r.Fatal(err)
		}
		const most = 3
		p, err := NewPolicy("running", InFlight{Max: most})
		if err != nil {
			r.Fatal(err)
		}
		now := time.Unix(1_800_000_000, 0)
		var out []Decision
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(r, "seconds")) * time.Second)
			if n := len(out); n > 0 && rapid.Bool().Draw(r, "end") {
				i := rapid.IntRange(0, n-1).Draw(r, "which")
				if err := m.Refund(t.Context(), now, out[i]); err != nil {
					r.Fatal(err)
				}
				out = append(out[:i], out[i+1:]...)
				continue
			}
			key := fmt.Sprint("k", rapid.IntRange(0, 7).Draw(r, "key"))
			d, err := m.Take(t.Context(), now, []Charge{{Policy: p, Key: key, Cost: 1}})
			if err != nil {
				r.Fatal(err)
			}
			if d.Allowed {
				out = append(out, d)
			}
		}
		for _, d := range out {
			if err := m.Refund(t.Context(), now, d); err != nil {
				r.Fatal(err)
			}
		}
		for k := range 8 {
			d, err := m.Peek(t.Context(), now, []Charge{{Policy: p, Key: fmt.Sprint("k", k)}})
			if err != nil || d.At(0).Remaining != most {
				r.Fatalf("k%d: %d of %d are left when nothing is in flight, %v", k, d.At(0).Remaining, most, err)
			}
		}
	})
}
