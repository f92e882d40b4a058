package gameday

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/bench/judge"
)

// Options say how the day is played.
type Options struct {
	// Quick makes the acts as short as their verdicts allow: under 4 minutes instead of under 15.
	Quick bool
	// Keep leaves the day's folder, with the configuration, the keys and what every program said.
	Keep bool
	// Acts are the names of those to play; empty means all.
	Acts []string
	// Log is told how the day goes. It must not be nil.
	Log io.Writer
}

// day is a day that runs.
type day struct {
	*stage
	Options
	begin   time.Time
	scenes  []*scene
	gauges  *gauges
	streams *streams
	pinger  *pinger
}

// Usage reports whether an error of Run is for whoever called: a program is not installed, or there is no such act.
func Usage(err error) bool { return errors.As(err, new(errUsage)) }

// Run plays the day and returns what came of it. When ctx ends it stops early and the report is partial; an error says that the
// day could not begin. Whatever it has started has ended when it returns.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := missing(); err != nil {
		return nil, err
	}
	chosen, err := choose(o.Acts)
	if err != nil {
		return nil, err
	}
	dir, err := newDir()
	if err != nil {
		return nil, err
	}
	d := &day{stage: &stage{dir: dir}, Options: o}
	defer func() {
		d.end()
		if o.Keep {
			d.say("kept: %s", dir)
		} else {
			os.RemoveAll(dir)
		}
	}()
	if err := d.setUp(ctx, d.say); err != nil {
		if ctx.Err() != nil {
			return d.report(true), nil
		}
		return nil, err
	}
	d.begin = time.Now()
	d.gauges = watch(d.stage)
	d.undo = append(d.undo, d.gauges.stop)
	d.pinger = ping(d.live.addr())
	d.undo = append(d.undo, d.pinger.stop)
	d.streams = d.stream()
	d.undo = append(d.undo, d.streams.stop)
	for _, a := range chosen {
		if ctx.Err() != nil {
			break
		}
		d.perform(ctx, a)
	}
	return d.report(ctx.Err() != nil), nil
}

// choose returns the acts of these names.
func choose(wanted []string) ([]*act, error) {
	all := acts()
	if len(wanted) == 0 {
		return all, nil
	}
	var known []string
	for _, a := range all {
		known = append(known, a.name)
	}
	for _, name := range wanted {
		if !slices.Contains(known, name) {
			return nil, errUsage{fmt.Errorf("gameday: there is no act %q; there are %s", name, strings.Join(known, ", "))}
		}
	}
	return slices.DeleteFunc(all, func(a *act) bool { return !slices.Contains(wanted, a.name) }), nil
}

func (d *day) say(format string, args ...any) { fmt.Fprintf(d.Log, format+"\n", args...) }

// length is how long something takes that may be shorter in a quick day.
func (d *day) length(quick, full time.Duration) time.Duration {
	if d.Quick {
		return quick
	}
	return full
}

// lateness is the share of the deadline that the machine may be late before verdicts about time say nothing.
const lateness = deadline / 10

// perform plays an act, and again when the machine was too late for its verdicts.
func (d *day) perform(ctx context.Context, a *act) {
	tries := 2
	if !d.Quick {
		tries = 3
	}
	for try := 1; ; try++ {
		s := &scene{load: &load{}, day: d, act: a, begin: time.Now(), tries: try}
		d.pinger.take()
		d.say("\n%s %s", clock(time.Since(d.begin)), a.title)
		s.err = a.play(ctx, s)
		s.end = time.Now()
		s.pings = d.pinger.take()
		s.noise = s.judgeMachine()
		if ctx.Err() != nil { // broken off: what is missing is no failure
			s.checks = slices.DeleteFunc(s.checks, func(c Check) bool { return c.Status == judge.Fail })
			s.err = nil
		}
		if s.err != nil {
			s.check(Check{What: "the act could be played", Measured: s.err.Error(), Bound: "no error"}, false)
		}
		spoilt := s.noise != "" && slices.ContainsFunc(s.checks, func(c Check) bool { return c.Timed && c.Status == judge.Fail })
		if spoilt && try < tries && ctx.Err() == nil {
			d.say("      the machine was late (%s): once more", s.noise)
			continue
		}
		if spoilt {
			for i := range s.checks {
				if c := &s.checks[i]; c.Timed && c.Status == judge.Fail {
					c.Status, c.Note = judge.Invalid, "the machine was late: "+s.noise
				}
			}
		}
		d.scenes = append(d.scenes, s)
		for _, c := range s.checks {
			d.say("      %-7s %s: %s (%s)", c.Status, c.What, c.Measured, c.Bound)
			if c.Note != "" {
				d.say("              %s", c.Note)
			}
		}
		return
	}
}

// judgeMachine says why nothing can be said about time, if that is so: the generator was late, or a request that meets no gateway
// was.
func (s *scene) judgeMachine() string {
	var lags []time.Duration
	for _, one := range s.of() {
		lags = append(lags, one.lag)
	}
	sent := len(lags)
	switch {
	case quantile(lags, .99) > lateness:
		return fmt.Sprintf("requests left up to %v late (p99)", quantile(lags, .99).Round(time.Millisecond))
	case quantile(s.pings, .99) > lateness:
		return fmt.Sprintf("a direct probe took %v (p99)", quantile(s.pings, .99).Round(time.Millisecond))
	case float64(s.unsent.Load()) > .01*float64(sent):
		return fmt.Sprintf("%d requests could not be sent", s.unsent.Load())
	}
	return ""
}

// clock writes the time of the day as m:ss.
func clock(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}
