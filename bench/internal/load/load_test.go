package load

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/scenarios"
)

func parse(t testing.TB, text string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// constant is 100 requests per second for 10 s.
const constant = `
id: test
app: {slots: 1, service: 10ms}
deadline: 500ms
arrivals: constant
phases: [{name: load, for: 10s}]
populations: [{name: p, load: 1, timeout: 5s}]
`

// play runs the scenario against a handler, in virtual time.
func play(ctx context.Context, s *scenarios.Scenario, h http.Handler, inFlight int) *measure.Run {
	return Run(ctx, Config{
		Scenario: s, Level: 1, Seed: 1, Sender: Direct{h}, MaxInFlight: inFlight, Start: time.Now(),
		Recorder: &Recorder{Recorder: measure.NewRecorder(s, "none", "handler", 1, 1)},
	})
}

// TestAPauseOfTheServerShowsInTheLatencies is coordinated omission: a server that stands still for one second delays a
// hundred requests, and a generator that waited for it would show one.
func TestAPauseOfTheServerShowsInTheLatencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		pausing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if at := time.Since(start); at >= 4*time.Second && at < 5*time.Second {
				time.Sleep(5*time.Second - at)
			}
		})
		run := play(t.Context(), parse(t, constant), pausing, 0)
		late := run.Phases[0].Populations[0].Counts[measure.Late]
		s := run.Sum(measure.Pick{})
		if late < 45 || late > 55 { // those of the first half second wait longer than the deadline of 500 ms
			t.Errorf("%d late", late)
		}
		if p := s.Admitted.Quantile(.99); p < 850*time.Millisecond {
			t.Errorf("p99 %v hides the pause", p)
		}
		if run.Invalid != "" {
			t.Error(run.Invalid)
		}
	})
}

func TestAGeneratorThatCannotKeepUpSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) })
		run := play(t.Context(), parse(t, constant), slow, 10)
		if !strings.Contains(run.Invalid, "in flight") || run.Generator.Unsent == 0 {
			t.Errorf("invalid %q, unsent %d", run.Invalid, run.Generator.Unsent)
		}
		if run.Generator.Sent+run.Generator.Unsent != run.Generator.Asked {
			t.Errorf("%+v does not add up", run.Generator)
		}
		if s := run.Sum(measure.Pick{}); s.Asked < 990 {
			t.Errorf("asked %d: the load was silently closed", s.Asked)
		}
	})
}

func TestWorkersOfAPeakGoWithIt(t *testing.T) {
	s := parse(t, constant)
	synctest.Test(t, func(t *testing.T) {
		start, during, after := time.Now(), 0, 0
		h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			switch at := time.Since(start); {
			case at < 4*time.Second:
				time.Sleep(4*time.Second - at) // 400 are under way at the end
			case at > 9*time.Second:
				after = runtime.NumGoroutine()
			case at > 3900*time.Millisecond:
				during = max(during, runtime.NumGoroutine())
			}
		})
		before := runtime.NumGoroutine()
		if run := play(t.Context(), s, h, 0); run.Invalid != "" {
			t.Error(run.Invalid)
		}
		if after-before > 2*spareWorkers {
			t.Errorf("%d goroutines long after a peak of %d", after-before, during-before)
		}
	})
}

func TestOutcomesAreTold(t *testing.T) {
	s := parse(t, strings.Replace(constant, "timeout: 5s", "timeout: 800ms", 1))
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			switch n.Add(1) % 5 {
			case 0:
				w.WriteHeader(http.StatusServiceUnavailable)
			case 1:
				w.WriteHeader(http.StatusTooManyRequests)
			case 2:
				w.WriteHeader(http.StatusInternalServerError)
			case 3:
				time.Sleep(600 * time.Millisecond)
			case 4:
				time.Sleep(2 * time.Second)
			}
		})
		run := play(t.Context(), s, h, 0)
		p := run.Phases[0].Populations[0]
		fifth := p.Asked / 5
		for o, want := range map[measure.Outcome]int64{measure.Shed: 2 * fifth, measure.Failed: fifth, measure.Late: fifth, measure.Timeout: fifth} {
			if d := p.Counts[o] - want; d < -2 || d > 2 {
				t.Errorf("%v: %d, want %d", o, p.Counts[o], want)
			}
		}
		if max := p.Latency[measure.Timeout].Quantile(1); max > 802*time.Millisecond {
			t.Errorf("a timeout counts with %v", max)
		}
		if p.Reasons["429"] == 0 || p.Reasons["503"] == 0 || p.Reasons["status 500"] == 0 {
			t.Errorf("reasons %v", p.Reasons)
		}
		time.Sleep(time.Minute) // the handlers that went on
	})
}

func TestRetriesAreCountedApartAndEnd(t *testing.T) {
	s := parse(t, strings.Replace(constant, "timeout: 5s", "timeout: 5s, retry: {max: 2, policy: immediate}", 1))
	synctest.Test(t, func(t *testing.T) {
		refusing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
		sum := play(t.Context(), s, refusing, 0).Sum(measure.Pick{})
		if sum.Asked < 999 || sum.Attempts < 3*sum.Asked-3 || sum.Attempts > 3*sum.Asked {
			t.Errorf("%d attempts of %d requests, want three each", sum.Attempts, sum.Asked)
		}
	})
}

