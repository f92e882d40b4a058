package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/spillway-go/spillway/shed"
)

// DefaultLogEvery is how often a Log writes about the same thing.
const DefaultLogEvery = 10 * time.Second

// mostKinds bounds how many kinds of records a Log tells apart in an interval; names of rules and routes are configured, so
// this is a fence around programs that invent them.
const mostKinds = 500

// LogConfig says what a Log writes and where. Only Logger is required.
type LogConfig struct {
	Logger *slog.Logger
	// Every is the interval in which each kind of record is written once; zero means DefaultLogEvery.
	Every time.Duration
}

// Log is a shed.Observer that writes to a slog.Logger what a person on call wants to read afterwards: refusals, and work that
// failed because something behind it is overloaded. A flood does not flood the log: of each kind (route, reason and rule) the
// first is written at once, and what follows within the interval is counted and written as one record when it is over.
//
// Refusals by the gate, its line or the store, and dropped work, are warnings: we are short. Refusals for what a client did are
// information. The fields are event, route, priority, reason, rule, wait, outcome, and in records of several count and
// seconds. Names and keys of clients are not among them, because events do not have them.
type Log struct {
	logger *slog.Logger
	every  time.Duration

	summing sync.Mutex // one sum at a time, so that Close returns after the last; held before mu

	mu     sync.Mutex
	kinds  map[kind]*tally // of the interval
	timer  *time.Timer     // ends the interval; nil between intervals
	begun  time.Time
	closed bool
}

// kind is what records are told apart by.
type kind struct {
	event       shed.EventKind
	route, rule string
	reason      shed.Reason
	outcome     shed.Outcome
}

// tally counts what was not written.
type tally struct {
	more     int64
	priority shed.Priority
	longest  time.Duration // of the waits
}

// NewLog returns a Log; end it with Close.
func NewLog(cfg LogConfig) (*Log, error) {
	switch {
	case cfg.Logger == nil:
		return nil, errors.New("telemetry: a Log needs a Logger, slog.Default() for example")
	case cfg.Every < 0:
		return nil, errors.New("telemetry: LogConfig.Every is negative; leave it out for 10s")
	case cfg.Every == 0:
		cfg.Every = DefaultLogEvery
	}
	return &Log{logger: cfg.Logger, every: cfg.Every, kinds: make(map[kind]*tally)}, nil
}

// Observe implements shed.Observer. What is to be written is written on the caller's goroutine, after the lock is released.
func (l *Log) Observe(e shed.Event) {
	k, worth := kindOf(e)
	if !worth || !l.first(k, e) {
		return
	}
	l.write(k, slog.String("priority", e.Priority.String()), slog.Duration("wait", e.Wait))
}

// kindOf tells what kind of record an event is, and whether it is one at all.
func kindOf(e shed.Event) (kind, bool) {
	k := kind{event: e.Kind, route: e.Route, rule: e.Rule, reason: e.Reason, outcome: e.Outcome}
	if k.route == "" {
		k.route = DefaultRoute
	}
	return k, e.Kind == shed.Refused || e.Kind == shed.Finished && e.Outcome == shed.Dropped
}

// first counts an event and reports whether it is the first of its kind in this interval.
func (l *Log) first(k kind, e shed.Event) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	t := l.kinds[k]
	if t == nil {
		if len(l.kinds) >= mostKinds {
			k.route, k.rule = OtherRoutes, ""
			if t = l.kinds[k]; t != nil {
				t.add(e)
				return false
			}
		}
		l.kinds[k] = &tally{priority: e.Priority}
		if l.timer == nil {
			l.begun = time.Now()
			l.timer = time.AfterFunc(l.every, l.over)
		}
		return true
	}
	t.add(e)
	return false
}

func (t *tally) add(e shed.Event) {
	t.more++
	t.longest = max(t.longest, e.Wait)
}

// over ends an interval.
func (l *Log) over() { l.sum(false) }

// sum writes what was counted in the interval and forgets it.
func (l *Log) sum(last bool) {
	l.summing.Lock()
	defer l.summing.Unlock()
	l.mu.Lock()
	kinds, seconds := l.kinds, time.Since(l.begun).Seconds()
	l.kinds, l.timer = make(map[kind]*tally), nil
	l.closed = l.closed || last
	l.mu.Unlock()
	for k, t := range kinds {
		if t.more > 0 {
			l.write(k, slog.String("priority", t.priority.String()), slog.Duration("longest_wait", t.longest),
				slog.Int64("count", t.more), slog.Float64("seconds", seconds))
		}
	}
}

// Close writes what has been counted and not written yet. Events that come later are not written. It is safe to call twice.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.timer != nil {
		l.timer.Stop() // if it has fired already, whoever sums first finds all
	}
	l.mu.Unlock()
	l.sum(true)
	return nil
}

func (l *Log) write(k kind, more ...slog.Attr) {
	level, message := slog.LevelWarn, "spillway: refused, short of room"
	switch {
	case k.event == shed.Finished:
		message = "spillway: work was dropped, something behind is overloaded"
	case k.reason == shed.StoreUnavailable:
		message = "spillway: refused, the store could not decide"
	case k.reason == shed.FeatureOff:
		level, message = slog.LevelInfo, "spillway: refused, the feature is switched off"
	case k.reason == shed.OverLimit || k.reason == shed.CostTooLarge || k.reason == shed.InFlight || k.reason == shed.NoIdentity:
		level, message = slog.LevelInfo, "spillway: refused, for what the client did"
	}
	attrs := append(make([]slog.Attr, 0, 8), slog.String("event", k.event.String()), slog.String("route", k.route))
	if k.event == shed.Finished {
		attrs = append(attrs, slog.String("outcome", k.outcome.String()))
	} else {
		attrs = append(attrs, slog.String("reason", string(k.reason)))
	}
	if k.rule != "" {
		attrs = append(attrs, slog.String("rule", k.rule))
	}
	l.logger.LogAttrs(context.Background(), level, message, append(attrs, more...)...)
}
