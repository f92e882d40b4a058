package gameday

import (
	"context"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/bench/internal/judge"
)

// act is one thing that goes wrong, or right.
type act struct {
	name, title string
	about       string // what happens
	expect      string // what should be seen
	cuts        bool   // streams cannot survive it
	play        func(ctx context.Context, s *scene) error
}

// Check is one verdict of an act.
type Check struct {
	What, Measured, Bound string
	Status                judge.Status
	// Timed says that a late machine can be why it failed.
	Timed bool
	Note  string
}

// mark is a moment or a span of an act.
type mark struct {
	text     string
	from, to time.Time
}

// scene is one playing of an act.
type scene struct {
	*load
	day    *day
	act    *act
	begin  time.Time
	end    time.Time
	checks []Check
	marks  []mark
	pings  []time.Duration
	// serviceLate is how late the service at most ended work.
	serviceLate time.Duration
	others      float64 // the share of the machine that other programs used
	alone       []alone // of each gateway, before the act
	// diagrams are those of this act alone.
	diagrams []template.HTML
	noise    string // why nothing that depends on time can be said; empty if it can
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

// served asks that at least a share of what groups wanted was answered in time.
func (s *scene) served(share float64, groups ...string) {
	s.servedOf(strings.Join(groups, " and ")+" clients served in time", share, s.of(groups...))
}

func (s *scene) servedOf(what string, share float64, shots []shot) {
	n, all := 0, 0
	for _, one := range shots {
		if one.status == notCalled {
			continue
		}
		all++
		if one.ok() {
			n++
		}
	}
	s.hopes(what, all > 0 && float64(n) >= share*float64(all), fmt.Sprintf("%d of %d%s", n, all, worst(shots)), "≥ %.4g %% within %v", share*100, deadline)
}

// worst says what became of those that were not served, by number.
func worst(shots []shot) string {
	why := map[string]int{}
	for _, one := range shots {
		switch {
		case one.ok() || one.status == notCalled:
		case one.status >= 200 && one.status < 300:
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
		if one.status >= 200 && one.status < 300 {
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

// during marks a span of the act for the report.
func (s *scene) during(text string, from, to time.Time) {
	s.marks = append(s.marks, mark{text, from, to})
}

// names are those of customers.
func names(all []*customer) (names []string) {
	for _, c := range all {
		names = append(names, c.name)
	}
	return names
}
