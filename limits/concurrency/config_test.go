package concurrency

import (
	"strings"
	"testing"
)

func TestConfigResolvesToWhatItPromises(t *testing.T) {
	for _, row := range []struct {
		why                string
		cfg                Config
		low, high, initial int
	}{
		{"the zero value", Config{}, 4, 500, 20},
		{"an initial above max is moved", Config{Max: 10, Initial: 1000}, 4, 10, 10},
		{"an initial below min is moved", Config{Min: 50, Initial: 1}, 50, 500, 50},
		{"a max below the default min", Config{Max: 2}, 2, 2, 2},
		{"a fixed limit", Config{Algorithm: Fixed, Initial: 16}, 4, 500, 16},
		{"a small fixed limit needs no min", Config{Algorithm: Fixed, Initial: 2}, 2, 500, 2},
		{"a large fixed limit needs no max", Config{Algorithm: Fixed, Initial: 1000}, 4, 1000, 1000},
		{"a fixed limit within bounds that were set", Config{Algorithm: Fixed, Initial: 100, Max: 50}, 4, 50, 50},
		{"a fixed limit without a number", Config{Algorithm: Fixed}, 4, 500, 20},
	} {
		e, err := New(row.cfg)
		if err != nil {
			t.Errorf("%s: %v", row.why, err)
			continue
		}
		if low, high := e.Bounds(); low != row.low || high != row.high || e.Limit() != row.initial {
			t.Errorf("%s: %d in [%d, %d], want %d in [%d, %d]", row.why, e.Limit(), low, high, row.initial, row.low, row.high)
		}
	}
}

func TestABadConfigIsRefusedWithWhatIsWrongAndHowToMendIt(t *testing.T) {
	for _, row := range []struct {
		cfg  Config
		want string
	}{
		{Config{Algorithm: "gradiant2"}, `concurrency: unknown algorithm "gradiant2"; use one of knee, gradient2, vegas, aimd, fixed`},
		{Config{Min: -1}, `concurrency: min is -1; it must be at least 1, or 0 for the default of 4`},
		{Config{Max: -1}, `concurrency: max is -1; it must be at least 1, or 0 for the default of 500`},
		{Config{Initial: -1}, `concurrency: initial is -1; it must be at least 1, or 0 for the default of 20`},
		{Config{Min: 9, Max: 8}, `concurrency: min 9 is above max 8; lower min or raise max`},
		{Config{Min: 501}, `concurrency: min 501 is above max 500; lower min or raise max (which is 500 unless set)`},
	} {
		e, err := New(row.cfg)
		if err == nil || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("%+v: error %v, want %s", row.cfg, err, row.want)
		}
		if e != nil {
			t.Errorf("%+v: an estimator beside the error", row.cfg)
		}
	}
}

func TestTheDefaultIsTheFirstOfTheAlgorithms(t *testing.T) {
	if got := build(t, Config{}).Status().Algorithm; got != Knee || got != Algorithms()[0] {
		t.Errorf("%s by default, want %s, the first of %v", got, Knee, Algorithms())
	}
}
