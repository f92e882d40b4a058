package gates

import (
	"context"
	"errors"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	"github.com/zeromicro/go-zero/core/load"
	"github.com/zeromicro/go-zero/core/logx"
	"golang.org/x/sync/semaphore"
)

// openNone lets everybody in.
func openNone(int) (*Gate, error) {
	leave := func(End) {}
	return &Gate{
		Enter: func(context.Context) (Leave, bool) { return leave, true },
		Limit: noLimit, Close: nothing,
	}, nil
}

// openSemaphore lets in as many as the backend has slots, and lets nobody wait.
func openSemaphore(slots int) (*Gate, error) {
	s := semaphore.NewWeighted(int64(slots))
	leave := func(End) { s.Release(1) }
	return &Gate{
		Enter: func(context.Context) (Leave, bool) { return leave, s.TryAcquire(1) },
		Limit: func() int { return slots }, Close: nothing,
	}, nil
}

const failsafeGo = "github.com/failsafe-go/failsafe-go"

// openFailsafe opens the limiter with its defaults, without a queue.
func openFailsafe(int) (*Gate, error) {
	l := adaptivelimiter.NewWithDefaults[any]()
	return &Gate{
		Enter: func(context.Context) (Leave, bool) {
			permit, ok := l.TryAcquirePermit()
			if !ok {
				return nil, false
			}
			return leaveFailsafe(permit), true
		},
		Limit: l.Limit, Close: nothing,
	}, nil
}

// openFailsafeQueue lets up to twice the limit wait, and refuses more and more of them up to three times.
func openFailsafeQueue(int) (*Gate, error) {
	l := adaptivelimiter.NewBuilder[any]().WithQueueing(2, 3).Build()
	return &Gate{
		Enter: func(ctx context.Context) (Leave, bool) {
			permit, err := l.AcquirePermitWithMaxWait(ctx, MaxWait)
			if err != nil {
				return nil, false
			}
			return leaveFailsafe(permit), true
		},
		Limit: l.Limit, Close: nothing,
	}, nil
}

// leaveFailsafe records whatever was executed, late or not, for its time is what the limiter learns from.
func leaveFailsafe(permit adaptivelimiter.Permit) Leave {
	return func(e End) {
		if e == Failed {
			permit.Drop()
			return
		}
		permit.Record()
	}
}

var errLate = errors.New("answered too late")

// openBBR opens the limiter with its defaults: it acts from 80 % of the processors on.
func openBBR(int) (*Gate, error) {
	l := bbr.NewLimiter()
	return &Gate{
		Enter: func(context.Context) (Leave, bool) {
			done, err := l.Allow()
			if err != nil {
				return nil, false
			}
			return func(e End) {
				if e == Good {
					done(ratelimit.DoneInfo{})
					return
				}
				done(ratelimit.DoneInfo{Err: errLate})
			}, true
		},
		Limit: noLimit, Close: nothing,
	}, nil
}

// openZero opens the shedder with its defaults: it acts from 90 % of the processors on. It writes a log line for each
// refusal, which is switched off here.
func openZero(int) (*Gate, error) {
	logx.Disable()
	l := load.NewAdaptiveShedder()
	return &Gate{
		Enter: func(context.Context) (Leave, bool) {
			promise, err := l.Allow()
			if err != nil {
				return nil, false
			}
			return func(e End) {
				if e == Good {
					promise.Pass()
					return
				}
				promise.Fail()
			}, true
		},
		Limit: noLimit, Close: nothing,
	}, nil
}
