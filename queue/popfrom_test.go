package queue

import "testing"

func TestPopFromPassesOverThoseBelow(t *testing.T) {
	f := NewFair(10)
	low, high := &Waiter{Client: "a", Priority: LowestPriority, Deadline: 100}, &Waiter{Client: "a", Priority: HighestPriority, Deadline: 100}
	f.Push(0, low)
	if w := f.PopFrom(1, 0); w != nil || f.Len() != 1 {
		t.Fatalf("%v came out, who is below", w)
	}
	f.Push(1, high)
	if w := f.PopFrom(2, 0); w != high {
		t.Fatalf("%v came out, want the only one above", w)
	}
	// A promised turn below does not count: nobody below may be popped at all.
	for i := range 3 * PromisedTurn {
		f.Push(3, high)
		if w := f.PopFrom(3, 0); w != high {
			t.Fatalf("turn %d went to %v", i, w)
		}
	}
	if w := f.Pop(4); w != low {
		t.Errorf("%v came out, want who is left", w)
	}
}
