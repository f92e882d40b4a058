package judge

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/scenarios"
)

func TestJainKnowsEqualSharesAndOneOfMany(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want float64
	}{{[]float64{3, 3, 3, 3}, 1}, {[]float64{1, 0, 0, 0, 0}, 0.2}, {[]float64{1, 1, 0, 0}, 0.5}, {[]float64{0, 0}, 1}} {
		if j := Jain(c.x); math.Abs(j-c.want) > 1e-12 {
			t.Errorf("Jain(%v) = %v, want %v", c.x, j, c.want)
		}
	}
}

func TestMaxMinFillsTheSmallFirst(t *testing.T) {
	got := MaxMin([]float64{.1, 2, .1}, 1)
	for i, want := range []float64{.1, .8, .1} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Fatalf("shares %v, want .1 .8 .1", got)
		}
	}
}

// TestMaxMinIsMaxMin: nobody gets more than it asks for, all is shared out or everybody is content, and who is not content
// has at least as much as anybody.
func TestMaxMinIsMaxMin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demands := rapid.SliceOfN(rapid.Float64Range(0, 10), 1, 20).Draw(t, "demands")
		capacity := rapid.Float64Range(0, 100).Draw(t, "capacity")
		shares := MaxMin(demands, capacity)
		sum, wanted := 0.0, 0.0
		for i := range shares {
			sum, wanted = sum+shares[i], wanted+demands[i]
			if shares[i] > demands[i]+1e-9 {
				t.Fatalf("%v of %v", shares[i], demands[i])
			}
			if shares[i] < demands[i]-1e-9 && shares[i] < slices.Max(shares)-1e-9 {
				t.Fatalf("share %v is not content and not the largest of %v", shares[i], shares)
			}
		}
		if math.Abs(sum-min(wanted, capacity)) > 1e-6 {
			t.Fatalf("shared out %v of %v for %v", sum, capacity, wanted)
		}
	})
}

// history makes a run of three phases of so many seconds each at C = 100/s; ok and p99 (ms) are of each second.
func history(asked, ok []int64, p99 []int64, seconds int) *measure.Run {
	r := &measure.Run{Scenario: "s", Arm: "spillway", Mode: "sim", Level: 1, Capacity: 100, Deadline: 100_000}
	for i, name := range []string{"before", "trigger", "after"} {
		ph := measure.Phase{Name: name, Start: measure.Micros(i*seconds) * 1e6, End: measure.Micros((i+1)*seconds) * 1e6, Trigger: i == 1}
		p := measure.Population{Name: "all", Weight: 1}
		for n := i * seconds; n < (i+1)*seconds; n++ {
			p.Asked, p.Attempts = p.Asked+asked[n], p.Attempts+asked[n]
			p.Counts[measure.OK] += ok[n]
			p.Counts[measure.Timeout] += asked[n] - ok[n]
			point := measure.Point{Asked: asked[n], P99: measure.Micros(p99[n] * 1000)}
			point.Counts[measure.OK] = ok[n]
			r.Series.Points = append(r.Series.Points, point)
		}
		ph.Populations = []measure.Population{p}
		r.Phases = append(r.Phases, ph)
	}
	r.Series.Window = 1e6
	return r
}

func same(n int, v int64) (list []int64) {
	for range n {
		list = append(list, v)
	}
	return list
}

func TestRecoveryIsTheFirstOfThreeGoodWindows(t *testing.T) {
	asked, p99 := same(30, 50), same(30, 20)
	ok := same(30, 50)
	c := &scenarios.Criterion{Metric: "recovery", Phase: "after"}
	for _, s := range []struct {
		what       string
		bad, slow  []int
		wantSecond float64
	}{
		{"at once", nil, nil, 0},
		{"two bad seconds", []int{20, 21}, nil, 2},
		{"a relapse", []int{20, 22}, nil, 3},
		{"slow for four", nil, []int{20, 21, 22, 23}, 4},
		{"never", []int{22, 24, 26, 28}, []int{20}, 10},
	} {
		ok, p99 := slices.Clone(ok), slices.Clone(p99)
		for _, n := range s.bad {
			ok[n] = 40
		}
		for _, n := range s.slow {
			p99[n] = 25
		}
		if v, err := Metric(history(asked, ok, p99, 10), c); err != nil || v != s.wantSecond {
			t.Errorf("%s: recovery %v (%v), want %v", s.what, v, err, s.wantSecond)
		}
	}
}

