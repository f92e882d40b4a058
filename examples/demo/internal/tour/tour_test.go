package tour

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/examples/demo/internal/load"
)

// script plays reports with the given lags, one for each attempt, and notes whose quota they used.
type script struct {
	lags    []time.Duration
	clients []string
}

func (s *script) play(_ context.Context, p load.Plan) (load.Report, error) {
	lag := s.lags[min(len(s.clients), len(s.lags)-1)]
	s.clients = append(s.clients, p.KeyPrefix)
	return load.Report{Sent: p.Count, Lag: load.Quantiles{P99: lag}}, nil
}

func TestALoadThatCameLateIsRepeatedAtMostThreeTimesWithFreshClients(t *testing.T) {
	for name, c := range map[string]struct {
		lags  []time.Duration
		plays int
		says  string
	}{
		"in time":            {[]time.Duration{maxLag}, 1, ""},
		"late once":          {[]time.Duration{maxLag + 1, ms}, 2, "once more"},
		"late twice":         {[]time.Duration{time.Second, time.Second, ms}, 3, "once more"},
		"late all the time":  {[]time.Duration{time.Second}, attempts, "take the figures with care"},
		"late only the last": {[]time.Duration{30 * ms, 30 * ms, 30 * ms, ms}, attempts, "take the figures with care"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			s := &script{lags: c.lags}
			tr := &tour{out: &out, play: s.play}
			_, client, err := tr.load(t.Context(), "x", 0, load.Plan{Count: 1})
			if err != nil || len(s.clients) != c.plays || !strings.Contains(out.String(), c.says) {
				t.Errorf("%v after %d plays, want %d: %s", err, len(s.clients), c.plays, &out)
			}
			if slices.Sort(s.clients); len(slices.Compact(s.clients)) != c.plays {
				t.Errorf("clients %v were used twice", s.clients)
			}
			if want := s.clients[len(s.clients)-1] + "-0"; client != want {
				t.Errorf("the client is %q, want %q", client, want)
			}
			if tr.passed+tr.failed != 0 {
				t.Error("repeating counts as a check")
			}
		})
	}
}

func TestPlansOfOneStepAreOneClientWithAPauseBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{lags: []time.Duration{0}}
		tr := &tour{out: &strings.Builder{}, play: s.play}
		begin := time.Now()
		reports, _, err := tr.load(t.Context(), "x", 200*ms, load.Plan{Count: 1}, load.Plan{Count: 2})
		if err != nil || len(reports) != 2 || reports[1].Sent != 2 || s.clients[0] != s.clients[1] {
			t.Errorf("%v, %v from %v; want two reports of one client", reports, err, s.clients)
		}
		if took := time.Since(begin); took != 200*ms {
			t.Errorf("the pause took %v, want 200ms", took)
		}
	})
}

func TestALoadThatCannotBeMadeIsAFailureAndNoPass(t *testing.T) {
	for name, play := range map[string]player{
		"an error":     func(context.Context, load.Plan) (load.Report, error) { return load.Report{}, errors.New("no child") },
		"an early end": func(_ context.Context, p load.Plan) (load.Report, error) { return load.Report{Sent: p.Count - 1}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			for _, step := range steps[:4] { // those that make load
				tr := &tour{out: &strings.Builder{}, play: play}
				step.play(tr, t.Context())
				if tr.passed != 0 || tr.failed != 1 {
					t.Errorf("%s: %d passed, %d failed; want one failure", step.name, tr.passed, tr.failed)
				}
			}
		})
	}
}

func TestTheLastLineCountsChecksAndTheExitCodeTells(t *testing.T) {
	tr := &tour{out: &strings.Builder{}}
	tr.check("this holds", "and how", nil)
	tr.check("this does not", "", errors.New("because"))
	text := tr.out.(*strings.Builder).String()
	if !strings.Contains(text, "ok      this holds (and how)") || !strings.Contains(text, "FAILED  this does not: because") {
		t.Errorf("the lines are\n%s", text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	if code := Run(ctx, Target{}, &out); code != 1 || !strings.HasSuffix(out.String(), "\ntour: 0 passed, 1 failed\n") {
		t.Errorf("an interrupted tour: code %d\n%s", code, &out)
	}
	if code := Run(t.Context(), Target{}, &out, "no such step"); code != 1 {
		t.Errorf("a tour without a check: code %d, want 1", code)
	}
}

func TestATargetThatIsGoneFailsTheTour(t *testing.T) {
	var out strings.Builder
	if code := Run(t.Context(), Target{Addr: "127.0.0.1:1", Admin: "127.0.0.1:1"}, &out, "pumpkin", "admin"); code != 1 || !strings.Contains(out.String(), "tour: 0 passed") {
		t.Errorf("code %d\n%s", code, &out)
	}
}
