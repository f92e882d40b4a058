package redisstore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/limits"
)

func TestFaultSlowReplies(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	proxy := redistest.NewProxy(t, s.Addr)
	g := opened(t, "redis://"+proxy.Addr, Options{}, GuardConfig{})
	p := named(t, "p", slow)
	var c tally
	stop := c.load(t, g, 20, always(p, "k"))
	wait.Until(t, "decisions by Redis", func() bool { return c.by[limits.FromRedis].Load() > 100 })
	proxy.Delay(500 * time.Millisecond)
	g.hears(t, Down)
	before := c.by[limits.FromLocal].Load()
	wait.Until(t, "decisions without Redis", func() bool { return c.by[limits.FromLocal].Load() > before+1000 })
	proxy.Delay(0)
	g.hears(t, Up)
	before = c.by[limits.FromRedis].Load()
	wait.Until(t, "decisions by Redis again", func() bool { return c.by[limits.FromRedis].Load() > before+100 })
	stop()
	all := c.by[limits.FromRedis].Load() + c.by[limits.FromLocal].Load()
	if n := charged(t, s.Client(t), p, "k"); n > all {
		t.Errorf("Redis was charged %d for %d decisions", n, all)
	}
}

func TestFaultOutOfMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	g := opened(t, at(s), Options{}, GuardConfig{Timeout: patient})
	closed := named(t, "closed", slow, limits.WhenStoreFails(limits.Closed))
	var c tally
	c.one(t, g, single(closed, "k", 1))
	s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	for range failuresInARow {
		c.one(t, g, single(closed, "k", 1))
	}
	g.hears(t, Faulty)
	if c.unavailable.Load() != failuresInARow || c.by[limits.FromRedis].Load() != 1 {
		t.Errorf("%d unavailable, %d by Redis", c.unavailable.Load(), c.by[limits.FromRedis].Load())
	}
	if r := g.Report(); r.Errors["out_of_memory"] != failuresInARow || !strings.Contains(r.Error, "maxmemory") {
		t.Errorf("%+v", r)
	}
	s.Do(t, "CONFIG", "SET", "maxmemory", "0")
	g.hears(t, Up)
	if from := c.one(t, g, single(closed, "k", 1)); from != limits.FromRedis {
		t.Errorf("afterwards: decided by %v", from)
	}
}

// TestFaultReadOnly: the server has become a replica. Who only looks would not notice.
func TestFaultReadOnly(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	g := opened(t, at(s), Options{}, GuardConfig{Timeout: patient})
	p := named(t, "p", slow)
	var c tally
	c.one(t, g, single(p, "k", 1))
	s.Do(t, "REPLICAOF", "127.0.0.1", "1")
	for range failuresInARow {
		if from := c.one(t, g, single(p, "k", 1)); from != limits.FromLocal {
			t.Fatalf("decided by %v", from)
		}
	}
	g.hears(t, Down)
	time.Sleep(3 * firstProbe) // as long as a probe that only looks would take to be fooled
	if r := g.Report(); r.State != "down" || r.Changes != 1 || !strings.Contains(r.Error, "READONLY") {
		t.Errorf("%+v", r)
	}
	s.Do(t, "REPLICAOF", "NO", "ONE")
	g.hears(t, Up)
	if from := c.one(t, g, single(p, "k", 1)); from != limits.FromRedis {
		t.Errorf("afterwards: decided by %v", from)
	}
}

