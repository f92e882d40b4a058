package bars

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/internal/sim"
)

// TestTheBarsAreReached plays what is quick, with one seed. The whole is bench bars.
func TestTheBarsAreReached(t *testing.T) {
	played := 0
	for _, c := range Cases(false) {
		if !strings.Contains(c.Name, "on 16 slots, fixed") {
			continue
		}
		played++
		results, err := c.Play(context.Background(), 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if !r.Reached {
				t.Errorf("%s: %s is %v", r.Case, r.Bar, r.Median)
			}
		}
	}
	if played < 8 {
		t.Errorf("%d cases", played)
	}
}

// TestTheBarsCanFail is the control: without anything in front of the app none of the figures about overload is reached, and a
// limit that knows of no change falls below the others.
func TestTheBarsCanFail(t *testing.T) {
	for _, c := range Cases(false) {
		if !strings.Contains(c.Name, "on 16 slots, fixed") || strings.HasPrefix(c.Name, "0.") {
			continue
		}
		run, err := sim.Run(context.Background(), sim.Config{Scenario: c.Scenario, Arm: "none", Level: 1, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range c.Bars {
			if v := b.figure(run); b.Reached(v) {
				t.Errorf("%s: %s is %v without protection, and that is enough", c.Name, b.Name, v)
			}
		}
	}
}

func TestABarIsAnUpperOrALowerBound(t *testing.T) {
	for _, c := range []struct {
		bar  Bar
		v    float64
		want bool
	}{
		{Bar{Min: 0.9}, 0.9, true}, {Bar{Min: 0.9}, 0.89, false}, {Bar{Min: 0.9}, 7, true},
		{Bar{Max: 1}, 1, true}, {Bar{Max: 1}, 1.1, false}, {Bar{}, 0, true}, {Bar{}, 0.1, false},
	} {
		if got := c.bar.Reached(c.v); got != c.want {
			t.Errorf("%+v: %v reached %v", c.bar, c.v, got)
		}
	}
}

// seconds is a run with so many asked and ok in each tenth of a second.
func seconds(tenths ...[2]int32) *measure.Run {
	r := &measure.Run{Capacity: 100, Fine: measure.Fine{Window: measure.InMicros(100 * time.Millisecond)}}
	for _, n := range tenths {
		r.Fine.Asked, r.Fine.OK = append(r.Fine.Asked, n[0]), append(r.Fine.OK, n[1])
	}
	return r
}

func TestFiguresAreWhatTheySay(t *testing.T) {
	var tenths [][2]int32
	for i := range 40 {
		ok := int32(20)
		if i < 13 {
			ok = 5
		}
		tenths = append(tenths, [2]int32{20, ok})
	}
	r := seconds(tenths...)
	if got := share(0, time.Second, 1)(r); got != 0.5 {
		t.Errorf("50 of 100 possible, of 200 asked: %v", got)
	}
	if got := share(0, time.Second, 0.3)(r); got != 5./3 {
		t.Errorf("50 of 30 possible: %v", got)
	}
	if got := recovered(time.Second, 0.99)(r); got < 0.299 || got > 0.301 {
		t.Errorf("good from 1.3 s on, so 0.3 s after the first: %v", got)
	}
	day := &measure.Run{Phases: []measure.Phase{{Name: "load", End: measure.InMicros(48 * time.Second)}}, Series: measure.Series{Window: measure.InMicros(time.Second)}}
	for i := range 48 {
		day.Series.Points = append(day.Series.Points, measure.Point{Limit: 1 + i, MeanLimit: float64(20 + 2*(i/24))})
	}
	if got := drift(day); got < 0.0999 || got > 0.1001 {
		t.Errorf("from 20 to 22: %v", got)
	}
	if judge.Goodput(day, measure.Pick{Phase: "load"}) != 1 {
		t.Error("nothing asked, nothing missed")
	}
}
