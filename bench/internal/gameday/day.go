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

	"github.com/spillway-go/spillway/bench/internal/judge"
)

// Options say how the day is played.
type Options struct {
	// Quick makes the acts as short as their verdicts allow: under 4 minutes instead of under 15.
	Quick bool
	// Keep leaves the day's folder, with the configuration, the keys and what every program said.
	Keep bool
	// Acts are the names of those to play; empty means all.
	Acts []string
	// Soak, when it is above 0, is how long an ordinary day with gateways built with the race detector lasts; it is played instead
	// of the acts.
	Soak time.Duration
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
	again   bool // this act has been played before, on a machine that was too late
}

// Usage reports whether an error of Run is for whoever called: a program is not installed, or there is no such act.
func Usage(err error) bool { return errors.As(err, new(errUsage)) }

// Run plays the day and returns what came of it. When ctx ends it stops early and the report is partial; an error says that the
// day could not begin. Whatever it has started has ended when it returns.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := missing(); err != nil {
		return nil, err
	}
	chosen, err := choose(o)
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
	if err := d.setUp(ctx, o.Soak > 0, d.say); err != nil {
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

// shortestSoak is the shortest time in which something can be said about drift.
const shortestSoak = 15 * time.Second

// choose returns the acts to play.
func choose(o Options) ([]*act, error) {
	all, wanted := acts(), o.Acts
	switch {
	case o.Soak != 0 && o.Soak < shortestSoak:
		return nil, errUsage{fmt.Errorf("gameday: a soak of %v shows nothing; let it last at least %v", o.Soak, shortestSoak)}
	case o.Soak != 0 && (o.Quick || len(wanted) > 0):
		return nil, errUsage{errors.New("gameday: a soak is a day of its own; ask for it without quick and acts")}
	case o.Soak != 0:
		return soakActs(o.Soak), nil
	case len(wanted) == 0:
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

// length is how long something takes that may be shorter in a quick day, and in an act that is played again.
func (d *day) length(quick, full time.Duration) time.Duration {
	if d.Quick || d.again {
		return quick
	}
	return full
}

// enough is when no act is played again any more, so that a day has an end on the latest machine.
const enough = 12 * time.Minute

// perform plays an act, and again when the machine was too late for its verdicts and nothing else is wrong.
func (d *day) perform(ctx context.Context, a *act) {
	tries := 2
	switch {
	case d.Soak > 0:
		tries = 1
	case !d.Quick:
		tries = 3
	}
	var s *scene
	for try := 1; ; try++ {
		s = d.playOnce(ctx, a, try)
		timed, counted := s.failed()
		if s.noise == "" || !timed || counted || try == tries || time.Since(d.begin) > enough || ctx.Err() != nil {
			break
		}
		d.say("      the machine was late (%s): once more", s.noise)
	}
	s.excuse()
	d.scenes = append(d.scenes, s)
	for _, c := range s.checks {
		d.say("      %-7s %s: %s (%s)", c.Status, c.What, c.Measured, c.Bound)
		if c.Note != "" {
			d.say("              %s", c.Note)
		}
	}
}

// playOnce plays an act and looks at the machine meanwhile.
func (d *day) playOnce(ctx context.Context, a *act, try int) *scene {
	s := &scene{load: &load{}, day: d, act: a, begin: time.Now()}
	d.again = try > 1
	d.say("\n%s %s", clock(s.begin.Sub(d.begin)), a.title)
	d.pinger.take()
	s.local = d.local()
	cpu, breaks := d.cpuTime(), d.streams.breaks.Load()
	_, err := d.service.control("reset", nil)
	if err == nil {
		err = a.play(ctx, s)
	}
	s.end = time.Now()
	s.pings = d.pinger.take()
	s.others = d.cpuTime().othersSince(cpu)
	if c, err := d.service.counts(); err == nil { // else the act has failed already
		s.serviceLate = time.Duration(c.Late * float64(time.Second))
	}
	s.noise = s.judgeMachine()
	switch {
	case ctx.Err() != nil: // broken off: what is missing is no failure
		s.checks = slices.DeleteFunc(s.checks, func(c Check) bool { return c.Status == judge.Fail })
		return s
	case err != nil:
		s.check(Check{What: "the act could be played", Measured: err.Error(), Bound: "no error"}, false)
	}
	if !a.cuts {
		broke := d.streams.breaks.Load() - breaks
		s.hopes("event streams and WebSockets that broke", broke == 0, fmt.Sprint(broke), "0")
	}
	return s
}

// failed reports whether a verdict failed for which a late machine can be the reason, and whether any other did.
func (s *scene) failed() (timed, counted bool) {
	for _, c := range s.checks {
		timed = timed || c.Status == judge.Fail && c.Timed
		counted = counted || c.Status == judge.Fail && !c.Timed
	}
	return timed, counted
}

// excuse makes verdicts invalid that failed and say nothing, because the machine was late.
func (s *scene) excuse() {
	for i := range s.checks {
		if c := &s.checks[i]; s.noise != "" && c.Timed && c.Status == judge.Fail {
			c.Status, c.Note = judge.Invalid, "the machine was late: "+s.noise
		}
	}
}

// clock writes the time of the day as m:ss.
func clock(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}
