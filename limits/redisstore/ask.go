package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// dear is a cost above all that any rule allows, and exact in a double.
const dear = limits.Exact + 2

// answer is what a script found and did.
type answer struct {
	now      int64 // µs
	granted  int64
	accounts []limits.Account
	reply    []any
}

// send asks Redis. Every row of costs is a decision of its own; there is one, that of the charges, unless rows are given.
func (s *Store) send(ctx context.Context, q *question, now time.Time, write bool) (*answer, error) {
	sc := takes
	if q.debts {
		sc = meters
	}
	a, err := s.sendTo(ctx, sc, q, now, write)
	if errors.Is(err, errOtherKind) {
		a, err = s.sendTo(ctx, takes, q, now, write)
	}
	return a, err
}

// errOtherKind is the answer of the script for debts to a balance that is none yet. Nothing was written then.
var errOtherKind = errors.New("the balance was counted by a rule of another kind")

func (s *Store) sendTo(ctx context.Context, sc *script, q *question, now time.Time, write bool) (*answer, error) {
	reply, err := s.run(ctx, sc, len(q.first), s.args(q, now, write))
	if err != nil {
		return nil, err
	}
	return q.read(reply, s)
}

// args returns the arguments of the scripts that take.
func (s *Store) args(q *question, now time.Time, write bool) []any {
	args := make([]any, 3, 6+(1+perRule)*len(q.first)+2*len(q.charges))
	for _, i := range q.first {
		args = append(args, s.key(q.charges[i].Policy.Name(), q.charges[i].Key))
	}
	args = append(args, s.told(now), flag(write), len(q.charges))
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
	for i := range q.charges {
		args = append(args, strconv.FormatInt(min(q.charges[i].Cost, dear), 10))
	}
	return args
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// read takes a reply apart.
func (q *question) read(reply []any, s *Store) (*answer, error) {
	n := numbers{rest: reply}
	a := &answer{now: n.next(), reply: reply}
	switch a.now {
	case -1:
		return nil, errOtherKind
	case -2:
		if k := n.next() - 1; k >= 0 && k < int64(len(q.first)) {
			c := &q.charges[q.first[k]]
			return nil, &wrongValue{s.key(c.Policy.Name(), c.Key)}
		}
	}
	a.granted = n.next()
	a.accounts = make([]limits.Account, len(q.first))
	for k, i := range q.first {
		owed, last, since := n.next(), n.next(), n.next()
		var past []limits.Passed
		for range n.next() {
			past = append(past, limits.Passed{At: n.next(), Amount: n.next()})
			if n.bad {
				break
			}
		}
		a.accounts[k] = q.charges[i].Policy.Account(owed, last, since, past)
	}
	if n.bad || len(n.rest) > 0 {
		return nil, fmt.Errorf("the script answered %v, which is not what it was asked", reply)
	}
	return a, nil
}

// decide works out the decision, and holds it against what the script did.
func (a *answer) decide(q *question, effect limits.Effect, d *limits.Decision) error {
	limits.Decide(a.now, q.charges, a.accounts, q.of, effect, d)
	if granted := a.granted == 1; effect != limits.Refuse && granted != d.Allowed {
		return fmt.Errorf("the script and this process disagree (granted %v against %v): do they have the same version?", granted, d.Allowed)
	}
	return nil
}
