package queue

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// waiter is one that waits as long as it takes.
func waiter(client string, priority int) *Waiter {
	return &Waiter{Client: client, Priority: priority, Deadline: math.MaxInt64}
}

func TestEveryPriorityGetsItsPromisedTurn(t *testing.T) {
	line := NewFair(100)
	var passed [4]int // turns since the priority's last
	var longest [4]int
	for range 10 * PromisedTurn {
		for p := LowestPriority; p <= HighestPriority; p++ {
			for line.Waiting(p) < 5 {
				line.Push(0, waiter("ann", p))
			}
		}
		w := line.Pop(0)
		for i := range passed {
			passed[i]++
			if i == w.Priority-LowestPriority {
				passed[i] = 0
			}
			longest[i] = max(longest[i], passed[i])
		}
	}
	if longest[3] > 3 {
		t.Errorf("the highest priority was passed over %d times in a row by three promised turns", longest[3])
	}
	// The lowest may find the promised turns of two others before its own.
	for i, n := range longest[:3] {
		if n < PromisedTurn-1 || n > PromisedTurn+1 {
			t.Errorf("priority %d was passed over up to %d times in a row, promised is one in %d", i+LowestPriority, n, PromisedTurn)
		}
	}
}

// TestAPromisedTurnIsTakenInAFullLine: a line that important waiters keep full must not turn the promise into nothing.
func TestAPromisedTurnIsTakenInAFullLine(t *testing.T) {
	const capacity = 10
	line, served, refused := NewFair(capacity), 0, 0
	for range 20 * PromisedTurn {
		line.Push(0, waiter("low", LowestPriority))
		for range 3 {
			if _, ok := line.Push(0, waiter("high", HighestPriority)); !ok {
				refused++
			}
		}
		if line.Pop(0).Priority == LowestPriority {
			served++
		}
	}
	if served < 19 || served > 21 || refused == 0 {
		t.Errorf("the lowest priority had %d of %d turns, want one in %d; %d of the highest were refused",
			served, 20*PromisedTurn, PromisedTurn, refused)
	}
}

func TestAheadForetellsTheTurn(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		line := NewFair(100)
		for range random.IntN(60) {
			line.Push(0, waiter("client"+strconv.Itoa(random.IntN(6)), 0))
		}
		for range random.IntN(30) {
			line.Pop(0)
		}
		for range random.IntN(10) {
			line.Push(0, waiter("vip", 1))
		}
		w := waiter("client"+strconv.Itoa(random.IntN(8)), 0)
		f := line.tiers[tierOf(0)].clients.find(w.Client)
		others := line.tiers[tierOf(0)].active
		expected, ok := line.Ahead(0, w)
		if _, joined := line.Push(0, w); !ok || !joined {
			t.Fatal("there was room")
		}
		n := 0
		for line.Pop(0) != w {
			n++
		}
		if f == nil && n != expected || n > expected || n <= expected-others && others > 0 {
			t.Fatalf("round %d: %d were served before %s with %d clients waiting, foretold %d", round, n, w.Client, others, expected)
		}
	}
}

func TestAheadOfTheLowestIsBoundedByItsPromise(t *testing.T) {
	line := NewFair(1000)
	for range 500 {
		line.Push(0, waiter("ann", HighestPriority))
	}
	for want := range 3 { // each of the three lower priorities by its own count of turns
		w := waiter("ben", LowestPriority)
		if n, _ := line.Ahead(0, w); n != PromisedTurn*(want+1)-1 {
			t.Errorf("with %d before it at the lowest priority: %d ahead", want, n)
		}
		line.Push(0, w)
	}
}

