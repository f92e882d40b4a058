package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const step = 50 * time.Millisecond // 20 a second

var alice, bob = Key{"orders", "alice"}, Key{"orders", "bob"}

// wait is one caller that waits in a goroutine of its own.
type wait struct {
	waited time.Duration
	err    error
	over   chan struct{} // closed after the two above are set
	leave  context.CancelFunc
}

// done tells whether the caller has its answer.
func (w *wait) done() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// park starts a caller whose turn is the n-th of its line and comes back when it is parked or has its answer.
func park(l *Leaky, key Key, turn, step time.Duration) *wait {
	ctx, cancel := context.WithCancel(context.Background())
	w := &wait{leave: cancel, over: make(chan struct{})}
	go func() {
		w.waited, w.err = l.Wait(ctx, key, turn, step)
		close(w.over)
	}()
	synctest.Wait()
	return w
}

// parkMany parks n simultaneous arrivals at an idle bucket: the k-th has its turn (k-1) steps later.
func parkMany(l *Leaky, key Key, n int) []*wait {
	waits := make([]*wait, n)
	for k := range waits {
		waits[k] = park(l, key, time.Duration(k)*step, step)
	}
	return waits
}

// startedAt fails unless w has waited exactly so long without an error.
func startedAt(t *testing.T, w *wait, want time.Duration) {
	t.Helper()
	if !w.done() || w.err != nil || w.waited != want {
		t.Errorf("done %v after %v with error %v, want a start after exactly %v", w.done(), w.waited, w.err, want)
	}
}

// emptied fails unless nothing is left in l.
func emptied(t *testing.T, l *Leaky) {
	t.Helper()
	if s := l.Status(); s.Parked != 0 || s.Lines != 0 || l.Len() != 0 {
		t.Errorf("%d parked in %d lines, want nothing left", s.Parked, s.Lines)
	}
}

func TestTheKthOfNStartsExactlyKMinusOneStepsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(0)
		waits := parkMany(l, alice, 20)
		time.Sleep(time.Hour)
		synctest.Wait()
		for k, w := range waits {
			startedAt(t, w, time.Duration(k)*step)
		}
		emptied(t, l)
		if got := l.Status().Started; got != 20 {
			t.Errorf("%d started, want 20", got)
		}
	})
}

func TestNobodyStartsANanosecondEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(0)
		w := park(l, alice, step, step)
		time.Sleep(step - 1)
		synctest.Wait()
		if w.done() {
			t.Error("started a nanosecond early")
		}
		time.Sleep(1 * time.Nanosecond)
		synctest.Wait()
		startedAt(t, w, step)
	})
}

func TestWhoGivesUpMovesTheRestUpByExactlyOneStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(0)
		waits := parkMany(l, alice, 5)
		other := park(l, bob, 4*step, step)
		time.Sleep(10 * time.Millisecond)
		waits[2].leave()
		synctest.Wait()
		if w := waits[2]; !w.done() || w.waited != 10*time.Millisecond || !errors.Is(w.err, context.Canceled) {
			t.Errorf("done %v after %v with %v, want cancelled after 10ms", w.done(), w.waited, w.err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		startedAt(t, waits[1], 1*step)
		startedAt(t, waits[3], 2*step)
		startedAt(t, waits[4], 3*step)
		startedAt(t, other, 4*step) // another key's turn is its own
		emptied(t, l)
	})
}

func TestAHeavyCallerGivesOnItsWholeCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(0)
		heavy := park(l, alice, step, 5*step)
		next := park(l, alice, 6*step, step)
		heavy.leave()
		time.Sleep(time.Hour)
		synctest.Wait()
		startedAt(t, next, step)
	})
}

// A turn of a token bucket comes when the caller's own cost is covered: a light one behind a heavy one that gives up may
// start before the heavy one would have, but never before who stands before both.
func TestMovingUpNeverOvertakesAnybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(0)
		first := park(l, alice, 3*step, step)
		heavy := park(l, alice, 4*step, time.Hour) // a step far too large
		last := park(l, alice, 5*step, step)
		heavy.leave()
		time.Sleep(time.Hour)
		synctest.Wait()
		startedAt(t, first, 3*step)
		startedAt(t, last, 3*step)
	})
}

func TestMovingUpNeverStartsAnybodyInThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(0)
		first := park(l, alice, 2*step, time.Hour)
		last := park(l, alice, 3*step, step)
		time.Sleep(step)
		first.leave()
		time.Sleep(time.Hour)
		synctest.Wait()
		startedAt(t, last, step)
	})
}

