package redisstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/limits"
)

// patient is a timeout for tests that are about something else, on a machine that may be busy.
const patient = 5 * time.Second

// guarded makes a Guard on a client. What it tells is collected.
func guarded(t *testing.T, client redis.UniversalClient, cfg GuardConfig) *told {
	t.Helper()
	s, err := New(client, Config{})
	if err != nil {
		t.Fatal(err)
	}
	told := &told{}
	cfg.OnChange, cfg.Warn = told.change, told.warn
	if told.Guard, err = NewGuard(s, cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { told.Close() })
	return told
}

// opened makes a Guard on an address.
func opened(t *testing.T, address string, o Options, cfg GuardConfig) *told {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = cfg.Timeout
	}
	client, err := Open(address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return guarded(t, client, cfg)
}

func at(s *redistest.Server) string { return "redis://" + s.Addr }

// told is a Guard and what it has told.
type told struct {
	*Guard
	mu       sync.Mutex
	changes  []Change
	warnings []string
}

func (o *told) change(c Change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes = append(o.changes, c)
}

func (o *told) warn(w string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.warnings = append(o.warnings, w)
}

// hears waits until the store is in a state.
func (o *told) hears(t *testing.T, s State) {
	t.Helper()
	eventually(t, "the state "+string(s), func() bool { return o.Report().State == string(s) })
}

// warned waits for a warning with all words.
func (o *told) warned(t *testing.T, words ...string) {
	t.Helper()
	eventually(t, fmt.Sprint("a warning with ", words), func() bool {
		for _, w := range o.Report().Warnings {
			all := true
			for _, word := range words {
				all = all && strings.Contains(w, word)
			}
			if all {
				return true
			}
		}
		return false
	})
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for begin := time.Now(); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > redistest.Patience {
			t.Fatalf("%s did not come within %v", what, redistest.Patience)
		}
	}
}

// tally is what became of many decisions.
type tally struct {
	by                 [limits.FromClosed + 1]atomic.Int64 // all decisions
	admitted           [limits.FromClosed + 1]atomic.Int64 // units
	unavailable, wrong atomic.Int64
	longest            atomic.Int64
}

func (c *tally) one(t *testing.T, g *told, charges []limits.Charge) limits.Source {
	begin := time.Now()
	d, err := g.Take(context.Background(), time.Time{}, charges)
	for took := int64(time.Since(begin)); ; {
		if was := c.longest.Load(); took <= was || c.longest.CompareAndSwap(was, took) {
			break
		}
	}
	var u *limits.UnavailableError
	switch {
	case errors.As(err, &u):
		c.unavailable.Add(1)
	case err != nil:
		if c.wrong.Add(1) < 5 {
			t.Errorf("an error reached the caller: %v", err)
		}
	case d.Allowed:
		c.admitted[d.Source].Add(charges[0].Cost)
	}
	c.by[d.Source].Add(1)
	return d.Source
}

