package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestParkedCallersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(2)
		waits := parkMany(l, alice, 3) // the first does not park
		if _, err := l.Wait(context.Background(), bob, step, step); !errors.Is(err, ErrFull) {
			t.Errorf("got %v, want ErrFull", err)
		}
		if _, err := l.Wait(context.Background(), bob, 0, step); err != nil {
			t.Errorf("got %v for a turn that has come, want nil", err)
		}
		waits[1].leave()
		synctest.Wait()
		if w := park(l, bob, step, step); w.done() {
			t.Errorf("got %v although a place had become free", w.err)
		}
		l.Close()
	})
}

func TestCloseSendsEverybodyAwayAndStaysClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(0)
		waits := append(parkMany(l, alice, 3)[1:], parkMany(l, bob, 3)[1:]...)
		l.Close()
		l.Close()
		synctest.Wait()
		for _, w := range waits {
			if !w.done() || !errors.Is(w.err, ErrClosed) {
				t.Errorf("done %v with %v, want ErrClosed at once", w.done(), w.err)
			}
		}
		for _, turn := range []time.Duration{0, step} {
			if _, err := l.Wait(context.Background(), alice, turn, step); !errors.Is(err, ErrClosed) {
				t.Errorf("turn %v: got %v, want ErrClosed", turn, err)
			}
		}
		emptied(t, l)
	})
}

func TestTheZeroLeakyIsClosed(t *testing.T) {
	var l Leaky
	if _, err := l.Wait(context.Background(), alice, step, step); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	l.Close()
}

func TestAnAbsurdTurnNeitherOverflowsNorStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(0)
		time.Sleep(time.Second)
		w := park(l, alice, 1<<63-1, -1)
		park(l, alice, 1<<63-1, 1<<63-1)
		if w.done() || l.Len() != 2 {
			t.Error("a turn at the end of time came at once")
		}
		l.Close()
	})
}

// TestARandomCrowdKeepsOrderAndAccounts lets many callers come and go on few keys and checks afterwards what must always
// hold: everybody ended once, starts keep the order and the pace, nothing is left.
func TestARandomCrowdKeepsOrderAndAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLeaky(0)
		var mu sync.Mutex
		starts := map[Key][]time.Duration{}
		begin := time.Now()
		var all sync.WaitGroup
		const crowd = 600
		for i := range crowd {
			key := Key{"orders", fmt.Sprint(i % 3)}
			turn := time.Duration(1+i/3) * step
			all.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if i%4 == 1 { // every fourth loses patience at some moment of its own
					time.AfterFunc(time.Duration(i*7919%200)*step/2+time.Millisecond, cancel)
				}
				if _, err := l.Wait(ctx, key, turn, step); err == nil {
					mu.Lock()
					starts[key] = append(starts[key], time.Since(begin))
					mu.Unlock()
				}
			})
			synctest.Wait()
		}
		all.Wait()
		for key, at := range starts {
			if !slices.IsSorted(at) {
				t.Errorf("%v: starts out of order", key)
			}
			for k := 1; k < len(at); k++ {
				if at[k]-at[k-1] != step {
					t.Errorf("%v: %v between two starts, want exactly %v: a turn was lost or minted", key, at[k]-at[k-1], step)
				}
			}
		}
		emptied(t, l)
		if s := l.Status(); s.Started+s.GaveUp != crowd || s.GaveUp == 0 {
			t.Errorf("%d started and %d gave up of %d", s.Started, s.GaveUp, crowd)
		}
	})
}
