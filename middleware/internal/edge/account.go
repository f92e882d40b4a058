package edge

import (
	"context"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

// Account is what a request can be charged to by hand while it runs.
type Account struct {
	shedder *shed.Shedder
	req     shed.Request
	permit  shed.Permit
	rec     *recorder
}

type accountKey struct{}

// AccountOf returns the account of the request that ctx belongs to; nil if there is none.
func AccountOf(ctx context.Context) *Account {
	a, _ := ctx.Value(accountKey{}).(*Account)
	return a
}

// Charge charges n of a unit at once, or refuses.
func (a *Account) Charge(ctx context.Context, unit string, n int64) error {
	if a == nil {
		return nil
	}
	return a.shedder.Charge(ctx, a.req, unit, n)
}

// Pass charges n of a unit and waits until they may pass. What waits holds no place.
func (a *Account) Pass(ctx context.Context, unit string, n int64) error {
	if a == nil {
		return nil
	}
	flow := a.flow(unit)
	if flow == nil {
		return nil
	}
	_, err := flow.Pass(ctx, n)
	return err
}

func (a *Account) flow(unit string) *limits.Flow {
	flow := a.shedder.Flow(unit, a.req)
	if flow != nil {
		flow.BeforeWait = a.permit.Detach
	}
	return flow
}

// SetCost notes what the request weighed after all; 0 means nothing.
func (a *Account) SetCost(cost int64) bool {
	if a == nil || cost < 0 {
		return false
	}
	rec := a.rec
	if costs := rec.rarities().costs; costs != nil {
		rec = costs
	}
	rec.cost.Store(weighed(cost))
	return true
}

// weighed is a cost as shed.Ending has it, where 0 is no word on it.
func weighed(cost int64) int64 {
	if cost == 0 {
		return shed.Free
	}
	return cost
}
