package configfile

import (
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/redisstore"
)

// layered puts in front of the guard what spares Redis calls. The result closes all of it. What is not asked for is not there,
// but for leases, counts and parts, which a reload may ask for: they cost nothing to other limits.
func (c *Config) layered(guard *redisstore.Guard) (*redisstore.SubBuckets, error) {
	var store limits.Store = guard
	if c.Store.Redis.CacheRefusals {
		refusals, err := redisstore.NewRefusals(store, 0)
		if err != nil {
			return nil, err
		}
		store = refusals
	}
	leases, err := redisstore.NewLeases(store, redisstore.LeaseConfig{Default: c.Store.Redis.Sharing, Lasts: c.Store.Redis.Lease})
	if err != nil {
		return nil, err
	}
	async, err := redisstore.NewAsync(leases, redisstore.AsyncConfig{Default: c.Store.Redis.Sharing, Every: c.Store.Redis.MergeEvery})
	if err != nil {
		leases.Close()
		return nil, err
	}
	return redisstore.NewSubBuckets(async)
}
