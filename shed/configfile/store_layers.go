package configfile

import (
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/redisstore"
)

// layered puts in front of the guard what spares Redis calls, and returns what closes all of it. What is not asked for is not
// there.
func (r *Redis) layered(guard *redisstore.Guard) (store limits.Store, end func(), err error) {
	store, end = guard, func() { guard.Close() }
	if r.CacheRefusals {
		refusals, err := redisstore.NewRefusals(store, 0)
		if err != nil {
			return nil, nil, err
		}
		store, end = refusals, func() { refusals.Close() }
	}
	return store, end, nil
}
