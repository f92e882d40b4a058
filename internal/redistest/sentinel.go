package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A Sentinels is a master with one replica, watched by three sentinels: two must agree, a second of silence is death.
type Sentinels struct {
	// Name is what the sentinels call the master.
	Name            string
	Master, Replica *Server // as they were at the start
	Watchers        []*Server
}

// Sentinel starts the five processes and returns when the sentinels know each other and the replica.
func Sentinel(t testing.TB) *Sentinels {
	t.Helper()
	s := &Sentinels{Name: "main", Master: Single(t, "--repl-diskless-sync-delay", "0")}
	s.Replica = Single(t, "--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1 "+strconv.Itoa(s.Master.Port))
	if err := s.Replica.awaitLink(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		dir := t.TempDir()
		file := filepath.Join(dir, "sentinel.conf")
		text := fmt.Sprintf("bind 127.0.0.1\nsentinel monitor %[1]s 127.0.0.1 %[2]d 2\n"+
			"sentinel down-after-milliseconds %[1]s 1000\nsentinel failover-timeout %[1]s 3000\n", s.Name, s.Master.Port)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := start(dir, []string{file, "--sentinel"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Kill)
		s.Watchers = append(s.Watchers, w)
	}
	for _, w := range s.Watchers {
		err := await("a sentinel that knows everybody", func() bool {
			info, err := w.do("INFO", "sentinel")
			return err == nil && strings.Contains(info, "status=ok") && strings.Contains(info, "slaves=1,sentinels=3")
		})
		if err != nil {
			t.Fatal(err)
		}
	}
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
	err := await("the promotion of "+want.Addr, func() bool {
		for _, w := range s.Watchers {
			named, err := w.do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.Name)
			if err != nil || !strings.Contains(named, strconv.Itoa(want.Port)) {
				return false
			}
		}
		role, err := want.do("ROLE")
		return err == nil && strings.Contains(role, "master")
	})
	if err != nil {
		t.Fatal(err)
	}
}
