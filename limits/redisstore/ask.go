package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// dear is a cost above all that any rule allows, and exact in a double.
const dear = limits.Exact + 2

// inline is how many charges a question holds without further allocation.
const inline = 4

// question is one decision on its way to Redis. It has a copy of the charges, for who asked may have gone before the answer
// comes.
type question struct {
	charges []limits.Charge
	of      []int // for each charge the index of its balance
	first   []int // for each balance the first of its charges
	rules   []*rule
	debts   bool   // all rules are debts
	now     string // the time to tell the script

	// d is the answer. Refused, if it is wanted, is the answer should somebody else refuse.
	d       limits.Decision
	refused *limits.Decision

	// Of a question that waits at the desk: whose it is, and how it ends. Sent and gone are guarded by desk.mu.
	ctx        context.Context
	done       chan struct{} // has room for one
	err        error
	sent, gone bool

	fewCharges      [inline]limits.Charge
	fewOf, fewFirst [inline]int
	fewRules        [inline]*rule
}

// questions are reused, except those whose callers have gone.
var questions = sync.Pool{New: func() any { return new(question) }}

// free lets q be reused. It must have been answered, and nobody else have it.
func (q *question) free() {
	if !q.gone {
		questions.Put(q)
	}
}

var errInProcess = errors.New("the rule counts what is in flight; keep it in the process, in a limits.Memory")

// ask checks charges and finds out which balances they are about.
func (s *Store) ask(now time.Time, charges []limits.Charge) (*question, error) {
	q := questions.Get().(*question)
	done := q.done
	*q = question{debts: true, done: done}
	if s.clock != nil {
		q.now = s.clock(now)
	}
	q.charges = append(q.fewCharges[:0], charges...)
	q.of, q.first, q.rules = q.fewOf[:0], q.fewFirst[:0], q.fewRules[:0]
	for i := range q.charges {
		c := &q.charges[i]
		if err := c.Check(); err != nil {
			return nil, fmt.Errorf("charge %d: %w", i, err)
		}
		at := -1
		for k, j := range q.first {
			if b := &q.charges[j]; b.Policy.Name() == c.Policy.Name() {
				if b.Policy != c.Policy && b.Policy.Rule() != c.Policy.Rule() {
					return nil, fmt.Errorf("charges %d and %d: one call cannot hold policy %q with two different rules; use the newer for both", j, i, c.Policy.Name())
				}
				if b.Key == c.Key {
					at = k
				}
			}
		}
		if at < 0 {
			r := s.ruleOf(c.Policy)
			if r.fault != nil {
				return nil, fmt.Errorf("charge %d: policy %q: %w", i, c.Policy.Name(), r.fault)
			}
			at = len(q.first)
			q.first = append(q.first, i)
			q.rules = append(q.rules, r)
			q.debts = q.debts && r.debt
		}
		q.of = append(q.of, at)
	}
	return q, nil
}

// together reports whether all balances are one client's.
func (q *question) together() bool {
	for _, i := range q.first {
		if q.charges[i].Key != q.charges[0].Key {
			return false
		}
	}
	return true
}

// query is what one run of a script is about: decisions about the same balances, in the order in which they were asked for.
type query struct {
	rows []*question // that differ in nothing but costs
	take bool

	keys int
	args []any
}

// fill sets the arguments. The first three places are for the command, the script and the number of keys.
func (c *query) fill(s *Store) {
	q := c.rows[0]
	c.keys = len(q.first)
	args := make([]any, 3, 6+(1+perRule)*len(q.first)+len(q.charges)+2*(1+len(q.charges)))
	for _, i := range q.first {
		args = append(args, s.key(q.charges[i].Policy.Name(), q.charges[i].Key))
	}
	args = append(args, q.now, flag(c.take), len(q.charges))
	for _, r := range q.rules {
		args = append(args, r.args[:]...)
	}
	for i := range q.charges {
		at := q.of[i] + 1
		if q.charges[i].Shadow {
			at = -at
		}
		args = append(args, at)
	}
	for at := 0; at < len(c.rows); {
		row, times := c.rows[at], 1
		for at++; at < len(c.rows) && sameCosts(row, c.rows[at]); at++ {
			times++
		}
		args = append(args, times)
		for i := range row.charges {
			args = append(args, min(row.charges[i].Cost, dear))
		}
	}
	c.args = args
}

// inExact reports whether a number is one that a balance may have.
func inExact(x int64) bool { return x >= 0 && x <= limits.Exact }

// sameCosts reports whether two questions about the same balances are one question asked twice.
func sameCosts(a, b *question) bool {
	for i := range a.charges {
		if a.charges[i].Cost != b.charges[i].Cost {
			return false
		}
	}
	return true
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// script returns the script for the call.
func (c *query) script() *script {
	if c.rows[0].debts {
		return meters
	}
	return takes
}

// decide asks Redis and works out the decisions.
func (c *query) decide(ctx context.Context, s *Store) error {
	c.fill(s)
	reply, err := s.run(ctx, c.script(), c.keys, c.args)
	if err != nil {
		return err
	}
	return c.settle(ctx, s, reply)
}

// settle works out the decisions from a reply.
func (c *query) settle(ctx context.Context, s *Store, reply []any) error {
	err := c.read(s, reply)
	if errors.Is(err, errOtherKind) { // nothing was written
		if reply, err = s.run(ctx, takes, c.keys, c.args); err == nil {
			err = c.read(s, reply)
		}
	}
	return err
}

// errOtherKind is the answer of the script for debts to a balance that is none yet.
var errOtherKind = errors.New("the balance was counted by a rule of another kind")

// read takes a reply apart, works out each decision from what was found, and holds them against what the script did.
func (c *query) read(s *Store, reply []any) error {
	q, n := c.rows[0], numbers{rest: reply}
	now := n.next()
	switch now {
	case -1:
		return errOtherKind
	case -2:
		if k := n.next() - 1; k >= 0 && k < int64(len(q.first)) {
			b := &q.charges[q.first[k]]
			return &wrongValue{s.key(b.Policy.Name(), b.Key)}
		}
	}
	granted := n.next()
	exact := inExact(now)
	var few [inline]limits.Account
	accounts := few[:0]
	for _, i := range q.first {
		owed, last, since := n.next(), n.next(), n.next()
		exact = exact && inExact(owed) && inExact(last) && inExact(since)
		var past []limits.Passed
		for range n.next() {
			p := limits.Passed{At: n.next(), Amount: n.next()}
			exact = exact && inExact(p.At) && inExact(p.Amount)
			if n.bad {
				break
			}
			past = append(past, p)
		}
		accounts = append(accounts, q.charges[i].Policy.Account(owed, last, since, past))
	}
	if n.bad || !exact || len(n.rest) > 0 {
		return fmt.Errorf("the script answered %v, which is not what it was asked", reply)
	}
	effect := limits.Look
	if c.take {
		effect = limits.Take
	}
	for _, row := range c.rows {
		if row.refused != nil {
			row.refused.Source = limits.FromRedis
			limits.Decide(now, row.charges, accounts, row.of, limits.Refuse, row.refused)
		}
		row.d = limits.Decision{Source: limits.FromRedis}
		limits.Decide(now, row.charges, accounts, row.of, effect, &row.d)
		if row.d.Allowed {
			granted--
		}
	}
	if granted != 0 {
		return errors.New("the script and this process disagree about what fits: do they have the same version?")
	}
	return nil
}
