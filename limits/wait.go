package limits

import (
	"context"
	"fmt"
	"time"
)

// Wait takes charges and waits for their turn. It is for callers without a waiting room of their own; turns are the store's,
// first come first served, and each is exact.
//
// A refusal is no error: the decision says so, and nothing was taken or waited for. A turn that lies behind ctx's deadline
// is given back at once, without waiting, and the error wraps context.DeadlineExceeded. So is the turn of a caller whose
// context ends while it waits, and then the error wraps the context's. What is given back is there for who comes later;
// those who wait already keep their turns.
func Wait(ctx context.Context, store Store, charges []Charge) (Decision, error) {
	return waitAfter(ctx, store, charges, func() {})
}

// waitAfter is Wait, and calls before when it is about to wait.
func waitAfter(ctx context.Context, store Store, charges []Charge, before func()) (Decision, error) {
	d, err := store.Take(ctx, time.Now(), charges)
	if err != nil || !d.Allowed {
		return d, err
	}
	if d.Delay() > 0 {
		before()
	}
	if err := pause(ctx, d.Delay()); err != nil {
		if lost := store.Refund(context.WithoutCancel(ctx), time.Now(), d); lost != nil {
			return Decision{}, fmt.Errorf("%w; and it could not be given back: %w", err, lost)
		}
		return Decision{}, err
	}
	return d, nil
}

// pause waits for d, or refuses at once if ctx will not last that long.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return fmt.Errorf("limits: the turn is in %v, after the deadline: %w", d, context.DeadlineExceeded)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("limits: gave up waiting for a turn: %w", ctx.Err())
	}
}
