package configfile

import (
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/redisstore"
)

// layered puts in front of the guard what spares Redis calls, and returns what closes all of it. What is not asked for is not
// there, but for leases, which a reload may ask for: they cost nothing to limits that are shared exactly.
func (c *Config) layered(guard *redisstore.Guard) (store limits.Store, end func(), err error) {
	store, end = guard, func() { guard.Close() }
	if c.Store.Redis.CacheRefusals {
		refusals, err := redisstore.NewRefusals(store, 0)
		if err != nil {
			return nil, nil, err
		}
		store, end = refusals, func() { refusals.Close() }
	}
	leases, err := redisstore.NewLeases(store, redisstore.LeaseConfig{Default: c.Store.Redis.Sharing, Lasts: c.Store.Redis.Lease})
	if err != nil {
		return nil, nil, err
	}
	return leases, func() { leases.Close() }, nil
}
