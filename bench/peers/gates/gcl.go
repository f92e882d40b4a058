package gates

import (
	"context"
	"time"

	"github.com/platinummonkey/go-concurrency-limits/core"
	"github.com/platinummonkey/go-concurrency-limits/limit"
	"github.com/platinummonkey/go-concurrency-limits/limiter"
	"github.com/platinummonkey/go-concurrency-limits/strategy"
)

const gcl = "github.com/platinummonkey/go-concurrency-limits"

func openGradient2(int) (*Gate, error) {
	return openGCL(limit.NewDefaultGradient2Limit("gradient2", limit.NoopLimitLogger{}, core.EmptyMetricRegistryInstance))
}

func openVegas(int) (*Gate, error) {
	return openGCL(limit.NewDefaultVegasLimit("vegas", limit.NoopLimitLogger{}, core.EmptyMetricRegistryInstance))
}

func openAIMD(int) (*Gate, error) {
	return openGCL(limit.NewDefaultAIMDLimit("aimd", core.EmptyMetricRegistryInstance))
}

// NewGCL makes the library's own limiter around one of its limits, with the window that it has by default: one second, more
// than 100 samples, none of them below 100 µs.
func NewGCL(l core.Limit) (*limiter.DefaultLimiter, error) {
	return limiter.NewDefaultLimiterWithFactory(l, time.Second.Nanoseconds(), time.Second.Nanoseconds(),
		(100 * time.Microsecond).Nanoseconds(), 100, strategy.NewPreciseStrategyFactory(), limit.NoopLimitLogger{}, core.EmptyMetricRegistryInstance)
}

func openGCL(l core.Limit) (*Gate, error) {
	lim, err := NewGCL(l)
	if err != nil {
		return nil, err
	}
	return &Gate{
		Enter: func(ctx context.Context) (Leave, bool) {
			listener, ok := lim.Acquire(ctx)
			if !ok {
				return nil, false
			}
			return func(e End) {
				if e == Good {
					listener.OnSuccess()
					return
				}
				listener.OnDropped()
			}, true
		},
		Limit: lim.EstimatedLimit, Close: nothing,
	}, nil
}
