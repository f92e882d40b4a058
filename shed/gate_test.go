package shed

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spillway-go/spillway/limits/concurrency"
	"github.com/spillway-go/spillway/queue"
)

const ms = time.Millisecond

// newGate returns a gate with a fixed limit.
func newGate(t testing.TB, limit, capacity int, maxWait time.Duration) *gate {
	t.Helper()
	return newGateWith(t, limit, queue.NewFIFO(capacity), maxWait)
}

func newGateWith(t testing.TB, limit int, line queue.Line, maxWait time.Duration) *gate {
	t.Helper()
	e, err := concurrency.New(concurrency.Config{Algorithm: "fixed", Min: 1, Max: limit, Initial: limit})
	if err != nil {
		t.Fatal(err)
	}
	return &gate{estimate: e, floor: 1, line: line, places: places{capacity: line.Cap()}, maxWait: maxWait}
}

func newTicket() *ticket {
	t := &ticket{}
	t.Owner = t
	return t
}

// woken returns the tickets whose wait an answer ends, in order.
func woken(a answer) []*ticket {
	var all []*ticket
	for w := a.wake; w != nil; w = w.Next {
		all = append(all, ticketOf(w))
	}
	return all
}

func TestExactlyTheLimitRuns(t *testing.T) {
	g := newGate(t, 3, 0, 100*ms)
	for i := range 3 {
		if k := newTicket(); g.Offer(0, k).waiting || k.slot == nil {
			t.Fatalf("request %d of 3 did not run", i+1)
		}
	}
	k := newTicket()
	if g.Offer(0, k); k.slot != nil || k.reason != Overloaded {
		t.Fatalf("the fourth: slot %v, reason %q, want refused as overloaded", k.slot, k.reason)
	}
}

func TestTheLineIsServedInOrder(t *testing.T) {
	g := newGate(t, 1, 3, 100*ms)
	running := newTicket()
	g.Offer(0, running)
	var line []*ticket
	for range 3 {
		k := newTicket()
		if !g.Offer(0, k).waiting {
			t.Fatal("there was a place in the line")
		}
		line = append(line, k)
	}
	late := newTicket()
	if g.Offer(0, late); late.reason != QueueFull {
		t.Fatalf("the line is full, reason %q", late.reason)
	}
	for i, want := range line {
		now := time.Duration(i+1) * ms
		a, ok := g.Done(now, running.slot, running.generation, Success)
		if got := woken(a); !ok || len(got) != 1 || got[0] != want || want.slot == nil {
			t.Fatalf("turn %d went to %v", i, got)
		}
		running = want
	}
	g.Done(10*ms, running.slot, running.generation, Success)
	if g.inFlight != 0 || g.line.Len() != 0 {
		t.Fatalf("idle gate has %d in flight, %d waiting", g.inFlight, g.line.Len())
	}
}

func TestALateSecondDoneEndsNobodyElsesWork(t *testing.T) {
	g := newGate(t, 1, 0, 100*ms)
	first := newTicket()
	g.Offer(0, first)
	slot, generation := first.slot, first.generation
	g.Done(ms, slot, generation, Success)
	second := newTicket()
	g.Offer(2*ms, second)
	if second.slot != slot {
		t.Fatal("the slot was not used again; the test proves nothing")
	}
	if _, ok := g.Done(3*ms, slot, generation, Success); ok || g.inFlight != 1 {
		t.Fatalf("a second Done of the first permit: ended %v, in flight %d", ok, g.inFlight)
	}
}

func TestNobodyStartsAfterTheWaitLimit(t *testing.T) {
	g := newGate(t, 1, 5, 100*ms)
	running, patient := newTicket(), newTicket()
	g.Offer(0, running)
	g.Offer(0, patient)
	a, _ := g.Done(100*ms, running.slot, running.generation, Success)
	if got := woken(a); len(got) != 0 {
		t.Fatalf("granted at its deadline: %v", got)
	}
	if got := woken(g.Expire(100 * ms)); len(got) != 1 || got[0].reason != WaitExpired || got[0].slot != nil {
		t.Fatalf("expired: %v", got)
	}
}

func TestTheCallersDeadlineEndsTheWait(t *testing.T) {
	g := newGate(t, 1, 5, 100*ms)
	g.Offer(0, newTicket())
	hurried := newTicket()
	hurried.hard = 30 * ms
	if !g.Offer(0, hurried).waiting || hurried.Deadline != 30*ms {
		t.Fatalf("deadline in the line %v, want 30ms", hurried.Deadline)
	}
	if got := woken(g.Expire(30 * ms)); len(got) != 1 || got[0].reason != Deadline {
		t.Fatalf("expired: %v", got)
	}
}

