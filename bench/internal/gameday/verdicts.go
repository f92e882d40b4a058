package gameday

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/bench/internal/judge"
)

// Check is one verdict of an act.
type Check struct {
	What, Measured, Bound string
	Status                judge.Status
	// Timed says that a late machine can be why it failed.
	Timed bool
	Note  string
}

// expects takes a verdict by counting: it holds on any machine.
func (s *scene) expects(what string, holds bool, measured, bound string, args ...any) {
	s.check(Check{What: what, Measured: measured, Bound: fmt.Sprintf(bound, args...)}, holds)
}

// hopes takes a verdict that a late machine can spoil.
func (s *scene) hopes(what string, holds bool, measured, bound string, args ...any) {
	s.check(Check{What: what, Measured: measured, Bound: fmt.Sprintf(bound, args...), Timed: true}, holds)
}

func (s *scene) check(c Check, holds bool) {
	c.Status = judge.Pass
	if !holds {
		c.Status = judge.Fail
	}
	s.checks = append(s.checks, c)
}

// of returns the attempts of some groups, all when none is named.
func (s *scene) of(groups ...string) (some []shot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.shots {
		if len(groups) == 0 || slices.Contains(groups, one.group) {
			some = append(some, one)
		}
	}
	return some
}

// since returns the attempts of some groups that were due from a moment on.
func (s *scene) since(from time.Time, groups ...string) []shot {
	return slices.DeleteFunc(s.of(groups...), func(one shot) bool { return one.at.Before(from) })
}

// asPromised takes the verdicts that acts have in common: each of the groups was served, the paying ones without delay, and whoever was
// refused was told so properly.
func (s *scene) asPromised(groups ...string) {
	s.served(.99, groups...)
	s.p99("paying", deadline)
	s.told()
}

// served asks, for each of the groups, that at least a share of what it wanted was answered in time.
func (s *scene) served(share float64, groups ...string) {
	s.servedSince(time.Time{}, "", share, groups...)
}

// servedSince is served for what was due from a moment on; when says in words what was then.
func (s *scene) servedSince(from time.Time, when string, share float64, groups ...string) {
	for _, group := range groups {
		shots := s.since(from, group)
		n, all := tally(shots)
		s.hopes(strings.TrimSpace(group+" clients served in time "+when), all > 0 && float64(n) >= share*float64(all),
			fmt.Sprintf("%d of %d%s", n, all, worst(shots)), "≥ %.4g %% within %v", share*100, deadline)
	}
}

// tally is how many were served in time, of how many calls that were made.
func tally(shots []shot) (served, asked int) {
	for i := range shots {
		if one := &shots[i]; one.status != notCalled {
			asked++
			if one.ok() {
				served++
			}
		}
	}
	return served, asked
}

// worst says what became of those that were not served, by number.
func worst(shots []shot) string {
	why := map[string]int{}
	for _, one := range shots {
		switch {
		case one.ok() || one.status == notCalled:
		case one.answered():
			why["late"]++
		case one.status == 0:
			why["no answer"]++
		default:
			why[strings.TrimSpace(fmt.Sprintf("%d %s", one.status, one.reason))]++
		}
	}
	if len(why) == 0 {
		return ""
	}
	var all []string
	for text, n := range why {
		all = append(all, fmt.Sprintf("%s: %d", text, n))
	}
	slices.Sort(all)
	return " (" + strings.Join(all, ", ") + ")"
}

// p99 asks for the latency of those of a group who were served.
func (s *scene) p99(group string, bound time.Duration) {
	var all []time.Duration
	for _, one := range s.of(group) {
		if one.answered() {
			all = append(all, one.took)
		}
	}
	p := quantile(all, .99)
	s.hopes("p99 of "+group+" clients", len(all) > 0 && p <= bound, p.Round(time.Millisecond).String(), "≤ %v", bound)
}

// quantile is the smallest value that at least the share q does not exceed; 0 of nothing.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, max(0, int(float64(len(sorted))*q+.999999)-1))]
}

// told asks that whoever was not served was told so properly: 429 or 503 with a reason and a Retry-After of at least a second.
// Those who had no answer in time are counted by served.
func (s *scene) told(groups ...string) {
	refused, wrong := 0, map[string]int{}
	for _, one := range s.of(groups...) {
		switch {
		case one.refused() && one.after >= 1 && one.reason != "":
			refused++
		case one.refused():
			wrong[fmt.Sprintf("%d %s without Retry-After or reason", one.status, one.reason)]++
		case one.status >= 400 && one.reason != "":
			wrong[fmt.Sprintf("%d %s", one.status, one.reason)]++
		}
	}
	text := fmt.Sprintf("%d refusals", refused)
	for why, n := range wrong {
		text += fmt.Sprintf("; %d × %s", n, why)
	}
	s.expects("refusals say when to come back", len(wrong) == 0, text, "429 or 503, a reason, Retry-After ≥ 1")
}

// some asks that somebody of the groups was refused in these words, with a time to come back.
func (s *scene) some(what string, status int, reason string, groups ...string) {
	n := 0
	for _, one := range s.of(groups...) {
		if one.says(status, reason) && one.after >= 1 {
			n++
		}
	}
	s.expects(what, n > 0, fmt.Sprintf("%d × %d %s, with Retry-After", n, status, reason), "> 0")
}

// Everything has to be as before at most recovery after an end of trouble: calm begins, a time in which 99 of 100 are served.
const (
	recovery = 5 * time.Second
	calm     = 3 * time.Second
)

// recovers plays what customers ask for from the end of trouble on until everything is as before, or it is clear that it takes
// too long, and says how long it took for the named groups.
func (s *scene) recovers(ctx context.Context, from time.Time, groups []*group, names ...string) {
	for {
		s.play(ctx, 2*time.Second, groups...) // a multiple of every pace in a day, so that parts follow each other without a seam
		s.end = time.Now()
		_, calmed := s.calmed(from, names)
		if calmed || s.end.Sub(from) >= recovery+calm || ctx.Err() != nil {
			break
		}
	}
	s.recovered(from, names...)
}

// recoveredAfter is the verdict of recovered, for the page.
const recoveredAfter = "recovered after"

// recovered says how long it took after an end of trouble until everything was as before.
func (s *scene) recovered(from time.Time, groups ...string) {
	took, calmed := s.calmed(from, groups)
	text := fmt.Sprintf("%.1f s", took.Seconds())
	if !calmed {
		text = "not while it was watched"
	}
	s.hopes(recoveredAfter, calmed && took <= recovery, text, "≤ %v", recovery)
}

// calmed is how long after a moment calm began.
func (s *scene) calmed(from time.Time, groups []string) (took time.Duration, calmed bool) {
	shots := s.since(from, groups...)
	for t := from; !t.Add(calm).After(s.end); t = t.Add(200 * time.Millisecond) {
		served, asked := tally(slices.DeleteFunc(slices.Clone(shots), func(one shot) bool { return one.at.Before(t) || !one.at.Before(t.Add(calm)) }))
		if asked > 0 && float64(served) >= .99*float64(asked) {
			return t.Sub(from), true
		}
	}
	return 0, false
}
