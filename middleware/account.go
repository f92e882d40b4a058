package middleware

import (
	"context"

	"github.com/spillway-go/spillway/middleware/internal/edge"
)

// Charge charges n of a unit that the application counts itself, such as the rows of an answer, to all limits on it that apply to
// the request ctx belongs to. It charges all of them or none: then the error is a *shed.Rejection, with Retry-After's wait, and
// what it would have paid for must not be done. It never waits. Where no limit counts the unit, and for requests that are not under
// a middleware of this module or are exempt, it does nothing.
//
// It works for units that some limit has and that are none of those with a meaning of their own; Config.Accounts makes it work
// for all.
func Charge(ctx context.Context, unit string, n int64) error {
	return edge.AccountOf(ctx).Charge(ctx, unit, n)
}

// Pace is Charge for what can wait: it returns when n of the unit may pass. The error is ctx's, or limits.ErrNoFlow if they never
// may. What waits holds no place under the concurrency limit.
func Pace(ctx context.Context, unit string, n int64) error {
	return edge.AccountOf(ctx).Pass(ctx, unit, n)
}

// SetCost says what the request that ctx belongs to has weighed after all, in limits that count requests; 0 means nothing. When
// the handler has returned, what was charged too much is given back, and what was charged too little is charged as far as it
// fits. It reports false if that cannot be: see Charge, and Config.Accounts. A handler without a context says the same in a field
// of its response, shed.Route.CostHeader.
func SetCost(ctx context.Context, cost int64) bool { return edge.AccountOf(ctx).SetCost(cost) }
