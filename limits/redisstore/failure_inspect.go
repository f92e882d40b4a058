package redisstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// punctual reports whether the client minds the deadline of a context, so that a call with one ends in time.
func (s *Store) punctual() bool {
	switch c := s.client.(type) {
	case *redis.Client:
		return c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return c.Options().ContextTimeoutEnabled
	}
	return false
}

// knock dials the server and hangs up. It is what a probe does first: the pool of a client stops dialling for a second when
// dialling has failed too often, and a probe should not add to that. Clusters are not knocked at, for which of their servers
// matters only the client knows.
func (s *Store) knock(ctx context.Context) error {
	c, ok := s.client.(*redis.Client)
	if !ok {
		return nil
	}
	o := c.Options()
	if o.Dialer == nil {
		return nil
	}
	conn, err := o.Dialer(ctx, o.Network, o.Addr)
	if err != nil {
		return dialError(o.Network, err)
	}
	return conn.Close()
}

// Inspect asks the server how it is set up and returns what speaks against keeping quotas there, in sentences. The error says
// that it may not be asked: that takes rights (+config|get +info) that deciding does not need. On a cluster one server is
// asked.
func (s *Store) Inspect(ctx context.Context) ([]string, error) {
	var found []string
	policy, err := s.setting(ctx, "maxmemory-policy")
	if err != nil {
		return nil, err
	}
	limit, err := s.setting(ctx, "maxmemory")
	if err != nil {
		return nil, err
	}
	if policy != "noeviction" && limit != "0" {
		found = append(found, fmt.Sprintf("Redis may evict balances when its memory is full (maxmemory-policy %s), and an evicted "+
			"balance is a full one; use noeviction, or a Redis of its own for quotas", policy))
	}
	return found, nil
}

// Durability asks the server whether it can lose what it has acknowledged, which only matters for quotas that are strict. See
// Inspect for the error.
func (s *Store) Durability(ctx context.Context) ([]string, error) {
	var found []string
	appends, err := s.setting(ctx, "appendonly")
	if err != nil {
		return nil, err
	}
	if appends != "yes" {
		found = append(found, "a limit is strict, and Redis forgets it in a restart (appendonly no): each restart can cost one "+
			"quota; use appendonly yes")
	} else {
		synced, err := s.setting(ctx, "appendfsync")
		if err != nil {
			return nil, err
		}
		if synced != "always" {
			found = append(found, fmt.Sprintf("a limit is strict, and a crash of Redis forgets what it has not written yet (appendfsync %s); "+
				"use appendfsync always", synced))
		}
	}
	info, err := s.client.Info(ctx, "replication").Result()
	if err != nil {
		return nil, err
	}
	if strings.Contains(info, "connected_slaves:") && !strings.Contains(info, "connected_slaves:0") {
		replicas, err := s.setting(ctx, "min-replicas-to-write")
		if err != nil {
			return nil, err
		}
		if replicas == "0" {
			found = append(found, "a limit is strict, and a failover of Redis forgets what its replicas have not seen yet "+
				"(min-replicas-to-write 0); use min-replicas-to-write 1 and a small min-replicas-max-lag")
		}
	}
	return found, nil
}

func (s *Store) setting(ctx context.Context, name string) (string, error) {
	all, err := s.client.ConfigGet(ctx, name).Result()
	if err != nil {
		return "", err
	}
	return all[name], nil
}
