package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// lateRefund is how long a refund may take whose caller has gone.
const lateRefund = time.Second

// Refund implements limits.Store. It works when ctx is done, for the reason to refund is often that the caller has gone. When it
// fails what was charged may stay charged; it is never sent twice, for that would mint quota.
func (s *Store) Refund(ctx context.Context, now time.Time, d limits.Decision) error {
	if !d.Allowed {
		return nil
	}
	var back []*limits.Verdict
	for i := range d.Len() {
		v := d.At(i)
		if v.Taken == limits.NotTaken || v.Cost == 0 {
			continue
		}
		if err := (&limits.Charge{Policy: v.Policy, Key: v.Key, Cost: v.Cost}).Check(); err != nil {
			return &Error{Kind: Malformed, Op: "refund", Err: fmt.Errorf("verdict %d: %w", i, err)}
		}
		back = append(back, v)
	}
	if len(back) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateRefund)
		defer cancel()
		ctx = own
	}
	if err := s.giveBack(ctx, now, back); err != nil {
		return failed(ctx, "refund", err)
	}
	return nil
}

// giveBack refunds verdicts, on a cluster with a call for each client. It tries all, whatever fails.
func (s *Store) giveBack(ctx context.Context, now time.Time, back []*limits.Verdict) error {
	var errs []error
	for len(back) > 0 {
		var here, later []*limits.Verdict
		for _, v := range back {
			if !s.cluster || v.Key == back[0].Key {
				here = append(here, v)
			} else {
				later = append(later, v)
			}
		}
		if err := s.giveBackTogether(ctx, now, here); err != nil {
			errs = append(errs, err)
		}
		back = later
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// giveBackTogether refunds verdicts that one call can be about.
func (s *Store) giveBackTogether(ctx context.Context, now time.Time, back []*limits.Verdict) error {
	q := s.question(now)
	q.back = back
	if err := s.batcher.ask(ctx, q, false); err != nil {
		return err
	}
	q.free()
	return nil
}

// undoing is the run of the script that gives back.
func (q *question) undoing(s *Store) *job {
	args := make([]any, 3, 4+3*len(q.back))
	for _, v := range q.back {
		args = append(args, s.key(v.Policy.Name(), v.Key))
	}
	args = append(args, q.now)
	for _, v := range q.back {
		args = append(args, strconv.FormatInt(v.Cost, 10), strconv.FormatInt(v.Taken, 10))
	}
	return &job{script: refund, keys: len(q.back), args: args}
}

// undone reads what the script answers.
func (q *question) undone(s *Store, reply []any) error {
	n := numbers{rest: reply}
	switch bad := n.next(); {
	case n.bad || bad < 0 || bad > int64(len(q.back)):
		return strange(reply)
	case bad > 0:
		v := q.back[bad-1]
		return &wrongValue{s.key(v.Policy.Name(), v.Key)}
	}
	return nil
}