func TestRetryDelays(t *testing.T) {
	most := func(n int64) int64 { return n - 1 }
	backoff := &scenarios.Retry{Max: 3, Policy: "backoff"}
	for _, c := range []struct {
		r     *scenarios.Retry
		tries int
		after time.Duration
		want  time.Duration
		ok    bool
	}{
		{nil, 1, 0, 0, false},
		{&scenarios.Retry{Max: 1, Policy: "immediate"}, 1, time.Hour, 0, true},
		{&scenarios.Retry{Max: 1, Policy: "immediate"}, 2, 0, 0, false},
		{backoff, 1, 0, 100 * time.Millisecond, true},
		{backoff, 3, 0, 400 * time.Millisecond, true},
		{backoff, 3, 2 * time.Second, 2 * time.Second, true}, // as long as the answer asked for
		{backoff, 4, 0, 0, false},
	} {
		if d, ok := RetryDelay(c.r, c.tries, c.after, most); d != c.want || ok != c.ok {
			t.Errorf("%+v try %d: %v %v, want %v %v", c.r, c.tries, d, ok, c.want, c.ok)
		}
	}
}

func TestARunThatIsBrokenOffKeepsWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		stuck := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(4 * time.Second) })
		start := time.Now()
		run := play(ctx, parse(t, constant), stuck, 0)
		if took := time.Since(start); took > 3*time.Second+patience {
			t.Errorf("it took %v to end", took)
		}
		if s := run.Sum(measure.Pick{}); !run.Partial || s.Asked < 290 || s.Asked > 310 {
			t.Errorf("partial %v, asked %d", run.Partial, s.Asked)
		}
		time.Sleep(time.Minute) // the handlers that went on
	})
}

func TestATargetWhereEverythingFailsHasNoVerdict(t *testing.T) {
	s := parse(t, strings.Replace(constant, "10s", "1s", 1))
	h, err := NewHTTP("http://127.0.0.1:1", false, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	run := Run(t.Context(), Config{
		Scenario: s, Level: 1, Seed: 1, Sender: h, Start: time.Now(),
		Recorder: &Recorder{Recorder: measure.NewRecorder(s, "none", "remote", 1, 1)},
	})
	if !strings.Contains(run.Invalid, "no request was answered") {
		t.Errorf("invalid %q", run.Invalid)
	}
	if p := run.Phases[0].Populations[0]; p.Reasons["connection refused"] == 0 {
		t.Errorf("reasons %v", p.Reasons)
	}
}

func TestWhereNothingSucceedsTheWrongThingWasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := play(t.Context(), parse(t, constant), http.NotFoundHandler(), 0)
		if !strings.Contains(run.Invalid, "× status 404") {
			t.Errorf("invalid %q", run.Invalid)
		}
		refusing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
		if run := play(t.Context(), parse(t, constant), refusing, 0); run.Invalid != "" {
			t.Errorf("a server that refuses everything is a result, not %q", run.Invalid)
		}
	})
}

func TestOnlyThisMachineIsDialled(t *testing.T) {
	for _, c := range []struct {
		address string
		ok      bool
	}{{"127.0.0.1:80", true}, {"[::1]:80", true}, {"127.8.8.8:1", true}, {"192.0.2.1:80", false}, {"0.0.0.0:80", false}, {"[2001:db8::1]:80", false}, {"nonsense", false}} {
		if err := loopbackOnly("tcp", c.address, nil); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.address, err)
		}
	}
	h, err := NewHTTP("http://192.0.2.1:80", false, 1)
	if err != nil {
		t.Fatal(err)
	}
	if a := h.Send(t.Context(), &Shot{Method: "GET", Path: "/"}); !errors.Is(a.Err, ErrRemote) {
		t.Errorf("%v, want %v", a.Err, ErrRemote)
	}
	// A name that nobody knows is no other machine that is merely away.
	unknown, err := NewHTTP("http://nowhere.invalid", false, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer unknown.Close()
	if a := unknown.Send(t.Context(), &Shot{Method: "GET", Path: "/"}); !errors.Is(a.Err, ErrRemote) {
		t.Errorf("%v, want %v", a.Err, ErrRemote)
	}
	for _, bad := range []string{"", "localhost:80", "ftp://127.0.0.1", "http://", "http://[::1"} {
		if _, err := NewHTTP(bad, false, 1); err == nil {
			t.Errorf("target %q was taken", bad)
		}
	}
}

func TestAMixIsDrawnByWeight(t *testing.T) {
	p := &scenarios.Population{Requests: []scenarios.Request{{Path: "/a", Weight: 3}, {Path: "/b"}}}
	counts := make(map[string]int)
	for i := range 4096 {
		counts[choose(p, uint32(i)<<20).Path]++
	}
	if counts["/a"] != 3*counts["/b"] {
		t.Errorf("%v, want three to one", counts)
	}
	if choose(&scenarios.Population{}, 1) != nil {
		t.Error("a request out of nothing")
	}
}