// teach lets the gate see that work takes d.
func teach(g *gate, d time.Duration) {
	for range 3 * latencyBlock {
		g.latency.add(0, d)
	}
}

func TestWhoCannotBeServedInTimeIsRefusedAtOnce(t *testing.T) {
	g := newGate(t, 2, 100, 100*ms)
	teach(g, 20*ms)
	for range 2 {
		g.Offer(0, newTicket())
	}
	// Each place in the line costs 20ms/2; the seventh waits 70 ms, below 0.6 of the budget of 125 ms; the eighth would not.
	for i := range 7 {
		if !g.Offer(0, newTicket()).waiting {
			t.Fatalf("place %d was refused", i+1)
		}
	}
	k := newTicket()
	if a := g.Offer(0, k); a.waiting || k.reason != Overloaded || a.drain != 100*ms {
		t.Fatalf("the eighth: waiting %v, reason %q, drain %v", a.waiting, k.reason, a.drain)
	}
	hurried := newTicket()
	hurried.hard = 50 * ms
	if reason := g.Refuses(0, hurried); reason != Deadline {
		t.Fatalf("a caller with 50 ms left: %q, want deadline", reason)
	}
}

func TestOneHiccupDoesNotMakeTheLineLookLonger(t *testing.T) {
	var r recentLatency
	for range 3 * latencyBlock {
		r.add(0, 20*ms)
	}
	for range latencyBlock {
		r.add(0, 500*ms)
	}
	if got := r.typical(); got != 20*ms {
		t.Fatalf("typical latency after one bad block: %v", got)
	}
	for range latencyBlock {
		r.add(0, 500*ms)
	}
	if got := r.typical(); got != 500*ms {
		t.Fatalf("typical latency after two bad blocks: %v, want to believe it", got)
	}
}

// TestFewRequestsDoNotLeaveTheEstimateStale: at four slow requests a second 32 samples take eight seconds, each of the three means.
func TestFewRequestsDoNotLeaveTheEstimateStale(t *testing.T) {
	var r recentLatency
	now := 0 * ms
	for range 3 * latencyBlock {
		r.add(now, 20*ms)
	}
	for range 10 {
		now += 250 * ms
		r.add(now, 2000*ms)
	}
	if got := r.typical(); got != 2000*ms {
		t.Errorf("typical latency %v after 2.5 s of work that takes 2 s", got)
	}
	for range 2 * latencyFew {
		now += 15 * ms
		r.add(now, 20*ms)
	}
	if got := r.typical(); got != 20*ms {
		t.Errorf("typical latency %v after %d of 20 ms", got, 2*latencyFew)
	}
}

func TestLongLivedWorkHasItsOwnBudget(t *testing.T) {
	g := newGate(t, 1, 0, 100*ms)
	streams := &budget{max: 2}
	open := func() *ticket {
		k := newTicket()
		k.budget = streams
		g.Offer(0, k)
		return k
	}
	first, _ := open(), open()
	if k := open(); k.reason != Overloaded {
		t.Fatalf("third stream of two: %q", k.reason)
	}
	short := newTicket()
	if g.Offer(0, short); short.slot == nil {
		t.Fatal("streams took the place of a short request")
	}
	g.Done(time.Hour, first.slot, first.generation, Success)
	if g.latency.typical() != 0 {
		t.Error("an hour of streaming became a latency sample")
	}
	if k := open(); k.slot == nil {
		t.Error("the ended stream did not give its place back")
	}
}

func TestAStreamGivesItsPlaceBackAndIsCountedApart(t *testing.T) {
	g := newGate(t, 1, 3, 100*ms)
	stream, next := newTicket(), newTicket()
	g.Offer(0, stream)
	g.Offer(0, next)
	a, ok := g.Detach(ms, stream.slot, stream.generation)
	if got := woken(a); !ok || len(got) != 1 || got[0] != next || g.inFlight != 1 || g.streams.inUse != 1 {
		t.Fatalf("detached %v, woke %v, %d in flight, %d streams; want the next one to run", ok, got, g.inFlight, g.streams.inUse)
	}
	if _, again := g.Detach(ms, stream.slot, stream.generation); again {
		t.Error("detached twice")
	}
	g.Done(time.Hour, stream.slot, stream.generation, Success)
	g.Done(time.Hour, next.slot, next.generation, Ignored)
	if g.inFlight != 0 || g.streams.inUse != 0 || g.latency.typical() != 0 {
		t.Errorf("%d in flight, %d streams, latency %v after the end", g.inFlight, g.streams.inUse, g.latency.typical())
	}
	if _, late := g.Detach(time.Hour, stream.slot, stream.generation); late {
		t.Error("detached after its end")
	}
}