func TestWhoOvertookOnTheWayIsPutBackInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(0)
		second := park(l, alice, 2*step, step)
		first := park(l, alice, 1*step, step)
		third := park(l, alice, 3*step, step)
		first.leave() // frees the place before second, although it came after it
		time.Sleep(time.Hour)
		synctest.Wait()
		startedAt(t, second, step)
		startedAt(t, third, 2*step)
	})
}

func TestADeadlineBeforeTheTurnIsRefusedAtOnceAndDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(0)
		parkMany(l, alice, 2)
		late := park(l, alice, 3*step, step) // was charged after the one that is about to be refused
		ctx, cancel := context.WithTimeout(context.Background(), 2*step)
		defer cancel()
		waited, err := l.Wait(ctx, alice, 2*step, step) // at its deadline is too late, too
		if waited != 0 || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrTooLate) {
			t.Errorf("waited %v, %v; want ErrTooLate at once", waited, err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		startedAt(t, late, 2*step)
		if got := l.Status().TooLate; got != 1 {
			t.Errorf("%d counted as too late, want 1", got)
		}
	})
}

func TestADeadlineAfterTheTurnIsNoObstacle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(0)
		ctx, cancel := context.WithTimeout(context.Background(), step+1)
		defer cancel()
		if waited, err := l.Wait(ctx, alice, step, step); err != nil || waited != step {
			t.Errorf("waited %v, %v; want %v", waited, err, step)
		}
	})
}

func TestTheErrorTellsHowAndWhyTheContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(0)
		hangUp := errors.New("the client hung up")
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(hangUp)
		_, err := l.Wait(ctx, alice, step, step)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, hangUp) {
			t.Errorf("got %v, want both the context's error and its cause", err)
		}
		emptied(t, l)
	})
}

// The turn and the cancellation fall into the same instant: whichever is taken, the caller must not be counted twice, and
// those behind must be neither late nor early.
func TestACancelInTheInstantOfTheTurnEndsExactlyOneWay(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			l := NewLeaky(0)
			racer := park(l, alice, step, step)
			next := park(l, alice, 2*step, step)
			time.AfterFunc(step, racer.leave)
			time.Sleep(time.Hour)
			synctest.Wait()
			want := 2 * step
			if racer.err != nil {
				want = step
			}
			startedAt(t, next, want)
			emptied(t, l)
			if s := l.Status(); s.Started+s.GaveUp != 2 || (s.GaveUp == 1) != (racer.err != nil) {
				t.Errorf("%d started and %d gave up, but the racer's error is %v", s.Started, s.GaveUp, racer.err)
			}
		})
	}
}

// The same race, step by step: the turn has come, but the caller has seen its context end first.
func TestWhoWasReleasedKeepsItsTurnAlthoughItLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(0)
		p, next := &parked{due: step, step: step}, &parked{due: 2 * step, step: step}
		line, _ := l.join(alice, p, 0, false, false)
		l.join(alice, next, 0, false, false)
		time.Sleep(step)
		synctest.Wait() // the timer has released p
		if err := l.leave(line, p); err != nil {
			t.Errorf("got %v, want the turn", err)
		}
		if s := l.Status(); s.Parked != 1 || s.Started != 1 || s.GaveUp != 0 || next.due != 2*step {
			t.Errorf("%+v and a next turn at %v, want one started and the next unmoved", s, next.due)
		}
		l.Close()
	})
}

func TestWhoMovedUpIsStillBehindWhoStandsBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(0)
		first := park(l, alice, 3*step, step)
		heavy := park(l, alice, 4*step, time.Hour)
		last := park(l, alice, 5*step, step)
		heavy.leave() // last moves up to 3 steps, and no further
		synctest.Wait()
		first.leave() // and now to 2
		time.Sleep(time.Hour)
		synctest.Wait()
		startedAt(t, last, 2*step)
	})
}

func TestAHundredKeysWaitApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(0)
		lines := make([][]*wait, 100)
		for i := range lines {
			lines[i] = parkMany(l, Key{"orders", fmt.Sprint(i)}, 4)
		}
		if s := l.Status(); s.Lines != 100 || s.Parked != 300 { // the first of each has its turn at once
			t.Errorf("%d parked in %d lines, want 300 in 100", s.Parked, s.Lines)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		for _, line := range lines {
			for k, w := range line {
				startedAt(t, w, time.Duration(k)*step)
			}
		}
		emptied(t, l)
	})
}

func TestTheSamePairJoinedOtherwiseIsAnotherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(0)
		park(l, Key{"ab", "c"}, step, step)
		park(l, Key{"a", "bc"}, step, step)
		if got := l.Status().Lines; got != 2 {
			t.Errorf("%d lines, want 2", got)
		}
		l.Close()
	})
}
