package tour

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/spillway-go/spillway/examples/demo/internal/load"
)

// The exit codes.
const (
	exitPassed = 0
	exitFailed = 1
)

// A step whose load lags more than this is repeated, so often.
const (
	maxLag   = 25 * time.Millisecond
	attempts = 3
)

// Target is a running demo.
type Target struct {
	// Addr and Admin are the addresses of the two listeners, Token opens the second.
	Addr, Admin, Token string
}

// player plays the load of a step; load.Run does.
type player func(ctx context.Context, p load.Plan) (load.Report, error)

// tour is one tour under way.
type tour struct {
	Target
	out    io.Writer
	play   player
	client *http.Client

	step           int
	passed, failed int
}

// steps are the scenarios, in order.
var steps = []struct {
	name string
	play func(*tour, context.Context)
}{
	{"burst", (*tour).burst},
	{"steady", (*tour).steady},
	{"orders", (*tour).orders},
	{"overload", (*tour).overload},
	{"pumpkin", (*tour).pumpkin},
	{"admin", (*tour).admin},
}

// Run plays the named steps against target (burst, steady, orders, overload, pumpkin, admin; without a name, all), prints
// them, and returns the exit code: 0 if every check passed, else 1.
func Run(ctx context.Context, target Target, out io.Writer, names ...string) int {
	t := &tour{Target: target, out: out, play: load.Run, client: &http.Client{Timeout: 10 * time.Second}}
	defer t.client.CloseIdleConnections()
	fmt.Fprintln(out, "An app that can do exactly 800 requests per second, behind Spillway. What you should see:")
	for _, step := range steps {
		if len(names) > 0 && !slices.Contains(names, step.name) {
			continue
		}
		if ctx.Err() != nil {
			t.check("the tour goes on", "", errors.New("interrupted"))
			break
		}
		step.play(t, ctx)
	}
	fmt.Fprintf(out, "\ntour: %d passed, %d failed\n", t.passed, t.failed)
	if t.failed > 0 || t.passed == 0 {
		return exitFailed
	}
	return exitPassed
}

// title begins a step.
func (t *tour) title(format string, args ...any) {
	t.step++
	fmt.Fprintf(t.out, "\n%d. %s\n", t.step, fmt.Sprintf(format, args...))
}

// check prints one check: what was expected, and either what was seen or what is wrong.
func (t *tour) check(expected, seen string, err error) {
	if err != nil {
		t.failed++
		fmt.Fprintf(t.out, "   FAILED  %s: %v\n", expected, err)
		return
	}
	t.passed++
	if seen != "" {
		seen = " (" + seen + ")"
	}
	fmt.Fprintf(t.out, "   ok      %s%s\n", expected, seen)
}

// note prints what is good to know and no check.
func (t *tour) note(format string, args ...any) {
	fmt.Fprintf(t.out, "           %s\n", fmt.Sprintf(format, args...))
}

// load plays plans one after the other, with a pause in between, as clients of the same names, and returns their reports and
// the name of the first client. If one lagged, all are played again, with other clients, whose quota is full. The last
// attempt counts as it is: lag makes what is checked worse, never better.
func (t *tour) load(ctx context.Context, name string, between time.Duration, plans ...load.Plan) (reports []load.Report, client string, err error) {
	for attempt := 1; ; attempt++ {
		prefix := fmt.Sprintf("tour-%s-%d", name, attempt)
		reports = make([]load.Report, len(plans))
		var lag time.Duration
		for i, p := range plans {
			p.Addr, p.KeyPrefix = t.Addr, prefix
			if i > 0 {
				err = pause(ctx, between)
			}
			if err == nil {
				reports[i], err = t.play(ctx, p)
			}
			if err == nil && reports[i].Sent < p.Count {
				err = fmt.Errorf("only %d of %d requests were sent", reports[i].Sent, p.Count)
			}
			if err != nil {
				return reports, "", err
			}
			lag = max(lag, reports[i].Lag.P99)
		}
		switch lagged := lag.Round(time.Millisecond); {
		case lag <= maxLag:
			return reports, prefix + "-0", nil
		case attempt == attempts:
			t.note("this machine is busy: the load itself came up to %v late, so take the figures with care", lagged)
			return reports, prefix + "-0", nil
		default:
			t.note("the load itself came late (99 %% within %v), so this says nothing; once more", lagged)
		}
	}
}

// pause waits for d.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errors.New("interrupted")
	}
}
