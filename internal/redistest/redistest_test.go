package redistest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/internal/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.M(m)) }

func Example() {
	example := func(t *testing.T) {
		server := redistest.Single(t)
		client := server.Client(t)
		client.Incr(t.Context(), "n")
		server.Restart(t)
		fmt.Println(client.Exists(t.Context(), "n").Val()) // 0: the state is lost
	}
	_ = example // tests call it
	// Output:
}

func TestSingle(t *testing.T) {
	s := redistest.Single(t)
	c := s.Client(t, func(o *redis.Options) { o.ReadTimeout = 50 * time.Millisecond; o.ContextTimeoutEnabled = true })
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := c.Get(t.Context(), "k").Err(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a stopped server: %v, want a timeout", err)
	}
	s.Cont()
	for c.Ping(t.Context()).Err() != nil {
	}
	if v := c.Get(t.Context(), "k").Val(); v != "v" {
		t.Errorf("after going on: %q", v)
	}
	s.Kill()
	if _, err := net.Dial("tcp", s.Addr); err == nil {
		t.Error("a killed server takes connections")
	}
	s.Restart(t)
	if n, err := s.Client(t).Exists(t.Context(), "k").Result(); n != 0 || err != nil {
		t.Errorf("after a restart: %d keys, %v", n, err)
	}
}

func TestUser(t *testing.T) {
	s := redistest.SharedServer(t)
	c := redis.NewClient(s.User(t, "narrow", "~a:*", "+get"))
	defer c.Close()
	if err := c.Get(t.Context(), "a:1").Err(); err != redis.Nil {
		t.Errorf("allowed: %v", err)
	}
	if err := c.Get(t.Context(), "b:1").Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
		t.Errorf("not allowed: %v", err)
	}
}

func TestSharedDatabasesAreApart(t *testing.T) {
	a, b := redistest.Shared(t), redistest.Shared(t)
	a.Set(t.Context(), "k", 1, 0)
	if n := b.Exists(t.Context(), "k").Val(); n != 0 {
		t.Error("two tests see each other's keys")
	}
}

func TestClusterReplacesAMaster(t *testing.T) {
	n := redistest.Cluster(t)
	c := n.Client(t)
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	owner, _ := n.Owner(t, "k")
	if err := owner.Client(t).Do(t.Context(), "WAIT", 1, 10_000).Err(); err != nil {
		t.Fatal(err)
	}
	owner.Kill()
	wait.Until(t, "a new master", func() bool { return c.Set(t.Context(), "k", "w", 0).Err() == nil })
	if now, _ := n.Owner(t, "k"); now == owner {
		t.Error("the dead master still owns the slot")
	}
}

func TestSharedClusterMovesASlot(t *testing.T) {
	n := redistest.SharedCluster(t)
	c := n.Client(t)
	c.Set(t.Context(), "moving", "v", 0)
	before, _ := n.Owner(t, "moving")
	m := n.BeginMove(t, "moving")
	m.Keys(t)
	if err := before.Client(t).Get(t.Context(), "moving").Err(); err == nil || !strings.HasPrefix(err.Error(), "ASK") {
		t.Errorf("%v: %v, want ASK", m, err)
	}
	if v := c.Get(t.Context(), "moving").Val(); v != "v" {
		t.Errorf("on its way: %q", v)
	}
	m.Finish(t)
	if err := before.Client(t).Get(t.Context(), "moving").Err(); err == nil || !strings.HasPrefix(err.Error(), "MOVED") {
		t.Errorf("%v: %v, want MOVED", m, err)
	}
}

func TestSentinelPromotes(t *testing.T) {
	s := redistest.Sentinel(t)
	c := s.Client(t)
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Master.Kill()
	lost, taken := s.Master, s.Replica
	s.AwaitMaster(t, taken)
	if err := lost.Relaunch(); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(); err != nil || s.Master != taken || s.Replica != lost {
		t.Errorf("after the promotion: %v", err)
	}
}

func TestProxy(t *testing.T) {
	s := redistest.SharedServer(t)
	p := redistest.NewProxy(t, s.Addr)
	c := redistest.Shared(t, func(o *redis.Options) { o.Addr = p.Addr })
	if err := c.Set(t.Context(), "n", 0, 0).Err(); err != nil {
		t.Fatal(err)
	}
	trap := p.CutAfter("incr")
	if err := c.Incr(t.Context(), "n").Err(); !errors.Is(err, io.EOF) {
		t.Errorf("cut after execution: %v", err)
	}
	<-trap.Sprung()
	if n := c.Get(t.Context(), "n").Val(); n != "1" {
		t.Errorf("n is %s, want 1: executed once", n)
	}
	trap = p.DelayAfter("incr", time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-trap.Sprung(); cancel() }()
	slow := redistest.Shared(t, func(o *redis.Options) {
		o.Addr, o.ReadTimeout, o.DB = p.Addr, 20*time.Millisecond, c.Options().DB
	})
	if err := slow.Incr(ctx, "n").Err(); err == nil {
		t.Error("a delayed reply came at once")
	}
	if n := c.Get(t.Context(), "n").Val(); n != "2" {
		t.Errorf("n is %s, want 2: executed once", n)
	}
	p.Cut()
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Error("a cut link answers")
	}
	p.Heal()
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Errorf("a healed link: %v", err)
	}
}
