package queue

import (
	"fmt"
	"testing"
	"time"
)

// refuse refuses a client of that priority every 100 ms from one time to another, and lets somebody else have a turn each time.
func refuse(f *Fair, client string, priority int, from, to time.Duration) {
	for now := from; now <= to; now += 100 * time.Millisecond {
		f.Push(now, &Waiter{Client: "served", Priority: priority, Deadline: now + time.Second})
		f.Pop(now)
		f.Refused(now, &Waiter{Client: client, Priority: priority})
	}
}

func TestOnlyWhoIsRefusedInALongSurgeIsPressed(t *testing.T) {
	const begin = time.Second
	for _, c := range []struct {
		what, client string
		priority     int
		at           time.Duration
		want         bool
	}{
		{"a short surge", "refused", 0, begin + 1900*time.Millisecond, false},
		{"a long one", "refused", 0, begin + 2*time.Second, true},
		{"a higher priority", "refused", 1, begin + 2*time.Second, true},
		{"work for which nobody waits", "refused", -1, begin + 2*time.Second, false},
		{"somebody else's surge", "other", 0, begin + 2*time.Second, false},
	} {
		f := NewFair(10)
		refuse(f, "refused", c.priority, begin, c.at)
		if got := f.Pressed(c.at, &Waiter{Client: c.client, Priority: c.priority}); got != c.want {
			t.Errorf("%s: pressed %v", c.what, got)
		}
	}
}

func TestNobodyIsPressedForLongAfterwards(t *testing.T) {
	f := NewFair(10)
	refuse(f, "refused", 0, time.Second, 4*time.Second)
	refuse(f, "another", 0, 4100*time.Millisecond, 4400*time.Millisecond)
	w := &Waiter{Client: "refused"}
	if !f.Pressed(4399*time.Millisecond, w) || f.Pressed(4400*time.Millisecond, w) {
		t.Error("a refusal is remembered for 400 ms")
	}
	if w.Client = "another"; !f.Pressed(4500*time.Millisecond, w) || f.Pressed(5400*time.Millisecond, w) {
		t.Error("the surge has ended")
	}
}

func TestNobodyIsPressedInAFlood(t *testing.T) {
	f := NewFair(10)
	refuse(f, "refused", 0, time.Second, 4*time.Second)
	w := &Waiter{Client: "refused"}
	flood := 0
	for f.Pressed(4*time.Second, w) && flood < 1000 {
		f.Refused(4*time.Second, w)
		flood++
	}
	if flood < 50 || flood == 1000 {
		t.Errorf("%d refusals without a turn made it a flood", flood)
	}
}

// TestWhoMeetsInAPlaceIsNotTakenForAnother fills the table with more names than it has places.
func TestWhoMeetsInAPlaceIsNotTakenForAnother(t *testing.T) {
	var r refusals
	known := map[string]bool{}
	for i := range 3000 {
		name := fmt.Sprint("client", i)
		r.add(time.Second, name)
		if !r.has(time.Second, name) {
			t.Fatalf("%s was refused in this moment", name)
		}
		known[name] = true
	}
	n := 0
	for i := range 6000 {
		switch name := fmt.Sprint("client", i); {
		case r.has(time.Second, name) && !known[name]:
			t.Errorf("%s was never refused", name)
		case r.has(time.Second, name):
			n++
		}
	}
	if n < len(r)/2 || n > len(r) {
		t.Errorf("%d of 3000 are remembered", n)
	}
}
