package health

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func TestASpanIsRatedWithTheTimeThatReallyPassed(t *testing.T) {
	for _, tc := range []struct {
		why         string
		dt, own     time.Duration
		cores, want float64
	}{
		{"on time", ms(250), ms(125), 1, 0.5},
		{"two cores", ms(250), ms(125), 2, 0.25},
		{"a fifth of a core, all of it used", ms(250), ms(50), 0.2, 1},
		{"the sampler starved for 2 s while we were half busy", ms(2000), ms(1000), 1, 0.5},
		{"idle is a measurement", ms(250), 0, 1, 0},
		{"a burst above the quota is not more than all", ms(250), ms(500), 1, 1},
	} {
		var m meter
		if _, err := m.next(counters{at: noon, own: time.Hour, cores: tc.cores}); !errors.Is(err, errNoNews) {
			t.Fatalf("%s: the first look is %v, want no news", tc.why, err)
		}
		s := must[span](t)(m.next(counters{at: noon.Add(tc.dt), own: time.Hour + tc.own, cores: tc.cores}))
		if got := s.utilisation(); !near(got, tc.want, 1e-9) || s.dt != tc.dt {
			t.Errorf("%s: %v over %v, want %v over %v", tc.why, got, s.dt, tc.want, tc.dt)
		}
	}
}

func TestSpansThatCanNotBeRatedAreDiscardedByReason(t *testing.T) {
	group := func(usage time.Duration, periods, throttled uint64) group {
		return group{name: "g", cores: 1, usage: usage, periods: periods, throttled: throttled, hasUsage: true, hasStat: true}
	}
	base := counters{at: noon, own: time.Hour, cores: 1, group: group(time.Hour, 100, 50)}
	for _, tc := range []struct {
		why  string
		next counters
		want Reason
	}{
		{"no time passed", counters{at: noon, own: time.Hour, cores: 1}, ClockStood},
		{"the clock went back", counters{at: noon.Add(-ms(250)), own: time.Hour, cores: 1}, ClockStood},
		{"within 10 ms", counters{at: noon.Add(ms(10)), own: time.Hour + ms(10), cores: 1}, TooSoon},
		{"our CPU time fell", counters{at: noon.Add(ms(250)), own: time.Minute, cores: 1}, CounterFell},
		{"the cgroup's CPU time fell", counters{at: noon.Add(ms(250)), own: time.Hour, cores: 1, group: group(0, 101, 50)}, CounterFell},
		{"its periods fell", counters{at: noon.Add(ms(250)), own: time.Hour, cores: 1, group: group(time.Hour, 3, 50)}, CounterFell},
		{"its throttled periods fell", counters{at: noon.Add(ms(250)), own: time.Hour, cores: 1, group: group(time.Hour, 101, 1)}, CounterFell},
	} {
		m := meter{last: base}
		if _, err := m.next(tc.next); err == nil || reasonOf(err) != tc.want {
			t.Errorf("%s: %v, want reason %q", tc.why, err, tc.want)
		}
	}
}

// Looks that come too soon must neither be answered with 0 or 100 % nor lose what happened.
func TestLooksWithinATickNeitherCountNorLoseAnything(t *testing.T) {
	var m meter
	m.next(counters{at: noon, cores: 1})
	for i := range 9 {
		at := noon.Add(ms(10 * (i + 1)))
		if s, err := m.next(counters{at: at, own: ms(5 * (i + 1)), cores: 1}); reasonOf(err) != TooSoon {
			t.Fatalf("after %v: %v, %v", at.Sub(noon), s, err)
		}
	}
	s := must[span](t)(m.next(counters{at: noon.Add(ms(100)), own: ms(50), cores: 1}))
	if got := s.utilisation(); !near(got, 0.5, 1e-9) {
		t.Errorf("over all ten looks: %v, want 0.5", got)
	}
}

// Totals are bounded from both sides: what spans rate is exactly what the counters say, whatever the looks in between.
func TestSpansAddUpToTheCounters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m meter
		c := counters{at: noon, cores: 1}
		m.next(c)
		var time1, own time.Duration
		for range rapid.IntRange(1, 50).Draw(t, "looks") {
			c.at = c.at.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "dt")))
			c.own += time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "own"))
			if s, err := m.next(c); err == nil {
				time1, own = time1+s.dt, own+s.own
			}
		}
		if rated := m.last.at.Sub(noon); time1 != rated || own != m.last.own {
			t.Fatalf("spans sum to %v of %v, counters to %v of %v", own, time1, m.last.own, rated)
		}
	})
}

