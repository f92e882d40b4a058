package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// books is a store that can merge, on the clock of the test's bubble, with arithmetic of its own.
type books struct {
	mu    sync.Mutex
	all   map[balanceName]*book
	err   error         // what every call returns
	lost  bool          // calls are carried out all the same
	takes time.Duration // how long the answer of a merge is on its way
	asked int
	told  int // balances that were merged
}

type book struct{ owed, last, since int64 }

func newBooks() *books { return &books{all: make(map[balanceName]*book)} }

func (s *books) set(err error, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.lost = err, lost
}

// at returns a balance as it is now.
func (s *books) at(p *limits.Policy, key string) *book {
	name := balanceName{p.Name(), key}
	b := s.all[name]
	if b == nil {
		b = new(book)
		s.all[name] = b
	}
	m, _ := p.Meter()
	tick := m.Tick.Microseconds()
	now := time.Now().UnixMicro() / tick * tick
	b.owed = max(0, b.owed-(now-b.last)/tick*m.Drain)
	b.last = now
	if b.owed == 0 {
		b.since = now
	}
	return b
}

func (s *books) decide(charges []limits.Charge, effect limits.Effect) (d limits.Decision, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.err != nil {
		return d, s.err
	}
	accounts, of := make([]limits.Account, len(charges)), make([]int, len(charges))
	for i, c := range charges {
		b := s.at(c.Policy, c.Key)
		accounts[i], of[i] = c.Policy.Account(b.owed, b.last, b.since, nil), i
	}
	limits.Decide(time.Now().UnixMicro(), charges, accounts, of, effect, &d)
	d.Source = limits.FromRedis
	for i, c := range charges {
		if m, _ := c.Policy.Meter(); d.Allowed && effect == limits.Take {
			s.at(c.Policy, c.Key).owed += d.At(i).Cost * m.Unit
		}
	}
	return d, nil
}

func (s *books) Take(_ context.Context, _ time.Time, charges []limits.Charge) (limits.Decision, error) {
	return s.decide(charges, limits.Take)
}

func (s *books) Peek(_ context.Context, _ time.Time, charges []limits.Charge) (limits.Decision, error) {
	return s.decide(charges, limits.Look)
}

func (s *books) Refund(_ context.Context, _ time.Time, d limits.Decision) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	for _, v := range d.Verdicts() {
		if b := s.at(v.Policy, v.Key); v.Taken != limits.NotTaken && v.Taken >= b.since {
			m, _ := v.Policy.Meter()
			b.owed = max(0, b.owed-v.Cost*m.Unit)
		}
	}
	return nil
}

func (s *books) delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes = d
}

func (s *books) merge(_ context.Context, all []*merging) error {
	s.mu.Lock()
	defer func() {
		takes := s.takes
		s.mu.Unlock()
		time.Sleep(takes)
	}()
	for _, m := range all {
		if m.err = s.err; s.err != nil && !s.lost {
			continue
		}
		s.told++
		meter, _ := m.policy.Meter()
		before, began := book{}, m.began
		if b := s.all[balanceName{m.policy.Name(), m.key}]; b != nil {
			before = *b
		}
		b := s.at(m.policy, m.key)
		if began >= before.last && m.amount > 0 { // nobody has charged it since
			there := max(0, before.owed-(began-before.last)*meter.Drain)
			together := there + m.amount*meter.Unit - (b.last-began)*meter.Drain
			alone, last, since := m.alone.Numbers()
			alone = max(0, alone-(b.last-last)*meter.Drain)
			if b.owed = max(together, alone, 0); there > 0 {
				b.since = before.since
			}
			if there == 0 || alone > together {
				b.since = since
			}
		} else {
			b.owed += m.amount * meter.Unit
		}
		m.same, m.owed, m.last, m.since, m.now = true, b.owed, b.last, b.since, time.Now().UnixMicro()
	}
	return s.err
}

func (s *books) punctual() bool { return true }

// owed is what is owed of a balance, in tokens, rounded up.
func (s *books) owed(p *limits.Policy, key string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, _ := p.Meter()
	return ceil(s.at(p, key).owed, m.Unit)
}

func (s *books) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

const every = 100 * time.Millisecond

// settled lets a merge pass, so that a balance which was used is known.
func settled() {
	time.Sleep(every)
	synctest.Wait()
}

// known begins a test in virtual time with a store, an Async on it, and a policy of which one is taken and whose balance "k" the
// Async has heard of.
func known(t *testing.T, r limits.Rule, test func(t *testing.T, s *books, a *Async, p *limits.Policy)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newBooks()
		a := asynchronous(t, s, AsyncConfig{Every: every})
		p := async(t, "p", r)
		mustTake(t, a, single(p, "k", 1))
		settled()
		test(t, s, a, p)
	})
}

// asynchronous makes an Async that ends with the test.
func asynchronous(t *testing.T, inner limits.Store, cfg AsyncConfig) *Async {
	t.Helper()
	a, err := NewAsync(inner, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

func async(t *testing.T, name string, r limits.Rule, options ...limits.Option) *limits.Policy {
	t.Helper()
	return named(t, name, r, append(options, limits.Shared(limits.SharedAsync))...)
}

// among is a store that is one of n.
type among struct {
	*books
	n int
}

func (a among) instances() int { return a.n }

var away = &Error{Kind: NotExecuted, Op: "merge", Err: errors.New("connection refused")}

// counting counts what is in messages.
type counting struct {
	*books
	most, all atomic.Int64
}

func (c *counting) merge(ctx context.Context, all []*merging) error {
	n := int64(len(all))
	c.most.Store(max(c.most.Load(), n))
	c.all.Add(n)
	return c.books.merge(ctx, all)
}
