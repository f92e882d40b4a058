package shed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// visitor is one request of a script: when it comes, how long its work takes, and how long its caller has patience.
type visitor struct {
	at, work, patience time.Duration
	client             string
	route              string
}

// fate is what became of a visitor.
type fate struct {
	reason Reason // "" when it ran, "gone" when its caller left first
	waited time.Duration
}

const gone Reason = "gone"

// crowd draws n visitors whose moments all differ, so that no order is left to chance.
func crowd(seed uint64, n int) []visitor {
	rng := rand.New(rand.NewPCG(seed, 7))
	all := make([]visitor, n)
	at := time.Duration(0)
	for i := range all {
		at += time.Duration(rng.Int64N(int64(4*time.Millisecond)))/1000*1000 + time.Duration(i%1000)
		all[i] = visitor{
			at: at, work: time.Duration(1+rng.Int64N(int64(20*time.Millisecond))) | 1, patience: time.Hour,
			client: fmt.Sprint("c", rng.IntN(3)), route: [...]string{"plain", "paced"}[rng.IntN(2)],
		}
		if rng.IntN(4) == 0 {
			all[i].patience = time.Duration(rng.Int64N(int64(40*time.Millisecond))) + 3
		}
	}
	return all
}

// script is a shedder with everything that can turn a request away or make it wait.
func script() Config {
	cfg := fixed(2, Queue{Capacity: 6, MaxWait: 30 * time.Millisecond})
	cfg.Routes = []Route{{Name: "plain"}, {Name: "paced"}}
	cfg.Limits = []Limit{
		{Name: "each", Rule: limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(100)}},
		{Name: "turns", Rule: limits.LeakyBucket{Capacity: 5, Leak: limits.PerSecond(150)}, Excess: Delay, Per: Global, Routes: []string{"paced"}},
	}
	return cfg
}

// lived runs the visitors through a Shedder, in a synctest bubble.
func lived(t *testing.T, cfg Config, all []visitor) []fate {
	fates := make([]fate, len(all))
	synctest.Test(t, func(t *testing.T) {
		s := open(t, cfg)
		var visits sync.WaitGroup
		for i, c := range all {
			visits.Go(func() {
				time.Sleep(c.at)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				leave := time.AfterFunc(c.patience, cancel)
				defer leave.Stop()
				began := time.Now()
				p, err := s.Admit(ctx, Request{Client: c.client, Route: c.route})
				fates[i].waited = time.Since(began)
				var r *Rejection
				switch {
				case errors.As(err, &r):
					fates[i].reason = r.Reason
				case err != nil:
					fates[i].reason = gone
				default:
					time.Sleep(c.work)
					p.Done(Success)
				}
			})
		}
		visits.Wait()
	})
	return fates
}

// driven runs the visitors through a Machine.
func driven(t *testing.T, cfg Config, all []visitor) []fate {
	m, err := NewMachine(cfg, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), 1)
	if err != nil {
		t.Fatal(err)
	}
	fates, jobs := make([]fate, len(all)), make([]Job, len(all))
	type event struct {
		at time.Duration
		do func(now time.Duration)
	}
	var agenda []event
	plan := func(at time.Duration, do func(time.Duration)) {
		i, _ := slices.BinarySearchFunc(agenda, at, func(e event, at time.Duration) int {
			if e.at <= at {
				return -1
			}
			return 1
		})
		agenda = slices.Insert(agenda, i, event{at, do})
	}
	var follow func(now time.Duration, i int)
	follow = func(now time.Duration, i int) {
		j, c := &jobs[i], all[i]
		switch j.State {
		case Parked, Standing:
			plan(j.Until, func(now time.Duration) {
				if before := j.State; before == Parked || before == Standing {
					m.TimeUp(now, j)
					follow(now, i)
				}
			})
		case Granted:
			fates[i].waited = now - c.at
			plan(now+c.work, func(now time.Duration) { m.Done(now, j, Success) })
		case TurnedAway:
			fates[i].waited, fates[i].reason = now-c.at, gone
			if j.Rejection != nil {
				fates[i].reason = j.Rejection.Reason
			}
		}
	}
	for i, c := range all {
		jobs[i].Owner = i
		plan(c.at, func(now time.Duration) {
			m.Admit(now, &jobs[i], Request{Client: c.client, Route: c.route})
			follow(now, i)
		})
		plan(c.at+c.patience, func(now time.Duration) {
			if s := jobs[i].State; s == Parked || s == Standing {
				m.Leave(now, &jobs[i])
				follow(now, i)
			}
		})
	}
	for len(agenda) > 0 {
		e := agenda[0]
		agenda = agenda[1:]
		e.do(e.at)
		for j := m.Woken(); j != nil; j = m.Woken() {
			follow(e.at, j.Owner.(int))
		}
	}
	if st := m.Status(); st.InFlight != 0 || st.Waiting != 0 {
		t.Errorf("at the end %d in flight, %d waiting", st.InFlight, st.Waiting)
	}
	return fates
}

// TestAMachineDecidesAsAShedderDoes drives both with the same visitors: everybody must meet the same fate after the same
// wait, to the nanosecond.
func TestAMachineDecidesAsAShedderDoes(t *testing.T) {
	seen := make(map[Reason]int)
	for seed := range uint64(5) {
		all := crowd(seed, 400)
		want, got := lived(t, script(), all), driven(t, script(), all)
		for i := range all {
			seen[want[i].reason]++
			if got[i] != want[i] {
				t.Fatalf("seed %d, visitor %d at %v: Machine %+v, Shedder %+v", seed, i, all[i].at, got[i], want[i])
			}
		}
	}
	for _, r := range []Reason{"", OverLimit, Overloaded, WaitExpired, gone} {
		if seen[r] == 0 {
			t.Errorf("nobody met %q, so it was not compared: %v", r, seen)
		}
	}
}