// load asks from many callers until stop is called.
func (c *tally) load(t *testing.T, g *told, callers int, charges func(caller, i int) []limits.Charge) (stop func()) {
	var wg sync.WaitGroup
	done := make(chan struct{})
	for n := range callers {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
					c.one(t, g, charges(n, i))
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	var once sync.Once
	stop = func() { once.Do(func() { close(done); wg.Wait() }) }
	t.Cleanup(stop)
	return stop
}

// always asks about the same.
func always(p *limits.Policy, key string) func(int, int) []limits.Charge {
	charges := single(p, key, 1)
	return func(int, int) []limits.Charge { return charges }
}

// slow is a rule whose balance shows how often it was charged: it hardly gives anything back.
var slow = limits.TokenBucket{Capacity: 40_000, Refill: limits.Rate{Amount: 1, Per: 10 * time.Hour}}

// charged is how much of a slow rule is used, as Redis has it.
func charged(t *testing.T, client redis.UniversalClient, p *limits.Policy, key string) int64 {
	t.Helper()
	s, err := New(client, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := s.Peek(context.Background(), time.Time{}, single(p, key, 0))
	if err != nil {
		t.Fatal(err)
	}
	return p.Quota() - d.At(0).Remaining
}

func TestFaultHang(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(*testing.T, *redistest.Server) redis.UniversalClient{
		"our client": func(t *testing.T, s *redistest.Server) redis.UniversalClient {
			c, err := Open(at(s), Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			return c
		},
		"a client as it comes": func(t *testing.T, s *redistest.Server) redis.UniversalClient {
			c := redis.NewClient(&redis.Options{Addr: s.Addr})
			t.Cleanup(func() { c.Close() })
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Single(t)
			g := guarded(t, client(t, s), GuardConfig{})
			p := named(t, "p", slow)
			var c tally
			stop := c.load(t, g, 50, always(p, "k"))
			eventually(t, "decisions by Redis", func() bool { return c.by[limits.FromRedis].Load() > 500 })
			s.Stop()
			g.hears(t, Down)
			goroutines := runtime.NumGoroutine()
			before := c.by[limits.FromLocal].Load()
			eventually(t, "decisions without Redis", func() bool { return c.by[limits.FromLocal].Load() > before+5000 })
			if now := runtime.NumGoroutine(); now > goroutines+200 {
				t.Errorf("goroutines grew from %d to %d while Redis hung", goroutines, now)
			}
			s.Cont()
			g.hears(t, Up)
			after := c.by[limits.FromRedis].Load()
			eventually(t, "decisions by Redis again", func() bool { return c.by[limits.FromRedis].Load() > after+500 })
			stop()
			if l := time.Duration(c.longest.Load()); l > 2500*time.Millisecond {
				t.Errorf("a decision took %v, the store's timeout is 50ms", l)
			}
			all := c.by[limits.FromRedis].Load() + c.by[limits.FromLocal].Load()
			if n := charged(t, s.Client(t), p, "k"); n > all || n < c.admitted[limits.FromRedis].Load() {
				t.Errorf("Redis was charged %d for %d decisions, of which it made %d", n, all, c.by[limits.FromRedis].Load())
			}
		})
	}
}

// TestFaultSilentFromTheStart: connections are taken, and nothing is ever answered.
func TestFaultSilentFromTheStart(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	s.Stop()
	g := opened(t, at(s), Options{}, GuardConfig{})
	g.hears(t, Down)
	var c tally
	for range 1000 {
		if from := c.one(t, g, single(named(t, "p", slow), "k", 1)); from != limits.FromLocal {
			t.Fatalf("decided by %v", from)
		}
	}
	if r := g.Report(); r.Changes != 1 || r.Decisions["local"] != 1000 {
		t.Errorf("%+v", r)
	}
	s.Cont()
	g.hears(t, Up)
}

func TestFaultRefusedThenRestarted(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	g := opened(t, at(s), Options{PoolSize: 8}, GuardConfig{Timeout: time.Second})
	p := named(t, "p", slow)
	var c tally
	stop := c.load(t, g, 200, always(p, "k"))
	eventually(t, "decisions by Redis", func() bool { return c.by[limits.FromRedis].Load() > 500 })
	for range 3 {
		s.Kill()
		g.hears(t, Down)
		time.Sleep(20 * time.Millisecond)
		s.Restart(t)
		g.hears(t, Up)
		before := c.by[limits.FromRedis].Load()
		eventually(t, "decisions by Redis again", func() bool { return c.by[limits.FromRedis].Load() > before+500 })
	}
	stop()
	for i, change := range g.changes[:len(g.changes)/2*2] {
		if want := []State{Down, Up}[i%2]; change.State != want {
			t.Errorf("change %d is %v, want %v", i, change.State, want)
		}
	}
	if n, most := charged(t, s.Client(t), p, "k"), c.admitted[limits.FromRedis].Load(); n >= most {
		t.Errorf("after restarts that lose all %d are charged, of %d altogether", n, most)
	}
}

// TestFaultRefusedIsOverSoon: the client's own pool stops dialling after as many failures as it is large, and then notices a
// server only up to a second later. Ours does not.
func TestFaultRefusedIsOverSoon(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	g := opened(t, at(s), Options{PoolSize: 4}, GuardConfig{})
	p := named(t, "p", slow)
	s.Kill()
	var wg sync.WaitGroup
	for n := range 100 {
		wg.Go(func() {
			for range 10 { // far more failures than the pool is large
				_, _ = g.Take(context.Background(), time.Time{}, single(p, "k", 1))
				_, err := g.inner.Take(context.Background(), time.Time{}, single(p, fmt.Sprint(n), 1))
				var e *Error
				if !errors.As(err, &e) || e.MayHaveCharged() {
					t.Errorf("nobody there: %v", err)
				}
			}
		})
	}
	wg.Wait()
	g.hears(t, Down) // by itself, or by those failures
	s.Restart(t)
	if err := g.inner.(*Store).client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the first call after the return of the server: %v", err)
	}
	var c tally
	best := time.Hour
	for range 3 { // the quickest of some, for the machine may be busy
		s.Kill()
		for range failuresInARow {
			c.one(t, g, single(p, "k", 1))
		}
		s.Restart(t)
		answering := time.Now()
		eventually(t, "a decision by Redis", func() bool { return c.one(t, g, single(p, "k", 1)) == limits.FromRedis })
		best = min(best, time.Since(answering))
	}
	if best > time.Second {
		t.Errorf("Redis decides again %v after it answers, want within a second", best)
	}
}

func TestFaultScriptFlushUnderLoad(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	g := opened(t, at(s), Options{}, GuardConfig{Timeout: patient})
	p := named(t, "p", slow)
	var c tally
	stop := c.load(t, g, 20, func(caller, _ int) []limits.Charge { return single(p, fmt.Sprint(caller), 1) })
	for range 200 {
		s.Do(t, "SCRIPT", "FLUSH")
	}
	eventually(t, "decisions", func() bool { return c.by[limits.FromRedis].Load() > 500 })
	stop()
	if n := c.by[limits.FromLocal].Load(); n > 0 {
		t.Errorf("%d decisions were not made by Redis; %+v", n, g.Report())
	}
	var sum int64
	for n := range 20 {
		sum += charged(t, s.Client(t), p, fmt.Sprint(n))
	}
	if sum != c.admitted[limits.FromRedis].Load() {
		t.Errorf("%d were charged and %d admitted", sum, c.admitted[limits.FromRedis].Load())
	}
}

// TestFaultReplyLost: the call was carried out and nobody knows. It is charged once, and the policy decides.
func TestFaultReplyLost(t *testing.T) {
	t.Parallel()
	cluster := redistest.SharedCluster(t)
	owner, _ := cluster.Owner(t, "{k}")
	alone := redistest.Single(t)
	for name, c := range map[string]struct {
		target *redistest.Server
		client func(p *redistest.Proxy) redis.UniversalClient
	}{
		"one server": {alone, func(p *redistest.Proxy) redis.UniversalClient {
			c, err := Open("redis://"+p.Addr, Options{Timeout: patient})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}},
		"one server, a client as it comes": {alone, func(p *redistest.Proxy) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: p.Addr, ContextTimeoutEnabled: true})
		}},
		"a cluster, a client as it comes": {owner, func(p *redistest.Proxy) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), Dialer: p.Dial, ContextTimeoutEnabled: true})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, c.target.Addr)
			client := c.client(proxy)
			t.Cleanup(func() { client.Close() })
			g := guarded(t, client, GuardConfig{Timeout: patient, OnFailure: limits.Open})
			p := named(t, fmt.Sprint("lost ", name, time.Now().UnixNano()), slow) // the cluster is shared
			var sum tally
			for range 3 {
				sum.one(t, g, single(p, "k", 1))
			}
			for range 3 {
				trap := proxy.CutAfter("lost " + name)
				if from := sum.one(t, g, single(p, "k", 1)); from != limits.FromOpen {
					t.Errorf("decided by %v", from)
				}
				<-trap.Sprung()
			}
			// A stopped server carries the call out later, when the caller has long given up.
			proxy.DelayAfter("lost "+name, 100*time.Millisecond)
			g.cfg.Timeout = 20 * time.Millisecond
			g.epoch.Store(nil)
			if from := sum.one(t, g, single(p, "k", 1)); from != limits.FromOpen {
				t.Errorf("a late reply: decided by %v", from)
			}
			g.cfg.Timeout = patient
			g.epoch.Store(nil)
			if from := sum.one(t, g, single(p, "k", 1)); from != limits.FromRedis {
				t.Errorf("afterwards: decided by %v", from)
			}
			// On a busy machine the late one may not even have been sent in its time.
			if n := charged(t, client, p, "k"); n != 8 && n != 7 {
				t.Errorf("%d are charged for 8 decisions", n)
			}
		})
	}
}

