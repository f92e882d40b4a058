package shed

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestALineHoldsWhatItsTimeCanServe has a limit of 100 and work of 10 ms, so 10,000 are served in a second.
func TestALineHoldsWhatItsTimeCanServe(t *testing.T) {
	for _, c := range []struct {
		queue Queue
		want  int
	}{
		{Queue{}, 5000},
		{Queue{MaxWait: 100 * time.Millisecond}, 1000},
		{Queue{MaxWait: 10 * time.Millisecond}, DefaultQueueCapacity}, // 100 would do, but a burst knows of no rate
		{Queue{MaxWait: time.Hour}, MostQueueCapacity},
		{Queue{Capacity: 7}, 7}, // who says how many means it
		{Queue{Capacity: 20_000}, 20_000},
		{Queue{Capacity: -1}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, fixed(100, c.queue))
			places := func() int { return s.Status().QueueCapacity }
			if want := max(min(c.want, DefaultQueueCapacity), c.queue.Capacity, 0); places() != want {
				t.Errorf("%+v: %d places before anything is known, want %d", c.queue, places(), want)
			}
			for range 40 {
				p := admitted(t, s, Request{})
				time.Sleep(10 * time.Millisecond)
				p.Done(Success)
			}
			if places() != c.want {
				t.Errorf("%+v: %d places, want %d", c.queue, places(), c.want)
			}
			reloaded(t, s, fixed(100, Queue{Capacity: 3}))
			if places() != 3 {
				t.Errorf("%+v: %d places after a reload that wants 3", c.queue, places())
			}
			reloaded(t, s, fixed(50, Queue{MaxWait: time.Second}))
			if places() != 5000 {
				t.Errorf("%+v: %d places after a reload that wants what half the limit serves in twice the time", c.queue, places())
			}
		})
	}
}
