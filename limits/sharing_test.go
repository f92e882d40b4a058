package limits_test

import (
	"testing"

	"github.com/spillway-go/spillway/limits"
)

func TestWhatIsStrictIsSharedExactly(t *testing.T) {
	rule := limits.TokenBucket{Capacity: 10, Refill: limits.PerMinute(10)}
	for _, c := range []struct {
		options []limits.Option
		want    limits.Sharing
		word    string
	}{
		{nil, limits.SharedAsTheStore, "default"},
		{[]limits.Option{limits.Shared(limits.SharedExactly)}, limits.SharedExactly, "exact"},
		{[]limits.Option{limits.Shared(limits.SharedByLease)}, limits.SharedByLease, "lease"},
		{[]limits.Option{limits.Shared(limits.SharedAsync)}, limits.SharedAsync, "async"},
		{[]limits.Option{limits.Strict(), limits.Shared(limits.SharedAsync)}, limits.SharedExactly, "exact"},
		{[]limits.Option{limits.Strict()}, limits.SharedExactly, "exact"},
		{[]limits.Option{limits.Strict(), limits.Shared(limits.SharedByLease)}, limits.SharedExactly, "exact"},
	} {
		p, err := limits.NewPolicy("p", rule, c.options...)
		if err != nil {
			t.Fatal(err)
		}
		if p.Sharing() != c.want || p.Sharing().String() != c.word {
			t.Errorf("%v, want %v", p.Sharing(), c.want)
		}
	}
	if _, err := limits.NewPolicy("p", rule, limits.Shared(99)); err == nil {
		t.Error("a way of sharing that does not exist is accepted")
	}
}