// greedyLine is a discipline with room for one, where the newcomer always displaces who is there.
type greedyLine struct{ there *queue.Waiter }

func (l *greedyLine) Ahead(time.Duration, *queue.Waiter) (int, bool) { return 0, true }
func (l *greedyLine) Expire(time.Duration) *queue.Waiter             { return nil }
func (l *greedyLine) Remove(*queue.Waiter) bool                      { return false }
func (l *greedyLine) Refused(time.Duration, *queue.Waiter)           {}

func (l *greedyLine) Push(_ time.Duration, w *queue.Waiter) (*queue.Waiter, bool) {
	displaced := l.there
	l.there = w
	return displaced, true
}
func (l *greedyLine) Pop(time.Duration) *queue.Waiter { w := l.there; l.there = nil; return w }
func (l *greedyLine) Len() int {
	if l.there == nil {
		return 0
	}
	return 1
}
func (l *greedyLine) Cap() int { return 1 }

func TestTheDisplacedAreToldSo(t *testing.T) {
	g := newGateWith(t, 1, &greedyLine{}, 100*ms)
	g.Offer(0, newTicket())
	first, second := newTicket(), newTicket()
	g.Offer(0, first)
	a := g.Offer(ms, second)
	if got := woken(a); !a.waiting || len(got) != 1 || got[0] != first || first.reason != Displaced {
		t.Fatalf("displaced: %v", got)
	}
}

// TestTheGateKeepsItsInvariants drives the gate with random steps. After each: as many slots are out as are counted, never
// more than the limit, and nobody who may still start waits while there is room.
func TestTheGateKeepsItsInvariants(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		limit := rapid.IntRange(1, 5).Draw(r, "limit")
		g := newGate(t, limit, rapid.IntRange(0, 4).Draw(r, "places"), 50*ms)
		drive(r, g, limit)
	})
}

func drive(r *rapid.T, g *gate, limit int) {
	now := ms
	var running, waiting []*ticket
	settle := func(a answer) {
		for _, k := range woken(a) {
			for i, w := range waiting {
				if w == k {
					waiting = append(waiting[:i], waiting[i+1:]...)
					break
				}
			}
			if k.slot != nil {
				running = append(running, k)
			}
		}
	}
	for range rapid.IntRange(1, 60).Draw(r, "steps") {
		now += time.Duration(rapid.IntRange(0, 30).Draw(r, "later")) * ms
		switch rapid.IntRange(0, 4).Draw(r, "step") {
		case 0, 1:
			k := newTicket()
			a := g.Offer(now, k)
			switch {
			case a.waiting:
				waiting = append(waiting, k)
			case k.slot != nil:
				running = append(running, k)
			}
			settle(a)
		case 2:
			if len(running) > 0 {
				i := rapid.IntRange(0, len(running)-1).Draw(r, "who")
				k := running[i]
				running = append(running[:i], running[i+1:]...)
				a, ok := g.Done(now, k.slot, k.generation, Outcome(rapid.IntRange(0, 2).Draw(r, "outcome")))
				if !ok {
					r.Fatal("a permit that was out could not be ended")
				}
				settle(a)
				if _, again := g.Done(now, k.slot, k.generation, Success); again {
					r.Fatal("a permit ended twice")
				}
			}
		case 3:
			if len(waiting) > 0 {
				i := rapid.IntRange(0, len(waiting)-1).Draw(r, "who")
				if !g.Leave(now, waiting[i]) {
					r.Fatal("who waits could not leave")
				}
				waiting = append(waiting[:i], waiting[i+1:]...)
			}
		case 4:
			settle(g.Tick(now, 0, true, nil))
		}
		if g.inFlight != len(running) || g.inFlight > limit {
			r.Fatalf("in flight %d, out %d, limit %d", g.inFlight, len(running), limit)
		}
		if g.line.Len() != len(waiting) {
			r.Fatalf("line %d, waiting %d", g.line.Len(), len(waiting))
		}
		for _, k := range waiting {
			if g.inFlight < limit && k.Deadline > now {
				r.Fatalf("someone waits until %v at %v with %d of %d in flight", k.Deadline, now, g.inFlight, limit)
			}
		}
	}
}
