package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/limits"
)

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
	for range 6 { // a real server, so real time; the bound below is by what has really passed
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
	wait.Until(t, "decisions by Redis", func() bool { c.one(t, g, single(p, "k", 1)); return c.by[limits.FromRedis].Load() >= 100 })
	owner, _ := n.Owner(t, "{k}")
	if got := owner.Do(t, "WAIT", 1, 20_000); got != "1" {
		t.Logf("replication: %s", got)
	}
	owner.Kill()
	killed := c.by[limits.FromRedis].Load()
	wait.Until(t, "decisions without Redis", func() bool { return c.one(t, g, single(p, "k", 1)) == limits.FromLocal })
	wait.Until(t, "decisions by the new master", func() bool { c.one(t, g, single(p, "k", 1)); return c.by[limits.FromRedis].Load() > killed+100 })
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
	wait.Until(t, "decisions by Redis", func() bool { c.one(t, g, single(p, "k", 1)); return c.by[limits.FromRedis].Load() >= 100 })
	s.Master.Stop() // split brain: it will come back and think that it is the master
	g.hears2(t, &c, p, Down)
	s.AwaitMaster(t, s.Replica)
	g.hears(t, Up)
	before := c.by[limits.FromRedis].Load()
	wait.Until(t, "decisions by the new master", func() bool { c.one(t, g, single(p, "k", 1)); return c.by[limits.FromRedis].Load() > before+100 })
	s.Master.Cont()
	if n := charged(t, s.Replica.Client(t), p, "k"); n < 100 {
		t.Errorf("the new master knows of %d charges", n)
	}
}

// hears2 keeps asking until the state is heard.
func (o *told) hears2(t *testing.T, c *tally, p *limits.Policy, s State) {
	t.Helper()
	wait.Until(t, "the state "+string(s), func() bool { c.one(t, o, single(p, "k", 1)); return o.Report().State == string(s) })
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
	wait.Until(t, "decisions", func() bool { return c.by[limits.FromRedis].Load() > 100 })
	for range 3 {
		m := n.BeginMove(t, "{moving}")
		before := c.by[limits.FromRedis].Load()
		wait.Until(t, "decisions on the way", func() bool { return c.by[limits.FromRedis].Load() > before+50 })
		m.Finish(t)
		before = c.by[limits.FromRedis].Load()
		wait.Until(t, "decisions at the goal", func() bool { return c.by[limits.FromRedis].Load() > before+50 })
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
		wait.Until(t, "three instances", func() bool { return g.Report().Instances == 3 })
	}
	all[0].Close()
	for _, g := range all[1:] {
		wait.Until(t, "two instances", func() bool { return g.Report().Instances == 2 })
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
	forgets := redistest.Single(t, "--appendonly", "yes")
	opened(t, at(forgets), Options{}, GuardConfig{Timeout: patient, Strict: true}).warned(t, "strict", "appendfsync everysec")
	keeps := opened(t, at(redistest.Single(t, "--appendonly", "yes", "--appendfsync", "always")), Options{}, GuardConfig{Timeout: patient})
	if found, err := keeps.inner.(*Store).Durability(ctx); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	narrow := s.User(t, "narrow", "~spillway:*", "+evalsha", "+eval", "+get", "+set", "+time")
	blind := opened(t, at(s), Options{Username: narrow.Username, Password: narrow.Password}, GuardConfig{Timeout: patient, Strict: true})
	blind.warned(t, "strict", "could not be found out")
}