func TestFaultSlowReplies(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	proxy := redistest.NewProxy(t, s.Addr)
	g := opened(t, "redis://"+proxy.Addr, Options{}, GuardConfig{})
	p := named(t, "p", slow)
	var c tally
	stop := c.load(t, g, 20, always(p, "k"))
	eventually(t, "decisions by Redis", func() bool { return c.by[limits.FromRedis].Load() > 100 })
	proxy.Delay(500 * time.Millisecond)
	g.hears(t, Down)
	before := c.by[limits.FromLocal].Load()
	eventually(t, "decisions without Redis", func() bool { return c.by[limits.FromLocal].Load() > before+1000 })
	proxy.Delay(0)
	g.hears(t, Up)
	before = c.by[limits.FromRedis].Load()
	eventually(t, "decisions by Redis again", func() bool { return c.by[limits.FromRedis].Load() > before+100 })
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
	eventually(t, "a decision by Redis", func() bool { return c.one(t, g, single(p, "k", 1)) == limits.FromRedis })
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
	eventually(t, "decisions", func() bool { return c.by[limits.FromRedis].Load()+c.by[limits.FromLocal].Load() > 5000 })
	proxy.Delay(0)
	stop()
	eventually(t, "a decision by Redis", func() bool { return c.one(t, g, single(p, "k", 1)) == limits.FromRedis })
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

// TestFaultFlapping stops and continues the server again and again, and holds the sum against what is promised.
func TestFaultFlapping(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	p := named(t, "p", limits.TokenBucket{Capacity: 60, Refill: limits.PerSecond(30)})
	const instances = 3
	var c tally
	begin := time.Now()
	var stops []func()
	for range instances {
		g := opened(t, at(s), Options{}, GuardConfig{Instances: instances})
		stops = append(stops, c.load(t, g, 5, always(p, "k")))
	}
	for range 6 {
		time.Sleep(300 * time.Millisecond)
		s.Stop()
		time.Sleep(300 * time.Millisecond)
		s.Cont()
	}
	for _, stop := range stops {
		stop()
	}
	most := int64(60 + 30*time.Since(begin).Seconds() + 1)
	for _, from := range []limits.Source{limits.FromRedis, limits.FromLocal} {
		if n := c.admitted[from].Load(); n > most || n == 0 {
			t.Errorf("%d were admitted by %v, want some and at most %d", n, from, most)
		}
	}
}

func TestFaultClusterMasterKilled(t *testing.T) {
	t.Parallel()
	n := redistest.Cluster(t)
	client, err := Open("redis+cluster://"+n.Addrs()[0], Options{Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	g := guarded(t, client, GuardConfig{Timeout: 200 * time.Millisecond})
	p := named(t, "p", slow)
	var c tally
	eventually(t, "decisions by Redis", func() bool { c.one(t, g, single(p, "k", 1)); return c.by[limits.FromRedis].Load() >= 100 })
	owner, _ := n.Owner(t, "{k}")
	if got := owner.Do(t, "WAIT", 1, 20_000); got != "1" {
		t.Logf("replication: %s", got)
	}
	owner.Kill()
	killed := c.by[limits.FromRedis].Load()
	eventually(t, "decisions without Redis", func() bool { return c.one(t, g, single(p, "k", 1)) == limits.FromLocal })
	eventually(t, "decisions by the new master", func() bool { c.one(t, g, single(p, "k", 1)); return c.by[limits.FromRedis].Load() > killed+100 })
	if now, _ := n.Owner(t, "{k}"); now == owner {
		t.Error("the dead master is still the owner")
	}
	if left, by := charged(t, client, p, "k"), c.admitted[limits.FromRedis].Load(); left < by-100 || left > by+int64(c.by[limits.FromLocal].Load()) {
		t.Errorf("%d are charged, Redis has admitted %d", left, by)
	}
}

func TestFaultSentinelFailover(t *testing.T) {
	t.Parallel()
	s := redistest.Sentinel(t)
	g := opened(t, "redis+sentinel://"+s.Addrs()[0]+"?master_name="+s.Name+"&addr="+s.Addrs()[1]+"&addr="+s.Addrs()[2],
		Options{Timeout: 200 * time.Millisecond}, GuardConfig{Timeout: 200 * time.Millisecond})
	p := named(t, "p", slow)
	var c tally
	eventually(t, "decisions by Redis", func() bool { c.one(t, g, single(p, "k", 1)); return c.by[limits.FromRedis].Load() >= 100 })
	s.Master.Stop() // split brain: it will come back and think that it is the master
	g.hears2(t, &c, p, Down)
	s.AwaitMaster(t, s.Replica)
	g.hears(t, Up)
	before := c.by[limits.FromRedis].Load()
	eventually(t, "decisions by the new master", func() bool { c.one(t, g, single(p, "k", 1)); return c.by[limits.FromRedis].Load() > before+100 })
	s.Master.Cont()
	if n := charged(t, s.Replica.Client(t), p, "k"); n < 100 {
		t.Errorf("the new master knows of %d charges", n)
	}
}

// hears2 keeps asking until the state is heard.
func (o *told) hears2(t *testing.T, c *tally, p *limits.Policy, s State) {
	t.Helper()
	eventually(t, "the state "+string(s), func() bool { c.one(t, o, single(p, "k", 1)); return o.Report().State == string(s) })
}

// TestFaultResharding moves the slot of a key in use from one master to the other and back, under load: every decision is
// made by Redis, and every charge is kept.
func TestFaultResharding(t *testing.T) {
	t.Parallel()
	n := redistest.SharedCluster(t)
	client, err := Open("redis+cluster://"+n.Addrs()[0], Options{Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	g := guarded(t, client, GuardConfig{Timeout: patient})
	once := fmt.Sprint(time.Now().UnixNano()) // the cluster is shared
	a, b := named(t, "resharded a"+once, slow), named(t, "resharded b"+once, slow)
	both := []limits.Charge{{Policy: a, Key: "moving", Cost: 1}, {Policy: b, Key: "moving", Cost: 1}}
	var c tally
	stop := c.load(t, g, 10, func(int, int) []limits.Charge { return both })
	eventually(t, "decisions", func() bool { return c.by[limits.FromRedis].Load() > 100 })
	for range 3 {
		m := n.BeginMove(t, "{moving}")
		before := c.by[limits.FromRedis].Load()
		eventually(t, "decisions on the way", func() bool { return c.by[limits.FromRedis].Load() > before+50 })
		m.Finish(t)
		before = c.by[limits.FromRedis].Load()
		eventually(t, "decisions at the goal", func() bool { return c.by[limits.FromRedis].Load() > before+50 })
	}
	stop()
	if local := c.by[limits.FromLocal].Load(); local > 0 {
		t.Errorf("%d decisions were not made by Redis: %+v", local, g.Report())
	}
	for _, p := range []*limits.Policy{a, b} {
		if left, by := charged(t, client, p, "moving"), c.admitted[limits.FromRedis].Load(); left != by {
			t.Errorf("%v: %d are charged, %d were admitted", p, left, by)
		}
	}
}

func TestInstancesCountEachOther(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	var all []*told
	for range 3 {
		all = append(all, opened(t, at(s), Options{}, GuardConfig{Heartbeat: true, Timeout: patient}))
	}
	for _, g := range all {
		eventually(t, "three instances", func() bool { return g.Report().Instances == 3 })
	}
	all[0].Close()
	for _, g := range all[1:] {
		eventually(t, "two instances", func() bool { return g.Report().Instances == 2 })
	}
}

func TestDangerousSetupsAreWarnedAbout(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	lax := opened(t, at(s), Options{}, GuardConfig{Timeout: patient})
	lax.warned(t, "evict", "allkeys-lru", "noeviction")
	strict := opened(t, at(s), Options{}, GuardConfig{Timeout: patient, Strict: true})
	strict.warned(t, "strict", "appendonly")
	if n := len(lax.Report().Warnings); n != 1 {
		t.Errorf("%d warnings without a strict limit, want 1", n)
	}
	var c tally
	c.one(t, lax, single(named(t, "p", slow, limits.Strict()), "k", 1)) // now there is one
	lax.warned(t, "strict", "appendonly")
	narrow := s.User(t, "narrow", "~spillway:*", "+evalsha", "+eval", "+get", "+set", "+time")
	blind := opened(t, at(s), Options{Username: narrow.Username, Password: narrow.Password}, GuardConfig{Timeout: patient, Strict: true})
	blind.warned(t, "strict", "could not be found out")
}
