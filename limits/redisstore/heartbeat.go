package redisstore

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"time"
)

// Instances say every beatEvery that they are there; who has not for beatFor is gone.
const (
	beatEvery = 2 * time.Second
	beatFor   = 7 * time.Second
)

//go:embed script/beat.lua
var beatText string

var beat = newScript(beatText)

// beater is a store in which instances can be counted.
type beater interface {
	// beat says that the instance id is there for the next while (0: that it is gone), and returns how many are.
	beat(ctx context.Context, id string, lasts time.Duration) (int, error)
}

// beat implements beater. All instances are in one value, so that counting them needs no rights beyond those of deciding.
func (s *Store) beat(ctx context.Context, id string, lasts time.Duration) (int, error) {
	args := []any{nil, nil, nil, s.prefix + ":{~instances}:heartbeat", id, lasts.Milliseconds()}
	reply, err := s.run(ctx, beat, 1, args)
	if err != nil {
		return 0, failed(ctx, "heartbeat", err)
	}
	n := numbers{rest: reply}
	count := n.next()
	if n.bad || count < 0 || count > maxInstances {
		return 0, fmt.Errorf("redisstore: heartbeat: the script answered %v, which is no number of instances", reply)
	}
	return int(count), nil
}

// heartbeats keeps counting the instances. While the store does not answer the last count holds.
func (g *Guard) heartbeats(b beater) {
	id := rand.Text()
	say := func(base context.Context, lasts time.Duration) {
		ctx, cancel := context.WithTimeout(base, g.cfg.Timeout)
		defer cancel()
		if n, err := b.beat(ctx, id, lasts); err == nil && n > 0 {
			g.shares.divide(n)
		}
	}
	say(g.base, beatFor)
	every := time.NewTicker(beatEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			if !g.breaker.open() {
				say(g.base, beatFor)
			}
		case <-g.base.Done():
			if !g.breaker.open() {
				say(context.Background(), 0)
			}
			return
		}
	}
}
