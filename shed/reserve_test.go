package shed

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spillway-go/spillway/queue"
)

func reserving(t testing.TB, limit int, share float64) *gate {
	g := newGateWith(t, limit, queue.NewFair(10), time.Second)
	g.reserve = share
	return g
}

// of is a ticket of that priority.
func of(p Priority) *ticket {
	t := newTicket()
	t.Priority = int(p)
	return t
}

func TestReservedPlacesAreForTheCriticalOnly(t *testing.T) {
	g := reserving(t, 10, .25) // 3 of 10
	for i := range 7 {
		if k := of(SheddablePlus); g.Offer(0, k).waiting || k.slot == nil {
			t.Fatalf("%d of the 7 places that are not reserved were given away", i)
		}
	}
	waits := of(SheddablePlus)
	if !g.Offer(0, waits).waiting {
		t.Fatal("a reserved place was given to somebody who is not critical")
	}
	var vital []*ticket
	for range 3 {
		k := of(Critical)
		if a := g.Offer(0, k); a.waiting || k.slot == nil || len(woken(a)) != 0 {
			t.Fatal("a critical request had to wait behind one that may not use the reserve")
		}
		vital = append(vital, k)
	}
	next := of(CriticalPlus)
	if !g.Offer(0, next).waiting {
		t.Fatal("more run than the limit allows")
	}
	a, _ := g.Done(ms, vital[0].slot, vital[0].generation, Success)
	if got := woken(a); len(got) != 1 || got[0] != next {
		t.Fatalf("the reserved place went to %v", got)
	}
	for i, k := range append(vital[1:], next) { // 10 run; those three are critical
		a, _ := g.Done(2*ms, k.slot, k.generation, Success)
		if got := woken(a); len(got) != 0 {
			t.Fatalf("after %d more ends a reserved place went to somebody who is not critical", i+1)
		}
	}
	if g.inFlight != 7 || g.line.Len() != 1 {
		t.Fatalf("%d run, %d wait", g.inFlight, g.line.Len())
	}
}

func TestWithoutAReserveAllPlacesAreForAll(t *testing.T) {
	g := reserving(t, 10, 0)
	for range 10 {
		if k := of(Sheddable); g.Offer(0, k).waiting || k.slot == nil {
			t.Fatal("refused although there was room")
		}
	}
}

func TestAReserveLeavesAPlaceForAll(t *testing.T) {
	g := reserving(t, 1, maxReserve)
	if k := of(Sheddable); g.Offer(0, k).waiting || k.slot == nil {
		t.Fatal("the only place is nobody's")
	}
}

func TestAReserveThatCannotBeMeantIsAnError(t *testing.T) {
	for _, share := range []float64{-.1, 1, .91, math.NaN(), math.Inf(1)} {
		if _, err := New(Config{Reserve: share}); err == nil {
			t.Errorf("%v: no error", share)
		}
	}
}

// TestNobodyWaitsForAPlaceThatIsFreeForIt holds after any sequence of events.
func TestNobodyWaitsForAPlaceThatIsFreeForIt(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		g := reserving(t, rapid.IntRange(1, 8).Draw(r, "limit"), float64(rapid.IntRange(0, 9).Draw(r, "tenths"))/10)
		var running []*ticket
		now := time.Duration(0)
		for range rapid.IntRange(1, 80).Draw(r, "steps") {
			now += ms
			var a answer
			if len(running) > 0 && rapid.Bool().Draw(r, "ends") {
				i := rapid.IntRange(0, len(running)-1).Draw(r, "which")
				k := running[i]
				running = append(running[:i], running[i+1:]...)
				a, _ = g.Done(now, k.slot, k.generation, Ignored)
			} else {
				k := of(Priority(rapid.IntRange(-2, 1).Draw(r, "priority")))
				if a = g.Offer(now, k); !a.waiting && k.slot != nil {
					running = append(running, k)
				}
			}
			for _, k := range woken(a) {
				if k.slot != nil {
					running = append(running, k)
				}
			}
			line := g.line.(*queue.Fair)
			vital := line.Waiting(int(Critical)) + line.Waiting(int(CriticalPlus))
			if g.inFlight != len(running) || g.inFlight > g.limit() {
				r.Fatalf("%d in flight, %d counted, limit %d", len(running), g.inFlight, g.limit())
			}
			if vital > 0 && g.inFlight < g.limit() || line.Len() > vital && g.inFlight < g.room(int(Sheddable)) {
				r.Fatalf("%d critical and %d others wait while %d of %d run", vital, line.Len()-vital, g.inFlight, g.limit())
			}
		}
	})
}
