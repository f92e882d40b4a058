package queue

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// modelLine is what a Fair should do, written for the reader: slices that are searched from end to end, no heap, no table, no
// count that could disagree with what it counts.
type modelLine struct {
	capacity   int
	tiers      [4]modelTier // sheddable first
	overdue    []*Waiter
	lastChange int
}

type modelTier struct {
	clock   int64
	passed  int
	clients []*modelClient

	refusals []time.Duration
	newest   bool
}

// modelClient has a claim once the clock has reached its tag; turn orders those who have.
type modelClient struct {
	name    string
	tag     int64
	turn    int // when it got or lost its claim
	resized int // when its number of waiters changed
	waiters []*Waiter
}

func (m *modelLine) next() int { m.lastChange++; return m.lastChange }

func (m *modelLine) tier(w *Waiter) *modelTier { return &m.tiers[w.Priority+2] }

func (t *modelTier) len() (n int) {
	for _, c := range t.clients {
		n += len(c.waiters)
	}
	return n
}

func (t *modelTier) client(name string) *modelClient {
	for _, c := range t.clients {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (m *modelLine) len() int {
	n := len(m.overdue)
	for i := range m.tiers {
		n += m.tiers[i].len()
	}
	return n
}

// refuse notes a refusal. The newest goes first when a run of refusals without a gap of 200 ms is 300 ms long.
func (t *modelTier) refuse(now time.Duration) {
	t.look(now)
	t.refusals = append(t.refusals, now)
	start := now
	for _, at := range slices.Backward(t.refusals) {
		if start-at >= 200*time.Millisecond {
			break
		}
		start = at
	}
	t.newest = t.newest || now-start >= 300*time.Millisecond
}

// look ends newest-first one second after the last refusal.
func (t *modelTier) look(now time.Duration) {
	if t.newest && now-t.refusals[len(t.refusals)-1] >= time.Second {
		t.newest = false
		t.refusals = nil
	}
}

func (m *modelLine) push(now time.Duration, w *Waiter) (*Waiter, bool) {
	for i := range m.tiers {
		m.tiers[i].look(now)
	}
	t := m.tier(w)
	var displaced *Waiter
	if crowded := t.newest && t.len() >= 32; crowded || m.len() >= m.capacity {
		displaced = m.victim(w, crowded)
		if displaced == nil {
			t.refuse(now)
			return nil, false
		}
		m.drop(displaced)
		m.tier(displaced).refuse(now)
	}
	c := t.client(w.Client)
	if c == nil {
		c = &modelClient{name: w.Client, tag: t.clock, turn: m.next()}
		t.clients = append(t.clients, c)
	}
	c.waiters, c.resized = append(c.waiters, w), m.next()
	return displaced, true
}

func (m *modelLine) victim(w *Waiter, onlyMine bool) *Waiter {
	mine := m.tier(w)
	for i := range m.tiers {
		t := &m.tiers[i]
		if onlyMine && t != mine {
			continue
		}
		there := t.len()
		if t.passed == 31 {
			there--
		}
		if there <= 0 {
			continue
		}
		greedy := t.clients[0]
		for _, c := range t.clients {
			more := len(c.waiters) - len(greedy.waiters)
			if more > 0 || more == 0 && (c.resized < greedy.resized) == t.newest {
				greedy = c
			}
		}
		if t == mine {
			own := mine.client(w.Client)
			n := 0
			if own != nil {
				n = len(own.waiters)
			}
			if len(greedy.waiters) < n+2 {
				return nil
			}
		} else if i > w.Priority+2 && (mine.passed < 31 || mine.len() > 0) {
			return nil
		}
		if t.newest {
			return greedy.waiters[0]
		}
		return greedy.waiters[len(greedy.waiters)-1]
	}
	return nil
}

func (m *modelLine) drop(w *Waiter) bool {
	if i := slices.Index(m.overdue, w); i >= 0 {
		m.overdue = slices.Delete(m.overdue, i, i+1)
		return true
	}
	t := m.tier(w)
	c := t.client(w.Client)
	if c == nil || !slices.Contains(c.waiters, w) {
		return false
	}
	c.waiters = slices.DeleteFunc(c.waiters, func(x *Waiter) bool { return x == w })
	c.resized = m.next()
	m.tidy(t)
	return true
}

// tidy forgets whom nothing is known about that matters: clients without waiters who are not in debt, or owe to nobody, or left
// before too many others.
func (m *modelLine) tidy(t *modelTier) {
	if t.len() == 0 {
		t.clock, t.clients = 0, nil
	}
	gone := func(c *modelClient) bool { return len(c.waiters) == 0 && c.tag <= t.clock }
	t.clients = slices.DeleteFunc(t.clients, gone)
	var debtors []*modelClient
	for _, c := range t.clients {
		if len(c.waiters) == 0 {
			debtors = append(debtors, c)
		}
	}
	if len(debtors) > m.capacity {
		first := slices.MinFunc(debtors, func(a, b *modelClient) int { return a.resized - b.resized })
		t.clients = slices.DeleteFunc(t.clients, func(c *modelClient) bool { return c == first })
	}
}

func (m *modelLine) aside(now time.Duration) {
	var expired []*Waiter
	for i := range m.tiers {
		for _, c := range m.tiers[i].clients {
			for _, w := range c.waiters {
				if w.Deadline <= now {
					expired = append(expired, w)
				}
			}
		}
	}
	slices.SortFunc(expired, func(a, b *Waiter) int { return int(a.Deadline - b.Deadline) })
	for _, w := range expired {
		m.drop(w)
	}
	m.overdue = append(m.overdue, expired...)
}

func (m *modelLine) pop(now time.Duration) *Waiter {
	m.aside(now)
	var t *modelTier
	for i := range m.tiers { // the last one that applies is the highest
		if m.tiers[i].len() > 0 {
			t = &m.tiers[i]
		}
	}
	for i := range m.tiers {
		if m.tiers[i].len() > 0 && m.tiers[i].passed == 31 {
			t = &m.tiers[i]
		}
	}
	if t == nil {
		return nil
	}
	for i := range m.tiers {
		m.tiers[i].passed = min(m.tiers[i].passed+1, 31)
	}
	t.passed = 0
	t.look(now)
	return m.serve(t)
}

func (m *modelLine) serve(t *modelTier) *Waiter {
	var waiting []*modelClient
	smallest := int64(1 << 62)
	for _, c := range t.clients {
		if len(c.waiters) > 0 {
			waiting = append(waiting, c)
			smallest = min(smallest, c.tag)
		}
	}
	m.advance(t, max(t.clock, smallest), nil)
	var best *modelClient
	var w *Waiter
	for _, c := range waiting {
		if c.tag > t.clock {
			continue
		}
		first, last := c.waiters[0], c.waiters[len(c.waiters)-1]
		switch {
		case t.newest && (best == nil || last.Arrived > w.Arrived):
			best, w = c, last
		case !t.newest && (best == nil || c.turn < best.turn):
			best, w = c, first
		}
	}
	cost := max(w.Cost, 1) << 20
	n := int64(len(waiting))
	best.tag += cost
	best.waiters = slices.DeleteFunc(best.waiters, func(x *Waiter) bool { return x == w })
	best.resized = m.next()
	m.advance(t, t.clock+(cost+n-1)/n, best)
	best.turn = m.next()
	m.tidy(t)
	return w
}

// advance moves the clock; whoever it reaches gets a claim, the smallest tag first. last has its place already.
func (m *modelLine) advance(t *modelTier, to int64, last *modelClient) {
	var reached []*modelClient
	for _, c := range t.clients {
		if c != last && c.tag > t.clock && c.tag <= to {
			reached = append(reached, c)
		}
	}
	slices.SortFunc(reached, func(a, b *modelClient) int {
		if a.tag != b.tag {
			return int(a.tag - b.tag)
		}
		return a.turn - b.turn
	})
	for _, c := range reached {
		c.turn = m.next()
	}
	t.clock = to
}

// TestFairAgreesWithAModel compares a Fair with the model, over any sequence of operations.
func TestFairAgreesWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.OneOf(rapid.IntRange(0, 8), rapid.IntRange(30, 50)).Draw(t, "capacity")
		line, model := NewFair(capacity), &modelLine{capacity: capacity}
		var standing []*Waiter
		var now time.Duration
		var arrivals time.Duration
		leave := func(w *Waiter) {
			standing = slices.DeleteFunc(standing, func(x *Waiter) bool { return x == w })
		}
		draw := func(t *rapid.T) *Waiter {
			arrivals++
			return &Waiter{
				Owner: int(arrivals), Arrived: arrivals,
				// No two deadlines are the same, for who expires first matters to what is left.
				Deadline: now + time.Duration(rapid.IntRange(-1, 400).Draw(t, "patience"))*time.Millisecond + arrivals,
				Client:   rapid.SampledFrom([]string{"", "ann", "ben", "cat", "dan"}).Draw(t, "client"),
				Priority: rapid.SampledFrom([]int{0, 0, 0, 1, -1, -2}).Draw(t, "priority"),
				Cost:     rapid.SampledFrom([]int64{0, 1, 1, 2, 7}).Draw(t, "cost"),
			}
		}
		push := func(t *rapid.T) {
			w := draw(t)
			_, foreseen := line.Ahead(now, w)
			want, wantOK := model.push(now, w)
			got, ok := line.Push(now, w)
			if got != want || ok != wantOK || foreseen != ok {
				t.Fatalf("push %+v answered %v, %v, foreseen %v; want %v, %v", w, got, ok, foreseen, want, wantOK)
			}
			if ok {
				standing = append(standing, w)
			}
			leave(got)
		}
		pop := func(t *rapid.T) {
			want := model.pop(now)
			if got := line.Pop(now); got != want {
				t.Fatalf("popped %+v, want %+v", got, want)
			}
			leave(want)
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": push, "push again": push, "pop": pop,
			"crowd": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "pushes") {
					push(t)
				}
			},
			"many turns": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "turns") {
					push(t)
					pop(t)
				}
			},
			"remove": func(t *rapid.T) {
				if len(standing) == 0 {
					return
				}
				w := rapid.SampledFrom(standing).Draw(t, "waiter")
				if !line.Remove(w) || line.Remove(w) || !model.drop(w) {
					t.Fatalf("%+v could not be removed once", w)
				}
				leave(w)
			},
			"expire": func(t *rapid.T) {
				model.aside(now)
				var got []*Waiter
				for w := line.Expire(now); w != nil; w = w.Next {
					got = append(got, w)
					leave(w)
				}
				for _, w := range model.overdue {
					model.tier(w).refuse(now)
				}
				byOwner := func(a, b *Waiter) int { return a.Owner.(int) - b.Owner.(int) }
				slices.SortFunc(got, byOwner)
				slices.SortFunc(model.overdue, byOwner)
				if !slices.Equal(got, model.overdue) {
					t.Fatalf("expired %v, want %v", got, model.overdue)
				}
				model.overdue = nil
			},
			"refuse": func(t *rapid.T) {
				w := draw(t)
				line.Refused(now, w)
				model.tier(w).refuse(now)
			},
			"wait": func(t *rapid.T) {
				now += time.Duration(rapid.SampledFrom([]int{1, 10, 100, 150, 200, 300}).Draw(t, "ms")) * time.Millisecond
			},
			"": func(t *rapid.T) {
				if broken := check(line); broken != "" || line.Len() != model.len() {
					t.Fatalf("%s; %d wait, want %d", broken, line.Len(), model.len())
				}
			},
		})
	})
}
