package queue

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestFIFOAgreesWithASlice compares a FIFO with the plainest model there is, over any sequence of operations.
func TestFIFOAgreesWithASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(0, 6).Draw(t, "capacity")
		line, model := NewFIFO(capacity), []*Waiter{}
		pool := make([]*Waiter, 8)
		for i := range pool {
			pool[i] = &Waiter{Owner: i}
		}
		var now time.Duration
		expired := func(w *Waiter) bool { return w.Deadline <= now }
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				w := rapid.SampledFrom(pool).Draw(t, "waiter")
				standing := slices.Contains(model, w)
				if !standing {
					w.Deadline = now + time.Duration(rapid.IntRange(-1, 20).Draw(t, "patience"))
				}
				want := !standing && len(model) < capacity
				displaced, ok := line.Push(now, w)
				if ok != want || displaced != nil {
					t.Fatalf("push answered %v, %v; want nil, %v", displaced, ok, want)
				}
				if ok {
					model = append(model, w)
				}
			},
			"pop": func(t *rapid.T) {
				i := slices.IndexFunc(model, func(w *Waiter) bool { return !expired(w) })
				var want *Waiter
				if i >= 0 {
					want = model[i]
					model = slices.Delete(model, i, i+1)
				}
				if got := line.Pop(now); got != want {
					t.Fatalf("popped %v, want %v", got, want)
				}
			},
			"remove": func(t *rapid.T) {
				w := rapid.SampledFrom(pool).Draw(t, "waiter")
				i := slices.Index(model, w)
				if i >= 0 {
					model = slices.Delete(model, i, i+1)
				}
				if got := line.Remove(w); got != (i >= 0) {
					t.Fatalf("removed %v, want %v", got, i >= 0)
				}
			},
			"expire": func(t *rapid.T) {
				var want, got []*Waiter
				for _, w := range model {
					if expired(w) {
						want = append(want, w)
					}
				}
				model = slices.DeleteFunc(model, expired)
				for w := line.Expire(now); w != nil; w = w.Next {
					got = append(got, w)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("expired %v, want %v", got, want)
				}
			},
			"wait": func(t *rapid.T) { now += time.Duration(rapid.IntRange(0, 10).Draw(t, "time")) },
			"": func(t *rapid.T) {
				var standing []*Waiter
				for w := line.head; w != nil; w = w.next {
					standing = append(standing, w)
				}
				if !slices.Equal(standing, model) || line.Len() != len(model) || line.Cap() != capacity {
					t.Fatalf("the line is %v (%d of %d), want %v", standing, line.Len(), line.Cap(), model)
				}
			},
		})
	})
}

func TestAWaiterIsRemovedOnlyFromItsOwnLine(t *testing.T) {
	one, other, w := NewFIFO(1), NewFIFO(1), &Waiter{Deadline: 1}
	one.Push(0, w)
	if _, ok := other.Push(0, w); ok {
		t.Error("a waiter stood in two lines")
	}
	if other.Remove(w) || one.Len() != 1 {
		t.Error("another line took the waiter out")
	}
	if !one.Remove(w) || !joined(other.Push(0, w)) {
		t.Error("a waiter that left could not join another line")
	}
}

func TestFIFORefusesNobodyAtAll(t *testing.T) {
	f := NewFIFO(-5)
	if joined(f.Push(0, nil)) || f.Remove(nil) || f.Cap() != 0 {
		t.Error("nil or a negative capacity was taken for something")
	}
}

func TestFIFOAheadForetellsPush(t *testing.T) {
	f := NewFIFO(2)
	for want := range 3 {
		w := &Waiter{Deadline: 1}
		n, ok := f.Ahead(0, w)
		if n != want || ok != joined(f.Push(0, w)) {
			t.Errorf("with %d in a line of 2: ahead %d, would join %v", want, n, ok)
		}
		if want == 2 {
			break
		}
	}
}

func TestFIFODoesNotAllocate(t *testing.T) {
	f, w, x := NewFIFO(2), &Waiter{Deadline: 2}, &Waiter{Deadline: 1}
	if n := testing.AllocsPerRun(100, func() {
		f.Push(0, w)
		f.Push(0, x)
		f.Expire(1)
		f.Remove(w)
		f.Push(0, w)
		f.Pop(0)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkFIFOPushPop(b *testing.B) {
	f := NewFIFO(200)
	waiters := make([]Waiter, 200)
	for i := range waiters[1:] {
		waiters[i+1].Deadline = 1
		f.Push(0, &waiters[i+1])
	}
	w := &waiters[0]
	w.Deadline = 1
	b.ReportAllocs()
	for b.Loop() {
		f.Expire(0)
		f.Push(0, w)
		w = f.Pop(0)
	}
}

// joined drops whom a push displaced.
func joined(_ *Waiter, ok bool) bool { return ok }
