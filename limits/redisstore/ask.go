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

	back []*limits.Verdict // of a refund, what to give back; there are no charges then

	// d is the answer. Refused, if it is wanted, is the answer should somebody else refuse.
	d       limits.Decision
	refused *limits.Decision

	// Of a question that waits in the batcher: whose it is, and how it ends. Sent and gone are guarded by batcher.mu.
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

// question returns one that asks nothing yet.
func (s *Store) question(now time.Time) *question {
	q := questions.Get().(*question)
	q.d, q.refused, q.back = limits.Decision{}, nil, nil
	q.debts, q.now = true, ""
	q.ctx, q.err, q.sent = nil, nil, false
	if s.clock != nil {
		q.now = s.clock(now)
	}
	return q
}

// free lets q be reused. It must have been answered, and nobody else have it.
func (q *question) free() {
	if !q.gone {
		questions.Put(q)
	}
}

var errInProcess = errors.New("the rule counts what is in flight; keep it in the process, in a limits.Memory")

// ask checks charges and finds out which balances they are about.
func (s *Store) ask(now time.Time, charges []limits.Charge) (*question, error) {
	q := s.question(now)
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
