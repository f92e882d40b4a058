package limits_test

import (
	"errors"
	"testing"

	"github.com/spillway-go/spillway/limits"
)

func TestStrictIsClosedWhateverElseIsSaid(t *testing.T) {
	rule := limits.FixedWindow{Quota: limits.PerMinute(10)}
	for _, c := range []struct {
		options []limits.Option
		want    limits.OnFailure
		word    string
	}{
		{nil, limits.AsTheStore, "default"},
		{[]limits.Option{limits.WhenStoreFails(limits.Local)}, limits.Local, "local"},
		{[]limits.Option{limits.WhenStoreFails(limits.Open)}, limits.Open, "open"},
		{[]limits.Option{limits.WhenStoreFails(limits.Closed)}, limits.Closed, "closed"},
		{[]limits.Option{limits.WhenStoreFails(limits.Open), limits.Strict()}, limits.Closed, "closed"},
		{[]limits.Option{limits.Strict(), limits.WhenStoreFails(limits.Open)}, limits.Closed, "closed"},
	} {
		p, err := limits.NewPolicy("p", rule, c.options...)
		if err != nil {
			t.Fatal(err)
		}
		if p.OnFailure() != c.want || p.OnFailure().String() != c.word {
			t.Errorf("%v, want %v", p.OnFailure(), c.want)
		}
	}
	if _, err := limits.NewPolicy("p", rule, limits.WhenStoreFails(99)); err == nil {
		t.Error("a choice that does not exist is accepted")
	}
}

func TestUnavailableErrorTellsWhoAndWhy(t *testing.T) {
	p, err := limits.NewPolicy("money", limits.FixedWindow{Quota: limits.PerMinute(10)})
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("i/o timeout")
	got := &limits.UnavailableError{Policy: p, Err: why}
	const want = "limits: policy money cannot be decided about now: i/o timeout"
	if got.Error() != want || !errors.Is(got, why) {
		t.Errorf("%v\nwant %v", got, want)
	}
}
