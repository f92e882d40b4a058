package shed

import (
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/queue"
)

// newFairGate returns a gate with a fixed limit and the line that a Shedder has.
func newFairGate(t testing.TB, limit, places int) *gate {
	t.Helper()
	return newGateWith(t, limit, queue.NewFair(places), 100*ms)
}

func ticketFor(client string, p Priority) *ticket {
	t := newTicket()
	t.Client, t.Priority = client, int(p)
	return t
}

// granted ends running's work and returns who got its slot.
func granted(t *testing.T, g *gate, running *ticket) *ticket {
	t.Helper()
	a, ok := g.Done(ms, running.slot, running.generation, Ignored)
	got := woken(a)
	if !ok || len(got) != 1 || got[0].slot == nil {
		t.Fatalf("the slot went to %v", got)
	}
	return got[0]
}

func TestTheImportantAreServedFirstAndTheGreedyLast(t *testing.T) {
	g := newFairGate(t, 1, 10)
	running := ticketFor("ann", Critical)
	g.Offer(0, running)
	greedy1, greedy2 := ticketFor("ann", Critical), ticketFor("ann", Critical)
	modest, vital, background := ticketFor("ben", Critical), ticketFor("ann", CriticalPlus), ticketFor("cat", Sheddable)
	for _, k := range []*ticket{background, greedy1, greedy2, modest, vital} {
		if !g.Offer(0, k).waiting {
			t.Fatal("there was a place in the line")
		}
	}
	for i, want := range []*ticket{vital, greedy1, modest, greedy2, background} {
		if running = granted(t, g, running); running != want {
			t.Fatalf("turn %d went to %s, priority %d", i+1, running.Client, running.Priority)
		}
	}
}

func TestAFullLineDisplacesTheLeastImportant(t *testing.T) {
	g := newFairGate(t, 1, 2)
	g.Offer(0, ticketFor("ann", Critical))
	first, second := ticketFor("ben", Sheddable), ticketFor("ben", Sheddable)
	g.Offer(0, first)
	g.Offer(0, second)
	if k := ticketFor("cat", Sheddable); g.Refuses(0, k) != "" || !g.Offer(0, k).waiting || second.reason != Displaced {
		t.Fatalf("the second of ben's: %q, want displaced by another client", second.reason)
	}
	a := g.Offer(0, ticketFor("ann", Critical))
	if got := woken(a); !a.waiting || len(got) != 1 || got[0].reason != Displaced || got[0].Priority != int(Sheddable) {
		t.Fatalf("displaced: %v", got)
	}
	if k := ticketFor("dan", Sheddable); g.Refuses(0, k) != QueueFull {
		t.Fatal("with nobody below there is nobody to displace")
	}
}

// TestTheEstimateKnowsPriorityAndClient: the line is too long for who would come last, and short for who would not.
func TestTheEstimateKnowsPriorityAndClient(t *testing.T) {
	g := newFairGate(t, 1, 100)
	teach(g, 20*ms)
	g.Offer(0, ticketFor("ann", Critical))
	for range 3 { // 20 ms each; 75 ms is the longest estimate
		g.Offer(0, ticketFor("ann", Critical))
	}
	for _, c := range []struct {
		why  string
		k    *ticket
		want Reason
	}{
		{"ann's next stands behind her others", ticketFor("ann", Critical), Overloaded},
		{"another client waits for one turn of hers", ticketFor("ben", Critical), ""},
		{"who is more important waits for nobody", ticketFor("ann", CriticalPlus), ""},
		{"who is less important waits for all", ticketFor("ben", Sheddable), Overloaded},
	} {
		if got := g.Refuses(0, c.k); got != c.want {
			t.Errorf("%s: %q, want %q", c.why, got, c.want)
		}
	}
}

// TestTheDeadlineIsCheckedAgainAtTheTurn: work has become slower since the ticket was let in.
func TestTheDeadlineIsCheckedAgainAtTheTurn(t *testing.T) {
	g := newFairGate(t, 1, 10)
	teach(g, 10*ms)
	running, hurried, patient := newTicket(), newTicket(), newTicket()
	hurried.hard = 60 * ms
	g.Offer(0, running)
	if !g.Offer(0, hurried).waiting || hurried.Deadline != 45*ms {
		t.Fatalf("may wait until %v, want 45ms: 1.5 × 10 ms before its deadline", hurried.Deadline)
	}
	g.Offer(0, patient)
	teach(g, 40*ms)
	a, _ := g.Done(20*ms, running.slot, running.generation, Ignored)
	if got := woken(a); !slices.Equal(got, []*ticket{hurried, patient}) || hurried.slot != nil || hurried.reason != Deadline || patient.slot == nil {
		t.Fatalf("woken %v: who has 40 ms left for 60 ms of work is refused, and the next one runs", got)
	}
	if g.inFlight != 1 {
		t.Errorf("in flight %d", g.inFlight)
	}
}