func TestACgroupIsOursOnlyWhileWeMakeMostOfItsCPUTime(t *testing.T) {
	for _, tc := range []struct {
		why      string
		own, all []float64 // cores in each step of 250 ms
		want     []bool
	}{
		{"alone", []float64{1, 1, 0, 1}, []float64{1, 1, 0, 1}, []bool{true, true, true, true}},
		{"with a small sidecar", []float64{1, 1}, []float64{1.2, 1.2}, []bool{true, true}},
		{"beside a busy neighbour", []float64{0.1, 0.1}, []float64{1, 1}, []bool{false, false}},
		{"at just above a half it does not become ours", []float64{0.55, 0.55, 0.55}, []float64{1, 1, 1}, []bool{false, false, false}},
		{"at just above a half it stays ours", []float64{1, 0.55, 0.55}, []float64{1, 1, 1}, []bool{true, true, true}},
		{"a neighbour starts: left at once", []float64{1, 0.1, 0.1}, []float64{1, 1, 1}, []bool{true, false, false}},
		{"nothing ran", []float64{0, 0}, []float64{0, 0}, []bool{false, false}},
	} {
		var o ownership
		for i := range tc.own {
			got := o.add(time.Duration(tc.own[i]*float64(interval)), time.Duration(tc.all[i]*float64(interval)), interval)
			if got != tc.want[i] {
				t.Errorf("%s: step %d is ours: %v, want %v", tc.why, i, got, tc.want[i])
			}
		}
	}
	var o ownership // ours again once the neighbour is quiet for a while
	o.add(0, interval, interval)
	steps := 0
	for ; !o.add(interval, interval, interval); steps++ {
		if steps > 100 {
			t.Fatal("it never becomes ours again")
		}
	}
}

func TestAnotherGroupsCountersAreNotCompared(t *testing.T) {
	g := group{name: "old", cores: 1, usage: time.Hour, periods: 10, throttled: 10, hasUsage: true, hasStat: true, decides: true}
	var m meter
	m.next(counters{at: noon, own: 0, cores: 1, group: g})
	g.name, g.usage, g.periods = "new", 2*time.Hour, 1000
	s := must[span](t)(m.next(counters{at: noon.Add(interval), own: ms(25), cores: 1, group: g}))
	if s.sameGroup || s.ours || !near(s.utilisation(), 0.1, 1e-9) {
		t.Errorf("after a move: %+v reads %v, want our own 0.1", s, s.utilisation())
	}
}

func TestThrottlingIsTheShareOfPeriodsAndNoPeriodsAreNotZeroByZero(t *testing.T) {
	type step struct {
		periods, throttled uint64
		want               float64
		err                error
	}
	for _, tc := range []struct {
		why   string
		steps []step
	}{
		{"at the quota", []step{{50, 47, 0.94, nil}}},
		{"unthrottled", []step{{2, 0, 0, nil}}},
		{"a ratio above 1 is 1", []step{{2, 3, 1, nil}}},
		{"no period yet is no news", []step{{0, 0, 0, errNoNews}, {4, 1, 0.25, nil}}},
		{"between periods of a second the last ratio stands", []step{{1, 1, 1, nil}, {0, 0, 1, nil}, {0, 0, 1, nil}, {1, 0, 0, nil}}},
		{"two seconds without a period are two seconds without throttling", []step{{1, 1, 1, nil}, {0, 0, 1, nil}, {0, 0, 1, nil},
			{0, 0, 1, nil}, {0, 0, 1, nil}, {0, 0, 1, nil}, {0, 0, 1, nil}, {0, 0, 1, nil}, {0, 0, 0, nil}, {0, 0, 0, nil}}},
	} {
		a := &account{}
		th := &throttle{account: a}
		for i, st := range tc.steps {
			a.round = noon.Add(time.Duration(i) * interval)
			a.span = span{dt: interval, periods: st.periods, throttled: st.throttled, sameGroup: true, ours: true,
				now: counters{group: group{name: "g", hasUsage: true, hasStat: true}}}
			got, _, err := th.measure(a.round)
			if !errors.Is(err, st.err) || !near(got, st.want, 1e-9) {
				t.Errorf("%s: step %d reads %v, %v, want %v, %v", tc.why, i, got, err, st.want, st.err)
			}
		}
	}
}
