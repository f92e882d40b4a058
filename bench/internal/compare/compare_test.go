package compare

import (
	"math"
	"testing"

	"github.com/spillway-go/spillway/bench/internal/measure"
)

func TestMannWhitneyIsExact(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want float64
	}{
		// Of the C(8,4) = 70 orders 2 are as extreme as no overlap at all: the least with 4 a side that is below 5 %.
		{[]float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}, 2. / 70},
		{[]float64{5, 6, 7, 8}, []float64{1, 2, 3, 4}, 2. / 70},
		{[]float64{1, 2, 3}, []float64{4, 5, 6}, 2. / 20},
		{[]float64{1, 3}, []float64{2, 4}, 4. / 6},
		{[]float64{1, 1, 1, 1}, []float64{1, 1, 1, 1}, 1},
	} {
		if p := MannWhitney(c.x, c.y); math.Abs(p-c.want) > 1e-12 {
			t.Errorf("%v against %v: p = %v, want %v", c.x, c.y, p, c.want)
		}
	}
}

func TestAnIntervalNeedsSixRuns(t *testing.T) {
	five, six := Summarise([]float64{5, 1, 4, 2, 3}), Summarise([]float64{6, 5, 1, 4, 2, 3})
	if five.HasIntervals || five.Median != 3 {
		t.Errorf("five: %+v", five)
	}
	if !six.HasIntervals || six.Low != 1 || six.High != 6 || six.Median != 3.5 {
		t.Errorf("six: %+v", six)
	}
}

// runs makes one run for each goodput, in per mille of a thousand requests.
func runs(perMille ...int64) (all []*measure.Run) {
	for i, ok := range perMille {
		r := &measure.Run{
			Scenario: "s", Arm: "spillway", Mode: "sim", Level: 1, Seed: uint64(i), Capacity: 1000,
			Phases: []measure.Phase{{Name: "p", End: 1e6, Populations: []measure.Population{{Name: "all", Asked: 1000, Attempts: 1000}}}},
			Series: measure.Series{Window: 1e6, Points: []measure.Point{{Asked: 1000}}},
		}
		r.Phases[0].Populations[0].Counts[measure.OK], r.Series.Points[0].Counts[measure.OK] = ok, ok
		all = append(all, r)
	}
	return all
}

func TestVerdictsTellBetterFromWorseAndFromNoise(t *testing.T) {
	low, high := runs(901, 902, 903, 904, 905, 906), runs(951, 952, 953, 954, 955, 956)
	for _, c := range []struct {
		a, b []*measure.Run
		want string
	}{
		{low, high, "better"}, {high, low, "worse"}, {low, low, "~"}, {runs(1, 2, 3), runs(4, 5, 6), "not enough runs (4 a side at least)"},
	} {
		if rows := Rows(c.a, c.b); rows[0].Figure != "goodput" || rows[0].Verdict != c.want {
			t.Errorf("verdict %q, want %q", rows[0].Verdict, c.want)
		}
	}
}

func TestRunsWithoutAVerdictAreNotCompared(t *testing.T) {
	broken := runs(1, 2, 3, 4, 5, 6)
	for _, r := range broken[:3] {
		r.Invalid = "late"
	}
	broken[3].Partial = true
	if rows := Rows(runs(901, 902, 903, 904, 905, 906), broken); rows[0].B.N != 2 {
		t.Fatalf("%d runs of 2 were compared", rows[0].B.N)
	}
}