// TestTheComparisonSeesADifference is the control: one place more in the line must show.
func TestTheComparisonSeesADifference(t *testing.T) {
	all := crowd(1, 400)
	other := script()
	other.Queue.MaxWait += time.Millisecond
	if slices.Equal(driven(t, script(), all), driven(t, other, all)) {
		t.Fatal("a longer wait changes nobody's fate: the comparison is blind")
	}
}

func TestWhoLeavesAMachineIsChargedNothing(t *testing.T) {
	cfg := fixed(1, Queue{Capacity: 5, MaxWait: time.Second})
	cfg.Limits = []Limit{bucket("each", 2, 1)}
	m, err := NewMachine(cfg, time.Unix(1e9, 0), 1)
	if err != nil {
		t.Fatal(err)
	}
	var runs, waits, next Job
	m.Admit(0, &runs, Request{Client: "a"})
	m.Admit(0, &waits, Request{Client: "a"})
	if runs.State != Granted || waits.State != Standing || waits.Until != time.Second {
		t.Fatalf("states %d and %d until %v", runs.State, waits.State, waits.Until)
	}
	m.Leave(1, &waits)
	if waits.State != TurnedAway || waits.Rejection != nil {
		t.Fatalf("state %d, rejection %v", waits.State, waits.Rejection)
	}
	m.Done(2, &runs, Success)
	m.Admit(3, &next, Request{Client: "a"})
	if next.State != Granted {
		t.Fatalf("the token of who left did not come back: state %d, %v", next.State, next.Rejection)
	}
}

func TestWhoLeavesItsTurnLetsTheOthersMoveUp(t *testing.T) {
	cfg := fixed(9, Queue{})
	cfg.Limits = []Limit{{Name: "turns", Rule: limits.LeakyBucket{Capacity: 5, Leak: limits.PerSecond(1)}, Excess: Delay, MaxWait: time.Minute}}
	m, err := NewMachine(cfg, time.Unix(1e9, 0), 1)
	if err != nil {
		t.Fatal(err)
	}
	jobs := make([]Job, 5)
	for i := range jobs {
		m.Admit(0, &jobs[i], Request{Client: "a"})
	}
	m.Leave(500*time.Millisecond, &jobs[2])
	for i, want := range map[int]time.Duration{1: time.Second, 3: 2 * time.Second, 4: 3 * time.Second} {
		if jobs[i].State != Parked || jobs[i].Until != want {
			t.Errorf("job %d: state %d until %v, want parked until %v", i, jobs[i].State, jobs[i].Until, want)
		}
	}
	if a, b, none := m.Woken(), m.Woken(), m.Woken(); a != &jobs[3] || b != &jobs[4] || none != nil {
		t.Errorf("told that their turns moved: %p %p %p, want the two behind", a, b, none)
	}
	var next Job
	if m.Admit(500*time.Millisecond, &next, Request{Client: "a"}); next.Until != 4*time.Second {
		t.Errorf("a newcomer's turn comes at %v, want right behind the others", next.Until)
	}
	for i := range jobs {
		if m.TimeUp(10*time.Second, &jobs[i]); jobs[i].State == Parked {
			t.Errorf("job %d is still parked", i)
		}
	}
	if m.TimeUp(10*time.Second, &next); len(m.lines) != 0 {
		t.Errorf("%d lines are kept of nobody", len(m.lines))
	}
}

func TestATurnThatComesAfterTheDeadlineIsRefusedAtOnce(t *testing.T) {
	cfg := fixed(9, Queue{})
	cfg.Limits = []Limit{{Name: "turns", Rule: limits.LeakyBucket{Capacity: 5, Leak: limits.PerSecond(1)}, Excess: Delay}}
	m, err := NewMachine(cfg, time.Unix(1e9, 0), 1)
	if err != nil {
		t.Fatal(err)
	}
	var first, second, third Job
	second.Deadline = 900 * time.Millisecond
	for _, j := range []*Job{&first, &second, &third} {
		m.Admit(0, j, Request{Client: "a"})
	}
	if second.State != TurnedAway || second.Rejection.Reason != Deadline {
		t.Errorf("state %d, %v", second.State, second.Rejection)
	}
	if third.State != Parked || third.Until != time.Second {
		t.Errorf("the refused one still takes a turn: state %d until %v", third.State, third.Until)
	}
	m.TimeUp(third.Until-1, &third)
	if third.State != Parked {
		t.Error("a turn came early")
	}
	if m.TimeUp(third.Until, &third); third.State != Granted {
		t.Errorf("state %d at its turn", third.State)
	}
}

func TestAMachineCanBeUsedForever(t *testing.T) {
	m, err := NewMachine(fixed(1, Queue{Capacity: 1, MaxWait: time.Second}), time.Unix(1e9, 0), 1)
	if err != nil {
		t.Fatal(err)
	}
	var a, b Job
	n := testing.AllocsPerRun(1000, func() {
		m.Admit(0, &a, Request{Client: "a"})
		m.Admit(0, &b, Request{Client: "a"})
		m.Done(0, &a, Success)
		if m.Woken() != &b || m.Woken() != nil {
			t.Fatal("who waits was not woken, once")
		}
		m.Done(0, &b, Success)
		m.Tick(0, 0, false)
	})
	if n != 0 {
		t.Errorf("%v allocations for two jobs", n)
	}
}
