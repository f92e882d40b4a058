package configfile

import (
	"log/slog"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/redisstore"
)

// layered puts in front of the guard what spares Redis calls. The result closes all of it. What is not asked for is not there,
// but for leases, counts and parts, which a reload may ask for: they cost nothing to other limits.
func (c *Config) layered(guard *redisstore.Guard, log *slog.Logger) (whole *redisstore.SubBuckets, leave func(), err error) {
	var store limits.Store = guard
	if c.Store.Redis.CacheRefusals {
		refusals, err := redisstore.NewRefusals(store, 0)
		if err != nil {
			return nil, nil, err
		}
		store = refusals
	}
	leases, err := redisstore.NewLeases(store, redisstore.LeaseConfig{Default: c.Store.Redis.Sharing, Lasts: c.Store.Redis.Lease})
	if err != nil {
		return nil, nil, err
	}
	async, err := redisstore.NewAsync(leases, redisstore.AsyncConfig{Default: c.Store.Redis.Sharing, Every: c.Store.Redis.MergeEvery})
	if err != nil {
		leases.Close()
		return nil, nil, err
	}
	store, leave = async, func() {}
	if c.Store.Regions.Region != "" {
		home, close, err := c.home(log)
		if err != nil {
			async.Close()
			return nil, nil, err
		}
		if store, err = redisstore.NewRegions(async, home, c.Store.Regions.parts()); err != nil {
			async.Close()
			home.Close()
			close()
			return nil, nil, err
		}
		leave = close
	}
	whole, err = redisstore.NewSubBuckets(store)
	return whole, leave, err
}