// TestASurgeLeavesFewPlaces: with the newest first most are refused at once, but nobody who has less than the most greedy.
func TestASurgeLeavesFewPlaces(t *testing.T) {
	line := NewFair(1000)
	for at := range time.Duration(4) {
		line.Refused(at*100*time.Millisecond, waiter("", 0))
	}
	now := 300 * time.Millisecond
	for i := range 2 * surgePlaces {
		_, foreseen := line.Ahead(now, waiter("greedy", 0))
		if _, ok := line.Push(now, waiter("greedy", 0)); ok != (i < surgePlaces) || foreseen != ok {
			t.Fatalf("greedy's number %d: in %v, foreseen %v", i+1, ok, foreseen)
		}
	}
	oldest := line.tiers[tierOf(0)].byLen[surgePlaces].head.oldest
	if displaced, ok := line.Push(now, waiter("modest", 0)); !ok || displaced != oldest {
		t.Errorf("another client: %v, displaced %+v, want the oldest", ok, displaced)
	}
	if displaced, ok := line.Push(now, waiter("greedy", 1)); !ok || displaced != nil {
		t.Error("another priority has places of its own")
	}
}

// TestClientsCostMemoryOnlyWhileTheyWait lets a stream of clients pass, each leaving with a debt.
func TestClientsCostMemoryOnlyWhileTheyWait(t *testing.T) {
	const capacity = 2
	line, most := NewFair(capacity), 0
	tier := &line.tiers[tierOf(0)]
	patient := waiter("patient", 0)
	patient.Cost = maxCost
	line.Push(0, patient)
	line.Push(0, waiter("patient", 0))
	line.Pop(0) // the second waits far beyond its share, so that whoever comes goes first
	for i := range 10_000 {
		w := waiter(strconv.Itoa(i), 0)
		w.Cost = maxCost >> (1 + 2*(i%9)) // each debt outlives all later ones
		line.Push(0, w)
		if line.Pop(0) != w {
			line.Push(0, waiter("patient", 0))
			line.Remove(w)
		}
		if n := tier.clients.len; n > 2*capacity {
			t.Fatalf("%d clients are known in a line of %d", n, capacity)
		}
		most = max(most, tier.debtors)
	}
	if broken := check(line); broken != "" || most != capacity {
		t.Fatalf("%s; %d debtors at most: the test has not reached the bound", broken, most)
	}
}

// TestStepsGrowWithTheLogarithm counts comparisons, not time, with 10 000 waiting.
func TestStepsGrowWithTheLogarithm(t *testing.T) {
	const n = 10_000
	for _, c := range []struct {
		name    string
		clients int
		newest  bool
	}{{"one client", 1, false}, {"many clients", 3000, false}, {"each its own", n, false}, {"newest first", 3000, true}} {
		t.Run(c.name, func(t *testing.T) {
			line := NewFair(2 * n)
			steps := 0
			counted(line, &steps)
			random := rand.New(rand.NewPCG(3, 4))
			draw := func(now time.Duration) *Waiter {
				w := waiter(strconv.Itoa(random.IntN(c.clients)), random.IntN(2))
				if c.newest { // expiring is what keeps the newest first
					w.Deadline = now + time.Second + time.Duration(random.IntN(1000))*time.Millisecond
				}
				return w
			}
			for range n {
				line.Push(0, draw(0))
			}
			if c.newest {
				for p := range 2 {
					for at := range time.Duration(4) {
						line.Refused(at*100*time.Millisecond, waiter("", p))
					}
				}
			}
			const rounds = 5000
			steps = 0
			waiting := line.Len()
			for i := range rounds {
				now := time.Duration(i) * 400 * time.Microsecond
				w := draw(now)
				line.Ahead(now, w)
				line.Push(now, w)
				line.Pop(now)
				for w := line.Expire(now); w != nil; w = w.Next {
					line.Push(now, draw(now))
				}
			}
			if line.tiers[tierOf(0)].newest != c.newest {
				t.Error("the order has changed under way")
			}
			perRound := float64(steps) / rounds
			if limit := 12 * math.Log2(n); perRound > limit {
				t.Errorf("%.0f comparisons for each arrival and turn with %d waiting, want at most %.0f", perRound, waiting, limit)
			}
		})
	}
}

