package health

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// answer is the result of a check that a test may change.
type answer struct {
	mu    sync.Mutex
	value float64
	err   error
	calls int
}

func (a *answer) set(value float64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.value, a.err = value, err
}

func (a *answer) look(context.Context) (float64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	return a.value, a.err
}

// watchCheck starts a Sampler with one check on a process that is idle.
func watchCheck(t *testing.T, k Check) *Sampler {
	k.Name = "mine"
	return watch(t, newService(2, 0, time.Now), Config{Checks: []Check{k}})
}

func TestACheckWithoutRoutesIsAboutThisProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answer{value: 0.3}
		s := watchCheck(t, Check{Func: a.look})
		pass(10 * time.Second)
		pressed(t, s, 0.3, "of its own value")
		a.set(7, nil)
		pass(10 * time.Second)
		pressed(t, s, 1, "beyond the thresholds")
	})
}

func TestACheckWithRoutesIsAboutThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answer{value: 250}
		s := watchCheck(t, Check{Func: a.look, Thresholds: Thresholds{Low: 200, High: 300}, Routes: []string{"a"}})
		pass(10 * time.Second)
		pressureOf(t, s, "a", 0.5, "between 200 and 300")
		pressed(t, s, 0, "the process")
		if p, state := s.PressureOf("b"); p != 0 || state != Absent {
			t.Errorf("route b has pressure %v, %v", p, state)
		}
	})
}

func TestACheckRunsAtItsOwnPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answer{value: 0.5}
		s := watchCheck(t, Check{Func: a.look, Every: 30 * time.Second})
		pass(time.Hour - 1)
		if a.calls != 120 {
			t.Errorf("%d calls in an hour, want 120", a.calls)
		}
		pressed(t, s, 0.5, "between two calls")
		if r := signalNamed(t, s, "mine"); r.Transitions != 1 || r.Discarded != nil {
			t.Errorf("it reads %+v", r)
		}
	})
}

func TestACheckThatFailsHoldsThenIsNeutralThenReturns(t *testing.T) {
	for why, fault := range map[string]struct {
		value float64
		err   error
		want  Reason
	}{
		"an error":                       {0, errors.New("down"), Unreadable},
		"not a number":                   {math.NaN(), nil, NotANumber},
		"infinite":                       {math.Inf(1), nil, NotANumber},
		"a missing file is no absence":   {0, fs.ErrNotExist, Unreadable},
		"nor are the package's words":    {0, errAbsent, Unreadable},
		"a value beside an error":        {0.1, errors.New("down"), Unreadable},
		"an error longer than any story": {0, errors.New(strings.Repeat("x", 1<<20)), Unreadable},
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answer{value: 0.8}
				s := watchCheck(t, Check{Func: a.look})
				pass(10*time.Second + interval/2)
				a.set(fault.value, fault.err)
				pass(5 * time.Second)
				pressed(t, s, 0.8, "while it holds")
				if s.State() != Stale {
					t.Errorf("the state is %v", s.State())
				}
				pass(10 * time.Second)
				pressed(t, s, 0, "without the check")
				if r := signalNamed(t, s, "mine"); r.State != Failed || r.Discarded[fault.want] == 0 || len(r.Discarded) != 1 || len(r.Error) > 300 {
					t.Errorf("it reads %.500v", r)
				}
				a.set(0.6, nil)
				pass(5 * time.Second)
				pressed(t, s, 0.6, "after it returned")
			})
		})
	}
}

func TestACheckThatPanicsEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watchCheck(t, Check{Func: func(context.Context) (float64, error) { panic("boom") }})
		pass(20 * time.Second)
		if r := signalNamed(t, s, "mine"); r.State != Failed || !strings.Contains(r.Error, "boom") {
			t.Errorf("it reads %+v", r)
		}
		pressed(t, s, 0, "the others go on")
	})
}

// A check that hangs has one goroutine and no more, makes nothing else late, and says so.
func TestACheckThatHangsHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, calls atomic.Int32
		release := make(chan struct{})
		s := watchCheck(t, Check{Timeout: 500 * time.Millisecond, Func: func(context.Context) (float64, error) {
			calls.Add(1)
			if running.Add(1) > 1 {
				t.Error("it runs twice at a time")
			}
			defer running.Add(-1)
			<-release // deaf to its context
			return 1, nil
		}})
		pass(time.Minute)
		if r := signalNamed(t, s, "mine"); r.State != Failed || r.Discarded[Overdue] == 0 {
			t.Errorf("it reads %+v", r)
		}
		if lag := signalNamed(t, s, "timer_lag"); lag.Value != 0 || calls.Load() != 1 {
			t.Errorf("timer lag %v, %d calls", lag.Value, calls.Load())
		}
		pressed(t, s, 0, "the others go on")
		began := time.Now()
		s.Close()
		if d := time.Since(began); d != closeGrace {
			t.Errorf("Close took %v, want %v", d, closeGrace)
		}
		unknown(t, s, Absent, "after Close")
		close(release) // or the bubble would find the goroutine
	})
}

func TestCloseEndsTheContextOfARunningCheckAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Bool
		s := watchCheck(t, Check{Timeout: time.Hour, Func: func(ctx context.Context) (float64, error) {
			<-ctx.Done()
			time.Sleep(100 * time.Millisecond) // tidies up
			ended.Store(true)
			return 0, ctx.Err()
		}})
		pass(time.Minute)
		began := time.Now()
		s.Close()
		if d := time.Since(began); d != 100*time.Millisecond || !ended.Load() {
			t.Errorf("Close took %v; ended: %v", d, ended.Load())
		}
	})
}

func TestTheContextOfACheckEndsWithItsTimeoutAndLateAnswersAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watchCheck(t, Check{Timeout: 300 * time.Millisecond, Func: func(ctx context.Context) (float64, error) {
			<-ctx.Done()
			time.Sleep(time.Millisecond)
			return 0.9, nil // too late to be believed
		}})
		pass(20 * time.Second)
		if r := signalNamed(t, s, "mine"); r.State != Failed || r.Measured || r.Discarded[Overdue] == 0 {
			t.Errorf("it reads %+v", r)
		}
	})
}
