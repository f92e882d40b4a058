package health

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Check is a signal of the program's own: the depth of a queue, the lag of a replica, the disk that fills up.
type Check struct {
	// Name is the signal's name, such as "replica_lag"; required.
	Name string
	// Func looks once and returns a value for Thresholds, or an error, which is no opinion; required. It must return soon
	// after its context has ended. It never runs twice at a time. Its error is shown in the debug view, so keep secrets out of
	// it.
	Func func(context.Context) (float64, error)
	// Every is the time from the end of one call to the start of the next, at least 250 ms; zero means 1 s.
	Every time.Duration
	// Timeout is when the context of a call ends; zero means 1 s. A call that takes longer is an error, also if it returns a
	// value in the end.
	Timeout time.Duration
	// Thresholds bound the value; the zero value means {0, 1}: the value is the pressure.
	Thresholds Thresholds
	// Routes are the names of the routes that need what is checked. Without any the check is about this process, and its
	// pressure is part of the total.
	Routes []string
}

const (
	defaultCheckEvery   = time.Second
	defaultCheckTimeout = time.Second
	// closeGrace is how long Close waits for checks after it has ended their contexts. One that ignores its context cannot be
	// stopped; it must not stop the program from ending either.
	closeGrace = time.Second
)

func (k *Check) prepare() error {
	if k.Func == nil {
		return fmt.Errorf("health: check %s has no Func; set it to what returns the value", k.Name)
	}
	if k.Every == 0 {
		k.Every = defaultCheckEvery
	}
	if k.Timeout == 0 {
		k.Timeout = defaultCheckTimeout
	}
	if k.Every < interval {
		return fmt.Errorf("health: check %s has Every %v; use at least %v, which is how often health looks", k.Name, k.Every, interval)
	}
	if k.Timeout < 0 {
		return fmt.Errorf("health: check %s has Timeout %v; use a time above 0", k.Name, k.Timeout)
	}
	if k.Thresholds == (Thresholds{}) {
		k.Thresholds = Thresholds{Low: 0, High: 1}
	}
	return k.Thresholds.checkNumbers("check "+k.Name, Thresholds{Low: 0, High: 1})
}

// check runs a Check on a goroutine of its own, so that a slow one makes nothing else late. There is one for each check, also
// if the function hangs: the next call waits for it.
type check struct {
	Check
	clock func() time.Time

	mu     sync.Mutex // held for a few assignments only
	began  time.Time  // of the call that runs; zero: none does
	ended  bool       // some call has ended
	value  float64    // of the last call that ended
	failed error

	pace pace
}

func (k *check) name() string { return k.Name }

func (k *check) source() string { return "a check of this program" }

// measure is the last result, until the next one.
func (k *check) measure(round time.Time) (float64, time.Duration, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	dt := k.pace.next(round)
	switch {
	case !k.began.IsZero() && round.Sub(k.began) > k.Timeout:
		return 0, 0, errHangs
	case !k.ended:
		return 0, 0, errNoNews
	}
	return k.value, dt, k.failed
}

// run calls the function until ctx ends.
func (k *check) run(ctx context.Context) {
	pause := time.NewTimer(k.Every)
	defer pause.Stop()
	for {
		k.once(ctx)
		pause.Reset(k.Every)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

func (k *check) once(ctx context.Context) {
	began := k.clock()
	k.mu.Lock()
	k.began = began
	k.mu.Unlock()
	value, err := k.call(ctx)
	if took := k.clock().Sub(began); took > k.Timeout && err == nil {
		err = errHangs
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.began, k.ended, k.value, k.failed = time.Time{}, true, value, err
}

// call is one call, in which a panic is an error: a check must not end the program it watches.
func (k *check) call(ctx context.Context) (value float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, k.Timeout)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			value, err = 0, fmt.Errorf("the check panicked: %.100v", r)
		}
	}()
	value, err = k.Func(ctx)
	if err != nil {
		// Whatever the function wraps, its error is a failure: never the package's own words for absence. Its text may be long.
		err = fmt.Errorf("%.200v", err)
	}
	return value, err
}

var errHangs = &discard{reason: Overdue, what: "the check did not return within its timeout"}