// counted adds up the comparisons of all of the line's heaps.
func counted(line *Fair, steps *int) {
	for i := range line.tiers {
		for _, h := range []*heap[*flow]{&line.tiers[i].ready, &line.tiers[i].later} {
			before := h.before
			h.before = func(a, b *flow) bool { *steps++; return before(a, b) }
		}
	}
	before := line.deadline.before
	line.deadline.before = func(a, b *Waiter) bool { *steps++; return before(a, b) }
}

func TestFairDoesNotAllocate(t *testing.T) {
	line := NewFair(50)
	pool := make([]*Waiter, 64)
	for i := range pool {
		pool[i] = &Waiter{}
	}
	names := make([]string, 1000)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	random := rand.New(rand.NewPCG(5, 6))
	now := time.Duration(0)
	steps := func() {
		for range 200 {
			now += time.Millisecond
			w := pool[random.IntN(len(pool))]
			if w.line != nil {
				line.Remove(w)
			}
			w.Client, w.Priority, w.Cost = names[random.IntN(len(names))], random.IntN(4)-2, int64(random.IntN(9))
			w.Deadline = now + time.Duration(random.IntN(100))*time.Millisecond
			line.Ahead(now, w)
			line.Push(now, w)
			if random.IntN(2) == 0 {
				line.Pop(now)
			}
			line.Expire(now)
		}
	}
	for range 20 { // until it has grown to what it holds
		steps()
	}
	if n := testing.AllocsPerRun(50, steps); n != 0 {
		t.Errorf("%v allocations in 200 steps, want none", n)
	}
}

func TestTagsMayWrapRound(t *testing.T) {
	line := NewFair(10)
	tier := &line.tiers[tierOf(0)]
	tier.clock = math.MaxInt64 - scale
	for range 3 {
		line.Push(0, waiter("ann", 0))
		line.Push(0, waiter("ben", 0))
		line.Push(0, waiter("cat", 0))
	}
	got := ""
	for w := line.Pop(0); w != nil; w = line.Pop(0) {
		got += w.Client[:1]
	}
	if got != "abcabcabc" || tier.clock > 0 {
		t.Errorf("served in the order %s, clock %d", got, tier.clock)
	}
}

func TestGreediestNamesThoseWithTheMostWaiters(t *testing.T) {
	line := NewFair(20)
	for client, n := range map[string]int{"ann": 5, "ben": 2, "cat": 1} {
		for range n {
			line.Push(0, waiter(client, -1))
		}
	}
	line.Push(0, waiter("dan", 1))
	line.Push(0, waiter("dan", 1))
	got := line.Greediest(3)
	want := []Backlog{{"ann", -1, 5}, {"dan", 1, 2}, {"ben", -1, 2}}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %v, want %v", got, want)
	}
	if line.Waiting(-1) != 8 || line.Waiting(1) != 2 || line.Waiting(0) != 0 {
		t.Errorf("waiting by priority: %d, %d, %d", line.Waiting(-1), line.Waiting(1), line.Waiting(0))
	}
}

// BenchmarkFairPushPop is one arrival and one turn in a line of 200, of one client and of 200.
func BenchmarkFairPushPop(b *testing.B) {
	for _, clients := range []int{1, 200} {
		b.Run(strconv.Itoa(clients), func(b *testing.B) {
			line := NewFair(200)
			waiters := make([]Waiter, 200)
			for i := range waiters {
				waiters[i] = Waiter{Client: strconv.Itoa(i % clients), Deadline: time.Second}
			}
			for i := range waiters[1:] {
				line.Push(0, &waiters[i+1])
			}
			w := &waiters[0]
			b.ReportAllocs()
			for b.Loop() {
				line.Expire(0)
				line.Ahead(0, w)
				line.Push(0, w)
				w = line.Pop(0)
			}
		})
	}
}
