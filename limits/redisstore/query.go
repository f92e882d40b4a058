package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/spillway-go/spillway/limits"
)

// query is decisions about the same balances, in the order in which they were asked for, or one refund. There is one way to decide that knows
// every rule, with a run of a script for each query, and one for most that is much faster: see batch.
type query struct {
	rows []*question // that differ in nothing but costs
	take bool

	err   error // why there is no answer
	slow  bool  // the fast way has found that it is not for this
	again bool  // nothing was decided, for it has to be asked about in another way
}

// fast reports whether a batch may try it: all rules are debts, each of a balance of its own.
func (c *query) fast() bool {
	q := c.rows[0]
	return !c.slow && q.back == nil && q.debts && len(q.first) == len(q.charges) && len(q.charges) <= inline
}

// job is the run of the script that decides it the slow way.
func (c *query) job(s *Store) *job {
	q := c.rows[0]
	if q.back != nil {
		return q.undoing(s)
	}
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
		row, end := c.rows[at], c.alike(at)
		args = append(args, end-at)
		for i := range row.charges {
			args = append(args, min(row.charges[i].Cost, dear))
		}
		at = end
	}
	return &job{script: takes, keys: len(q.first), args: args}
}

// alike returns the end of the rows from a place on that are the same question.
func (c *query) alike(at int) int {
	end := at + 1
	for end < len(c.rows) && sameCosts(c.rows[at], c.rows[end]) {
		end++
	}
	return end
}

// sameCosts reports whether two questions about the same balances are one question asked twice.
func sameCosts(a, b *question) bool {
	for i := range a.charges {
		if a.charges[i].Cost != b.charges[i].Cost {
			return false
		}
	}
	return true
}

// inExact reports whether a number is one that a balance may have.
func inExact(x int64) bool { return x >= 0 && x <= limits.Exact }

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// decideAll asks Redis about queries in one message, and leaves in each how that went. What turns out to need another way is asked
// about in a second one.
func (s *Store) decideAll(ctx context.Context, queries ...*query) {
	s.message(ctx, queries)
	var again []*query
	for _, c := range queries {
		if c.again {
			c.again = false
			again = append(again, c)
		}
	}
	if len(again) > 0 {
		s.message(ctx, again)
	}
}

// message asks about queries in one message.
func (s *Store) message(ctx context.Context, queries []*query) {
	batches, slow := s.batched(queries)
	jobs := make([]*job, 0, len(batches)+len(slow))
	for _, b := range batches {
		b.fill(s)
		jobs = append(jobs, &b.job)
	}
	for _, c := range slow {
		jobs = append(jobs, c.job(s))
	}
	s.perform(ctx, jobs)
	for _, b := range batches {
		b.settle(s)
	}
	for i, c := range slow {
		var reply []any
		if reply, c.err = jobs[len(batches)+i].list(); c.err == nil {
			c.err = c.read(s, reply)
		}
	}
}

// decide is decideAll for one.
func (c *query) decide(ctx context.Context, s *Store) error {
	s.decideAll(ctx, c)
	return c.err
}

// read takes a reply apart, works out each decision from what was found, and holds them against what the script did.
func (c *query) read(s *Store, reply []any) error {
	q, n := c.rows[0], numbers{rest: reply}
	if q.back != nil {
		return q.undone(s, reply)
	}
	now := n.next()
	if now == -2 {
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
		return strange(reply)
	}
	if c.work(now, accounts, 0, len(c.rows)) != granted {
		return errDisagree
	}
	return nil
}

// work works out the decisions of some rows, which come one after the other, and returns how many are grants.
func (c *query) work(now int64, accounts []limits.Account, from, to int) (granted int64) {
	effect := limits.Look
	if c.take {
		effect = limits.Take
	}
	for _, row := range c.rows[from:to] {
		if row.refused != nil {
			row.refused.Source = limits.FromRedis
			limits.Decide(now, row.charges, accounts, row.of, limits.Refuse, row.refused)
		}
		row.d.Source = limits.FromRedis
		limits.Decide(now, row.charges, accounts, row.of, effect, &row.d)
		if row.d.Allowed {
			granted++
		}
	}
	return granted
}

var errDisagree = errors.New("the script and this process disagree about what fits: do they have the same version?")

// strange is about an answer that is none to what was asked.
func strange(reply any) error {
	return fmt.Errorf("the script answered %v, which is not what it was asked", reply)
}