// newestFirst reports the order of the gate's line.
func newestFirst(g *gate, now time.Duration) bool {
	return g.line.(*queue.Fair).NewestFirst(now, int(Critical))
}

// TestLastingRefusalsTurnTheLineRound: 300 ms of refusals by the gate, before anybody stands in the line, count.
func TestLastingRefusalsTurnTheLineRound(t *testing.T) {
	g := newFairGate(t, 1, 100)
	teach(g, 80*ms) // no wait is short enough
	g.Offer(0, newTicket())
	for now := 0 * ms; now <= 300*ms; now += 100 * ms {
		if newestFirst(g, now) {
			t.Fatalf("turned round at %v", now-100*ms)
		}
		if g.Refuses(now, newTicket()) != Overloaded {
			t.Fatal("80 ms are too long to wait")
		}
	}
	if !newestFirst(g, 300*ms) {
		t.Error("not turned round after 300 ms")
	}
	if g.Refuses(301*ms, newTicket()) != Overloaded {
		t.Error("not even the newest is served within 75 ms")
	}
}

func TestWhileRefusalsLastNobodyWaitsToTheEnd(t *testing.T) {
	g := newFairGate(t, 1, 100)
	teach(g, 10*ms)
	g.Offer(0, newTicket())
	before := newTicket()
	if g.Offer(0, before); before.Deadline != g.maxWait {
		t.Fatalf("without refusals one may wait until %v, want %v", before.Deadline, g.maxWait)
	}
	for now := 0 * ms; now <= 300*ms; now += 100 * ms {
		g.line.Refused(now, &newTicket().Waiter)
	}
	during := newTicket()
	if g.Offer(300*ms, during); during.Deadline != 300*ms+g.maxWait/4*3 {
		t.Fatalf("while refusals last one may wait until %v, want 300ms and three quarters of %v", during.Deadline, g.maxWait)
	}
}

func TestWhoCouldNotBeServedAnywayDoesNotTurnTheLineRound(t *testing.T) {
	g := newFairGate(t, 1, 100)
	teach(g, 80*ms)
	g.Offer(0, newTicket())
	for now := 0 * ms; now <= 1000*ms; now += 100 * ms {
		hopeless := newTicket()
		hopeless.hard = now + 50*ms
		if g.Refuses(now, hopeless) != Deadline || newestFirst(g, now) {
			t.Fatal("50 ms are not enough for 80 ms of work, in no line")
		}
	}
}

// TestWhoWaitedTooLongTurnsTheLineRound: the caller's own timer ends most waits, before the line sees that they are over.
func TestWhoWaitedTooLongTurnsTheLineRound(t *testing.T) {
	for _, c := range []struct {
		why    string
		waited time.Duration
		want   bool
	}{{"waited in vain", 100 * ms, true}, {"gone by itself", 99 * ms, false}} {
		g := newFairGate(t, 1, 100)
		g.Offer(0, newTicket())
		for now := 0 * ms; now <= 300*ms; now += 100 * ms {
			k := newTicket()
			if !g.Offer(now, k).waiting || !g.Leave(now+c.waited, k) {
				t.Fatal("there was a place in the line")
			}
		}
		if got := newestFirst(g, 400*ms); got != c.want {
			t.Errorf("%s: newest first %v", c.why, got)
		}
	}
}

func TestCloseTellsThoseWhoseTimeIsUpToo(t *testing.T) {
	g := newFairGate(t, 1, 10)
	running := newTicket()
	g.Offer(0, running)
	late, other := newTicket(), newTicket()
	g.Offer(0, late)
	g.Offer(50*ms, other)
	a, _ := g.Done(100*ms, running.slot, running.generation, Success) // passes over who may not start any more
	if got := woken(a); len(got) != 1 || got[0] != other {
		t.Fatalf("granted: %v", got)
	}
	if got := woken(g.Empty(reasonClosed)); len(got) != 1 || got[0] != late || late.reason != reasonClosed || g.line.Len() != 0 {
		t.Fatalf("told of the end: %v", got)
	}
}