func TestFaultLoading(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	client := s.Client(t)
	pipe := client.Pipeline()
	for i := range 2000 {
		pipe.Set(t.Context(), fmt.Sprint("filler ", i), strings.Repeat("x", 100), 0)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Do(t, "SAVE")
	s.Kill()
	s.Restart(t, "--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024") // about 2 s
	g := opened(t, at(s), Options{}, GuardConfig{Timeout: patient})
	g.hears(t, Down)
	if r := g.Report(); !strings.Contains(r.Error, "LOADING") {
		t.Errorf("%+v", r)
	}
	p := named(t, "p", slow)
	var c tally
	if from := c.one(t, g, single(p, "k", 1)); from != limits.FromLocal {
		t.Errorf("while loading: decided by %v", from)
	}
	g.hears(t, Up)
	if n := client.DBSize(t.Context()).Val(); n < 2000 {
		t.Errorf("up, and only %d keys are loaded", n)
	}
	wait.Until(t, "a decision by Redis", func() bool { return c.one(t, g, single(p, "k", 1)) == limits.FromRedis })
}

func TestFaultPoolExhausted(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	proxy := redistest.NewProxy(t, s.Addr)
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr, PoolSize: 2, PoolTimeout: 10 * time.Millisecond,
		ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { client.Close() })
	g := guarded(t, client, GuardConfig{})
	p := named(t, "p", slow)
	proxy.Delay(30 * time.Millisecond)
	var c tally
	stop := c.load(t, g, 200, func(caller, _ int) []limits.Charge { return single(p, fmt.Sprint(caller), 1) })
	wait.Until(t, "decisions", func() bool { return c.by[limits.FromRedis].Load()+c.by[limits.FromLocal].Load() > 5000 })
	proxy.Delay(0)
	stop()
	wait.Until(t, "a decision by Redis", func() bool { return c.one(t, g, single(p, "k", 1)) == limits.FromRedis })
	if l := time.Duration(c.longest.Load()); l > 2500*time.Millisecond {
		t.Errorf("a decision took %v", l)
	}
	if n := g.calls.Load(); n != 0 {
		t.Errorf("%d calls are under way", n)
	}
}

// TestFaultSkewedAppClocks: what time the callers think it is plays no part.
func TestFaultSkewedAppClocks(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	p := named(t, "p", limits.TokenBucket{Capacity: 100, Refill: limits.PerDay(1)})
	admitted := 0
	for _, skew := range []time.Duration{-time.Hour, 0, time.Hour, 30 * 24 * time.Hour} {
		g := opened(t, at(s), Options{}, GuardConfig{Timeout: patient})
		for range 50 {
			d, err := g.Take(context.Background(), time.Now().Add(skew), single(p, "k", 1))
			if err != nil || d.Source != limits.FromRedis {
				t.Fatalf("%v, %v", d.Source, err)
			}
			if d.Allowed {
				admitted++
			}
		}
	}
	if admitted != 100 {
		t.Errorf("%d were admitted, want 100", admitted)
	}
}

func TestFaultBadSetups(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t, "--requirepass", "secret")
	bare := s.User(t, "bare", "~*", "+ping", "+hello")
	narrow := s.User(t, "narrow", "~spillway:*", "+evalsha", "+eval", "+get", "+set", "+time")
	dead := redistest.Single(t)
	dead.Kill()
	for name, c := range map[string]struct {
		address string
		o       Options
		state   State
		words   string
	}{
		"nobody there":     {at(dead), Options{}, Down, "refused"},
		"no password":      {at(s), Options{}, Faulty, "check user and password"},
		"wrong password":   {at(s), Options{Password: "wrong"}, Faulty, "check user and password"},
		"missing commands": {at(s), Options{Username: bare.Username, Password: bare.Password}, Faulty, "+evalsha +eval +get +set +time"},
		"least rights":     {at(s), Options{Username: narrow.Username, Password: narrow.Password}, Up, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := opened(t, c.address, c.o, GuardConfig{Timeout: patient})
			want := limits.FromLocal
			if c.state == Up {
				want = limits.FromRedis
			}
			g.hears(t, c.state)
			var n tally
			if from := n.one(t, g, single(named(t, "p", slow), "k", 1)); from != want {
				t.Errorf("decided by %v, want %v", from, want)
			}
			if r := g.Report(); !strings.Contains(r.Error, c.words) || strings.Contains(r.Error, "wrong\"") {
				t.Errorf("%+v, want %q", r, c.words)
			}
		})
	}
}

func TestFaultKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	g := opened(t, at(s), Options{}, GuardConfig{Timeout: patient})
	p := named(t, "p", slow)
	s.Do(t, "RPUSH", "spillway:{k}:p", "not ours")
	var c tally
	for range 3 * failuresInARow {
		if from := c.one(t, g, single(p, "k", 1)); from != limits.FromLocal {
			t.Fatalf("decided by %v", from)
		}
	}
	g.warned(t, "WRONGTYPE", "another prefix")
	if from := c.one(t, g, single(p, "other", 1)); from != limits.FromRedis {
		t.Errorf("other keys: decided by %v", from)
	}
	if s.Do(t, "LLEN", "spillway:{k}:p") != "1" {
		t.Error("the foreign key was touched")
	}
}
