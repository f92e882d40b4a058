package redisstore

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/limits"
)

// mostMerged is how many balances one call is about: a script should not keep others waiting for long.
const mostMerged = 64

//go:embed script/merge.lua
var mergeText string

var mergeScript = newScript(balancesText + mergeText)

// merging is what a process has admitted on its own from one balance, and what the store says about that balance afterwards.
type merging struct {
	policy *limits.Policy
	key    string
	// How much, when the first was, by the store's clock in µs, and what would be owed had there been nothing else.
	amount, began int64
	alone         limits.Account

	// The answer: how it went, and if err is nil whether the balance is counted in this rule, and then what is owed at which time
	// and since when, in the rule's units and in µs; and the store's time.
	err               error
	same              bool
	owed, last, since int64
	now               int64
}

// merger is a store that can be told afterwards what was admitted without asking it.
type merger interface {
	// merge adds the amounts and fills in the answers. The error is that of the first that failed; the others may have succeeded,
	// and those without an answer have not.
	merge(ctx context.Context, all []*merging) error
}

// merge implements merger, with one message. Nothing is sent twice.
func (s *Store) merge(ctx context.Context, all []*merging) error {
	var calls [][]*merging
	for rest := all; len(rest) > 0; {
		n := min(len(rest), mostMerged)
		if s.cluster {
			n = 1
		}
		calls, rest = append(calls, rest[:n]), rest[n:]
	}
	pipe := s.client.Pipeline()
	cmds := make([]once, len(calls))
	errs := make([]error, len(calls))
	for i, c := range calls {
		args := s.mergeArgs(c)
		args[0], args[1], args[2] = "evalsha", mergeScript.digest, len(c)
		cmds[i] = once{redis.NewCmd(ctx, args...)}
		errs[i] = pipe.Process(ctx, cmds[i])
	}
	_, lost := pipe.Exec(ctx)
	var first error
	for i, c := range calls {
		err := cmds[i].Err()
		switch {
		case errs[i] != nil:
			err = errs[i]
		case err == nil && cmds[i].Val() == nil:
			err = lost // the message was cut before this answer
		}
		if err == nil {
			var reply []any
			if reply, err = list(cmds[i]); err == nil {
				err = merged(c, reply)
			}
		} else if redis.HasErrorPrefix(err, "NOSCRIPT") || redis.IsTryAgainError(err) { // nothing happened yet
			var reply []any
			if reply, err = s.run(ctx, mergeScript, len(c), s.mergeArgs(c)); err == nil {
				err = merged(c, reply)
			}
		}
		if err != nil {
			err = failed(ctx, "merge", err)
			for _, m := range c {
				m.err = err
			}
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// mergeArgs are the arguments of the script, with three places in front for the command.
func (s *Store) mergeArgs(all []*merging) []any {
	args := make([]any, 3, 4+7*len(all))
	for _, m := range all {
		args = append(args, s.key(m.policy.Name(), m.key))
	}
	told := ""
	if s.clock != nil {
		told = s.clock(time.Time{})
	}
	args = append(args, told)
	for _, m := range all {
		owed, last, since := m.alone.Numbers()
		args = append(args, s.ruleOf(m.policy).args[0])
		for _, n := range [...]int64{m.amount, m.began, owed, last, since} {
			args = append(args, strconv.FormatInt(n, 10))
		}
	}
	return args
}

// merged reads the answer of the script.
func merged(all []*merging, reply []any) error {
	n := numbers{rest: reply}
	now := n.next()
	for _, m := range all {
		state := n.next()
		m.owed, m.last, m.since, m.now = n.next(), n.next(), n.next(), now
		m.same = state == 1
		if n.bad || state < -1 || state > 1 {
			return fmt.Errorf("the script answered %v, which is not what it was asked", reply)
		}
	}
	return nil
}

// mergerOf returns what merges below some layers, or nil.
func mergerOf(store limits.Store) merger {
	switch s := store.(type) {
	case *Leases:
		return mergerOf(s.inner)
	case *Refusals:
		return mergerOf(s.inner)
	case *Guard:
		if mergerOf(s.inner) == nil {
			return nil
		}
	}
	m, _ := store.(merger)
	return m
}

// merge implements merger within the Guard's time, and keeps its own balances warm. While the store does not answer nothing is
// sent. If a store that keeps no deadlines is late, the answers must not be read: the error wraps errLate then.
func (g *Guard) merge(ctx context.Context, all []*merging) error {
	switch {
	case g.closed.Load():
		return &Error{Kind: Cancelled, Op: "merge", Err: ErrClosed}
	case g.breaker.open():
		return g.why.Load()
	}
	if err := g.call(call{op: "merge", caller: ctx, merging: all}, new(limits.Decision)); err != nil {
		return err
	}
	for _, m := range all {
		d := limits.Decision{Allowed: true}
		d.Append(limits.Verdict{})
		g.warm([]limits.Charge{{Policy: m.policy, Key: m.key, Cost: m.amount}}, &d)
	}
	return nil
}
