package health

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"syscall"
	"testing"
	"time"
)

// follow feeds a track one result every interval and returns it with the time of the last.
func follow(t *track, from time.Time, n int, value float64, err error) time.Time {
	for range n {
		from = from.Add(interval)
		t.add(from, value, interval, err)
	}
	return from
}

func TestASilentSignalHoldsThenLeavesThenReturns(t *testing.T) {
	tr := track{name: "x", thresholds: Thresholds{0, 1}}
	boom := errors.New("boom")
	now := follow(&tr, noon, 3, 0.8, nil)
	lastGood := now
	seen := []State{tr.state(now)}
	var when []time.Duration
	for now.Sub(lastGood) < 12*time.Second {
		now = follow(&tr, now, 1, 0, boom)
		if s := tr.state(now); s != seen[len(seen)-1] {
			seen, when = append(seen, s), append(when, now.Sub(lastGood))
		}
		if p := tr.pressure(); tr.state(now).Known() && !near(p, 0.8, 1e-12) {
			t.Fatalf("after %v of silence the pressure is %v", now.Sub(lastGood), p)
		}
	}
	if len(seen) != 3 || seen[1] != Stale || seen[2] != Failed || when[0] != 4*interval || when[1] != heldFor {
		t.Errorf("states %v at %v, want ok, stale after 1s, failed after 10s", seen, when)
	}
	now = follow(&tr, now, 2, 0.1, nil)
	if s := tr.state(now); s != Warming {
		t.Errorf("after two samples since the return it is %v, want warming", s)
	}
	now = follow(&tr, now, 1, 0.1, nil)
	r := tr.reading(now)
	if r.State != OK || !near(r.Value, 0.1, 1e-12) || r.Age != 0 || r.Error != "" {
		t.Errorf("after the return it reads %+v, want 0.1, ok", r)
	}
	if r.Discarded[Unreadable] != 48 || len(r.Discarded) != 1 {
		t.Errorf("discarded %v, want 48 unreadable", r.Discarded)
	}
	if r.Transitions != 5 { // ok, stale, failed, warming, ok
		t.Errorf("%d transitions, want 5", r.Transitions)
	}
}

func TestAShortSilenceCostsNothing(t *testing.T) {
	tr := track{thresholds: Thresholds{0, 1}}
	now := follow(&tr, noon, 3, 0.8, nil)
	now = follow(&tr, now, 3, 0, errors.New("boom"))
	if s := tr.state(now); s != OK {
		t.Errorf("a value three intervals old is %v, want ok", s)
	}
	if s := tr.state(now.Add(1)); s != Stale {
		t.Errorf("an older one is %v, want stale", s)
	}
	now = follow(&tr, now, 1, 0.8, nil)
	if r := tr.reading(now); r.State != OK || !near(r.Value, 0.8, 1e-12) || r.Transitions != 1 {
		t.Errorf("it reads %+v, want 0.8, ok, one transition", r)
	}
}

func TestASamplerThatStopsMakesReadersSeeItsAge(t *testing.T) {
	tr := track{thresholds: Thresholds{0, 1}}
	now := follow(&tr, noon, 3, 0.8, nil)
	for _, tc := range []struct {
		age  time.Duration
		want State
	}{{0, OK}, {freshFor, OK}, {freshFor + 1, Stale}, {heldFor - 1, Stale}, {heldFor, Failed}, {time.Hour, Failed}} {
		if got := tr.state(now.Add(tc.age)); got != tc.want {
			t.Errorf("at the age of %v it is %v, want %v", tc.age, got, tc.want)
		}
	}
}

func TestWhatIsNotANumberNeverReachesTheAverage(t *testing.T) {
	tr := track{thresholds: Thresholds{0, 1}}
	now := follow(&tr, noon, 3, 0.5, nil)
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		now = follow(&tr, now, 1, x, nil)
	}
	now = follow(&tr, now, 1, 0.5, nil)
	if r := tr.reading(now); !near(r.Value, 0.5, 1e-12) || r.State != OK || r.Discarded[NotANumber] != 3 {
		t.Errorf("it reads %+v, want 0.5, ok, 3 discarded", r)
	}
}

func TestAbsenceIsKnownFromFailure(t *testing.T) {
	missingFile := &fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}
	switchedOff := &fs.PathError{Op: "read", Path: "x", Err: syscall.EOPNOTSUPP}
	for _, tc := range []struct {
		why     string
		err     error
		at0     State // when it never worked
		working State // at the first error after it worked
	}{
		{"no such file", missingFile, Absent, OK},
		{"not supported", switchedOff, Absent, OK},
		{"known to be not there", errNoQuota, Absent, Absent},
		{"not readable", syscall.EACCES, Warming, OK},
		{"malformed", malformed("x"), Warming, OK},
	} {
		var fresh track
		now := follow(&fresh, noon, 1, 0, tc.err)
		if got := fresh.state(now); got != tc.at0 {
			t.Errorf("%s from the start is %v, want %v", tc.why, got, tc.at0)
		}
		if fresh.reading(now).Error == "" {
			t.Errorf("%s leaves no text", tc.why)
		}
		now = follow(&fresh, now, 60, 0, tc.err)
		if got, want := fresh.state(now), map[State]State{Absent: Absent, Warming: Failed}[tc.at0]; got != want {
			t.Errorf("%s for 15 s is %v, want %v", tc.why, got, want)
		}
		worked := track{thresholds: Thresholds{0, 1}}
		now = follow(&worked, noon, 3, 1, nil)
		now = follow(&worked, now, 1, 0, tc.err)
		if got := worked.state(now); got != tc.working {
			t.Errorf("%s after it worked is %v, want %v", tc.why, got, tc.working)
		}
	}
}

func TestNoNewsKeepsAValueFreshAndMakesNone(t *testing.T) {
	var tr track
	now := follow(&tr, noon, 100, 0, errNoNews)
	if r := tr.reading(now); r.Measured || r.State.Known() || r.Discarded != nil {
		t.Errorf("without any news it reads %+v", r)
	}
	tr = track{thresholds: Thresholds{0, 1}}
	now = follow(&tr, noon, 3, 0.5, nil)
	now = follow(&tr, now, 100, 0, errNoNews)
	if r := tr.reading(now); r.State != OK || !near(r.Value, 0.5, 1e-12) {
		t.Errorf("with a source that answers it reads %+v, want 0.5, ok", r)
	}
}

func TestStatesReadAsWords(t *testing.T) {
	for s, want := range map[State]string{Warming: "warming", OK: "ok", Stale: "stale", Absent: "absent", Failed: "failed", 99: "unknown"} {
		if text := must[[]byte](t)(s.MarshalText()); string(text) != want || s.String() != want {
			t.Errorf("%d reads %q", s, text)
		}
	}
}

func TestAReadingReadsAsWordsInJSON(t *testing.T) {
	st := Status{Pressure: 0.5, State: Stale, Signals: []Reading{{Signal: "cpu", Role: Primary, Counts: true, State: Stale, Measured: true, Value: 0.85,
		Pressure: 0.5, Age: 1200 * time.Millisecond, Source: "s", Error: "e", Discarded: map[Reason]uint64{TooSoon: 2}, Transitions: 3}}}
	const want = `{"pressure":0.5,"state":"stale","signals":[{"signal":"cpu","role":"primary","counts":true,"state":"stale","measured":true,"value":0.85,` +
		`"pressure":0.5,"source":"s","error":"e","discarded":{"too_soon":2},"transitions":3,"age":"1.2s"}]}`
	if got := must[[]byte](t)(json.Marshal(st)); string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
