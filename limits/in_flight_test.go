package limits

import (
	"fmt"
	"testing"
	"time"
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
