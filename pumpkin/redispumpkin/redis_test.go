package redispumpkin

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/internal/testlog"
	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/pumpkin"
)

func pollOf(p *pumpkin.Pumpkin) string {
	w := httptest.NewRecorder()
	p.Public().ServeHTTP(w, httptest.NewRequest("GET", "/pumpkin.json", nil))
	return w.Body.String()
}

// lazyClient is one that is never asked.
func lazyClient(t *testing.T) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { c.Close() })
	return c
}

// realNodes joins n instances through clients of their own.
func realNodes(t *testing.T, client func() redis.UniversalClient, names ...string) []node {
	t.Helper()
	var all []node
	for _, name := range names {
		n := node{log: new(testlog.Log)}
		var err error
		if n.Pumpkin, err = pumpkin.New(pumpkin.Config{Logger: slog.New(slog.DiscardHandler)}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(n.Pumpkin.Close)
		n.Store, err = Join(n.Pumpkin, Config{
			Client: client(), Namespace: "test", Instance: name, Logger: slog.New(slog.NewTextHandler(n.log, nil)), Timeout: 10 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(n.Store.Close)
		all = append(all, n)
	}
	return all
}

// gentle are options for a client on a machine that may be busy.
func gentle(o *redis.Options) {
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
}

func allSee(t *testing.T, all []node, want string) {
	t.Helper()
	for _, n := range all {
		wait.Until(t, n.c.Instance+" sees "+want, func() bool { return n.ids() == want })
	}
}

func sameBytes(t *testing.T, all []node) {
	t.Helper()
	wait.Until(t, "the same bytes", func() bool {
		for _, n := range all {
			if pollOf(n.Pumpkin) != pollOf(all[0].Pumpkin) {
				return false
			}
		}
		return true
	})
}

func TestRealInstancesShare(t *testing.T) {
	server := redistest.Single(t)
	all := realNodes(t, func() redis.UniversalClient { return server.Client(t, gentle) }, "a", "b", "c")
	all[0].put(t, "x", time.Hour)
	allSee(t, all, "x")
	all[1].put(t, "y", time.Hour)
	allSee(t, all, "x y")
	if _, err := all[2].Clear("ada", "x"); err != nil {
		t.Fatal(err)
	}
	allSee(t, all, "y")
	sameBytes(t, all)
}

func TestRealWritersRace(t *testing.T) {
	server := redistest.Single(t)
	all := realNodes(t, func() redis.UniversalClient { return server.Client(t, gentle) }, "a", "b")
	want := ""
	var wg sync.WaitGroup
	for i, n := range all {
		for k := range 7 {
			id := fmt.Sprintf("%c%d", 'a'+i, k)
			want += id + " "
			wg.Go(func() {
				if err := n.Put("ada", id, entry(id, time.Hour)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	allSee(t, all, want[:len(want)-1])
	sameBytes(t, all)
}

func TestRealRedisIsFlushed(t *testing.T) {
	server := redistest.Single(t)
	all := realNodes(t, func() redis.UniversalClient { return server.Client(t, gentle) }, "a", "b")
	all[0].put(t, "x", time.Hour)
	allSee(t, all, "x")
	epoch := all[0].Document().Epoch
	server.Do(t, "FLUSHALL")
	for _, n := range all {
		wait.Until(t, "a new epoch", func() bool {
			if n.ids() != "x" {
				t.Fatalf("a poll shows %q", n.ids())
			}
			return n.Document().Epoch > epoch
		})
	}
	sameBytes(t, all)
}

func TestRealRedisDiesAndComesBackEmpty(t *testing.T) {
	server := redistest.Single(t)
	all := realNodes(t, func() redis.UniversalClient { return server.Client(t, gentle) }, "a", "b")
	all[0].put(t, "x", time.Hour)
	allSee(t, all, "x")
	server.Kill()
	all[0].put(t, "here", time.Hour)
	if all[0].Pumpkin.Status().Unshared != 1 {
		t.Errorf("%+v", all[0].Pumpkin.Status())
	}
	if _, err := all[1].Clear("ada", "x"); err != nil {
		t.Fatal(err)
	}
	all[0].sees(t, "here x")
	all[1].sees(t, "")
	server.Restart(t)
	allSee(t, all, "here")
	sameBytes(t, all)
}

func TestRealPartition(t *testing.T) {
	server := redistest.Single(t)
	proxy := redistest.NewProxy(t, server.Addr)
	a := realNodes(t, func() redis.UniversalClient {
		return server.Client(t, gentle, func(o *redis.Options) { o.Dialer = proxy.Dial })
	}, "a")[0]
	b := realNodes(t, func() redis.UniversalClient { return server.Client(t, gentle) }, "b")[0]
	a.put(t, "x", time.Hour)
	allSee(t, []node{a, b}, "x")
	proxy.Cut()
	a.put(t, "here", time.Hour)
	b.put(t, "there", time.Hour)
	a.sees(t, "here x")
	b.sees(t, "there x")
	proxy.Heal()
	allSee(t, []node{a, b}, "here there x")
	sameBytes(t, []node{a, b})
}

// The reply to a write is cut off after it was made: it is here, marked, and not twice.
func TestRealReplyIsLost(t *testing.T) {
	server := redistest.Single(t)
	proxy := redistest.NewProxy(t, server.Addr)
	n := realNodes(t, func() redis.UniversalClient {
		return server.Client(t, gentle, func(o *redis.Options) { o.Dialer = proxy.Dial })
	}, "a")[0]
	n.put(t, "x", time.Hour) // the script is loaded
	trap := proxy.CutAfter("evalsha")
	n.put(t, "y", time.Hour)
	<-trap.Sprung()
	n.sees(t, "x y")
	wait.Until(t, "agreement", func() bool { return n.Pumpkin.Status().Unshared == 0 })
	n.sees(t, "x y")
}

// The rights that the documentation names are enough, and a hint that may not be given is no failure.
func TestRealRights(t *testing.T) {
	server := redistest.Single(t)
	rights := []string{"~{pumpkin:*", "+hmget", "+hset", "+hgetall", "+hdel", "+pexpire", "+time", "+publish", "+subscribe", "+evalsha", "+eval", "+ping"}
	for _, channels := range []string{"&{pumpkin:*", "resetchannels"} {
		o := server.User(t, "u"+fmt.Sprint(len(channels)), append(rights, channels)...)
		gentle(o)
		client := redis.NewClient(o)
		t.Cleanup(func() { client.Close() })
		n := realNodes(t, func() redis.UniversalClient { return client }, "a")[0]
		n.put(t, fmt.Sprint("x", len(channels)), time.Hour)
		if s := n.Pumpkin.Status(); s.Unshared != 0 || !s.Store.Reachable {
			t.Errorf("%s: %+v", channels, s.Store)
		}
		n.Vote("up")
		wait.Until(t, "votes", func() bool { _, _, ok := n.Vote("up"); return ok })
		n.Store.Close()
	}
}

func TestRealCluster(t *testing.T) {
	nodes := redistest.SharedCluster(t)
	all := realNodes(t, func() redis.UniversalClient { return nodes.Client(t) }, "a", "b")
	all[0].put(t, "x", time.Hour)
	allSee(t, all, "x")
	for i, n := range all {
		n.Vote(fmt.Sprint(i))
	}
	wait.Until(t, "all votes", func() bool { _, votes, ok := all[0].Vote("0"); return ok && len(votes) == 2 && votes["b"] == "1" })
}
