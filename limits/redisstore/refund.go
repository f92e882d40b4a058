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

func (s *Store) giveBackTogether(ctx context.Context, now time.Time, back []*limits.Verdict) error {
	args := make([]any, 3, 4+3*len(back))
	for _, v := range back {
		args = append(args, s.key(v.Policy.Name(), v.Key))
	}
	told := ""
	if s.clock != nil {
		told = s.clock(now)
	}
	args = append(args, told)
	for _, v := range back {
		args = append(args, strconv.FormatInt(v.Cost, 10), strconv.FormatInt(v.Taken, 10))
	}
	reply, err := s.run(ctx, refund, len(back), args)
	if err != nil {
		return err
	}
	n := numbers{rest: reply}
	switch bad := n.next(); {
	case n.bad || bad < 0 || bad > int64(len(back)):
		return fmt.Errorf("the script answered %v, which is not what it was asked", reply)
	case bad > 0:
		v := back[bad-1]
		return &wrongValue{s.key(v.Policy.Name(), v.Key)}
	}
	return nil
}
