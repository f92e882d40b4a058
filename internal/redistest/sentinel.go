package redistest

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Sentinels is a master with one replica, watched by three sentinels: two must agree, a second of silence is death.
type Sentinels struct {
	// Name is what the sentinels call the master.
	Name            string
	Master, Replica *Server // as they were at the start, or when they last settled
	Watchers        []*Server
}

// Sentinel starts the five processes and returns when the sentinels know each other and the replica.
func Sentinel(t testing.TB) *Sentinels {
	t.Helper()
	s, err := StartSentinels(t.TempDir(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// Addrs returns the addresses of the sentinels.
func (s *Sentinels) Addrs() []string {
	var all []string
	for _, w := range s.Watchers {
		all = append(all, w.Addr)
	}
	return all
}

// Client returns a client that asks the sentinels for the master, closed with the test.
func (s *Sentinels) Client(t testing.TB, adjust ...func(*redis.FailoverOptions)) *redis.Client {
	t.Helper()
	o := &redis.FailoverOptions{MasterName: s.Name, SentinelAddrs: s.Addrs(), Protocol: 2, DisableIdentity: true,
		DialerRetries: 1, PoolSize: 16}
	for _, f := range adjust {
		f(o)
	}
	c := redis.NewFailoverClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

// AwaitMaster waits until the sentinels name want as the master and it takes writes.
func (s *Sentinels) AwaitMaster(t testing.TB, want *Server) {
	t.Helper()
	if err := await("the promotion of "+want.Addr, func() bool { return s.IsMaster(want) }); err != nil {
		t.Fatal(err)
	}
}