func TestGoodputDoesNotLetAQuietSecondPayForABusyOne(t *testing.T) {
	asked, ok := same(30, 50), same(30, 50)
	asked[0], ok[0] = 300, 100 // all that was possible
	asked[1], ok[1] = 300, 0
	r := history(asked, ok, same(30, 20), 10)
	if g := Goodput(r, measure.Pick{Phase: "before"}); math.Abs(g-500./600) > 1e-9 {
		t.Errorf("goodput %v, want 500 of 600 possible", g)
	}
	if g := Goodput(r, measure.Pick{Phase: "after"}); g != 1 {
		t.Errorf("goodput %v of a quiet phase", g)
	}
}

// bounded makes a criterion that goodput in the trigger is at least min.
func bounded(min float64, pending string) scenarios.Criterion {
	return scenarios.Criterion{Name: "row", Metric: "goodput", Arm: "spillway", Phase: "trigger", Min: &min, Pending: pending}
}

func TestStatusOfRows(t *testing.T) {
	asked, ok := same(30, 100), same(30, 80)
	good := history(asked, ok, same(30, 20), 10)
	invalid := history(asked, ok, same(30, 20), 10)
	invalid.Invalid = "late"
	partial := history(asked, ok, same(30, 20), 10)
	partial.Partial = true
	for _, c := range []struct {
		what string
		row  scenarios.Criterion
		runs []*measure.Run
		want Status
	}{
		{"within", bounded(.8, ""), []*measure.Run{good}, Pass},
		{"outside", bounded(.81, ""), []*measure.Run{good}, Fail},
		{"outside and pending", bounded(.81, "later"), []*measure.Run{good}, Pending},
		{"pending that passes is forgotten", bounded(.8, "later"), []*measure.Run{good}, Fail},
		{"invalid run", bounded(.8, ""), []*measure.Run{invalid}, Invalid},
		{"broken off", bounded(.8, ""), []*measure.Run{partial}, Invalid},
		{"not run", bounded(.8, ""), nil, Invalid},
	} {
		s := &scenarios.Scenario{ID: "s", Pass: []scenarios.Criterion{c.row}}
		if v := Judge(s, "sim", c.runs)[0]; v.Status != c.want {
			t.Errorf("%s: %s (%s), want %s", c.what, v.Status, v.Note, c.want)
		}
	}
}

// threeSeeds are runs of the same in which a tenth, nine tenths and more are answered in time.
func threeSeeds() (runs []*measure.Run) {
	for seed, ok := range []int64{10, 90, 95} {
		r := history(same(30, 100), same(30, ok), same(30, 20), 10)
		r.Seed = uint64(seed)
		runs = append(runs, r)
	}
	return runs
}

func TestOfSeveralSeedsTheMedianCounts(t *testing.T) {
	v := Judge(&scenarios.Scenario{ID: "s", Pass: []scenarios.Criterion{bounded(.9, "")}}, "sim", threeSeeds())[0]
	if v.Status != Pass || v.Value != .9 || v.Low != .1 || v.High != .95 || v.Seeds != 3 {
		t.Errorf("%+v", v)
	}
}

func TestWhereEverySeedCountsTheWorstDecides(t *testing.T) {
	runs := threeSeeds()
	c := bounded(.9, "")
	c.Every = true
	if v := Judge(&scenarios.Scenario{ID: "s", Pass: []scenarios.Criterion{c}}, "sim", runs)[0]; v.Status != Fail || v.Value != .1 {
		t.Errorf("%+v", v)
	}
}

func TestTheWorstLevelCounts(t *testing.T) {
	var runs []*measure.Run
	for level, ok := range map[float64]int64{1: 10, 2: 95, 3: 91} {
		r := history(same(30, 100), same(30, ok), same(30, 20), 10)
		r.Level = level
		runs = append(runs, r)
	}
	c := bounded(.9, "")
	c.From = 2
	if v := Judge(&scenarios.Scenario{ID: "s", Pass: []scenarios.Criterion{c}}, "sim", runs)[0]; v.Value != .91 {
		t.Errorf("%+v", v)
	}
}

func TestAnUnknownMetricIsNoVerdict(t *testing.T) {
	c := bounded(0, "")
	c.Metric = "goodness"
	r := history(same(30, 100), same(30, 100), same(30, 20), 10)
	if v := Judge(&scenarios.Scenario{ID: "s", Pass: []scenarios.Criterion{c}}, "sim", []*measure.Run{r})[0]; v.Status != Invalid {
		t.Errorf("%+v", v)
	}
}

func TestNumbersSurviveJSON(t *testing.T) {
	for _, n := range []Number{0, 0.125, 1e9, Number(math.Inf(1)), Number(math.Inf(-1))} {
		text, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		var back Number
		if err := json.Unmarshal(text, &back); err != nil || back != n {
			t.Errorf("%v became %s, then %v (%v)", n, text, back, err)
		}
	}
}
