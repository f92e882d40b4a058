package queue

import "testing"

func TestResizeKeepsThoseWhoWait(t *testing.T) {
	f := NewFair(4)
	waiters := make([]*Waiter, 6)
	for i := range waiters {
		waiters[i] = &Waiter{Client: string(rune('a' + i)), Deadline: 100}
	}
	for _, w := range waiters[:4] {
		if _, ok := f.Push(0, w); !ok {
			t.Fatal("no room")
		}
	}
	f.Resize(2)
	if f.Len() != 4 || f.Cap() != 2 {
		t.Fatalf("len %d, cap %d", f.Len(), f.Cap())
	}
	if displaced, ok := f.Push(0, waiters[4]); ok || displaced != nil {
		t.Error("an equal got into a line that is too long")
	}
	vip := &Waiter{Client: "vip", Priority: HighestPriority, Deadline: 100}
	if displaced, ok := f.Push(0, vip); !ok || displaced == nil || f.Len() != 4 {
		t.Errorf("somebody more important gets in in somebody's place: %v %v, %d wait", displaced, ok, f.Len())
	}
	for range 3 {
		if f.Pop(1) == nil {
			t.Fatal("those who wait are lost")
		}
	}
	if _, ok := f.Push(1, waiters[5]); !ok || f.Len() != 2 {
		t.Errorf("there is room again, but nobody gets in: %d wait", f.Len())
	}
	f.Resize(-1)
	if _, ok := f.Push(1, waiters[4]); ok {
		t.Error("a line without places took somebody")
	}
	f.Resize(3)
	if _, ok := f.Push(1, waiters[4]); !ok {
		t.Error("a larger line has no room")
	}
}
