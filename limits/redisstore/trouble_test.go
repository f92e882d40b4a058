package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/limits"
)

// wants fails unless err is an *Error of the kind, and says one of the words.
func wants(t *testing.T, err error, kind Kind, words ...string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("error %v, want an *Error of kind %v", err, kind)
		return
	}
	if e.Kind != kind {
		t.Errorf("kind %v, want %v: %v", e.Kind, kind, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, err)
		}
	}
}

// TestAKeyOfSomebodyElse is refused whatever it holds, and left as it is.
func TestAKeyOfSomebodyElse(t *testing.T) {
	client := redistest.Shared(t)
	s := open(t, client, Config{})
	for i, r := range everyKind {
		p := policy(t, fmt.Sprint("rule", i), r)
		key := s.key(p.Name(), "k")
		for _, foreign := range []string{"", "hello", "m", "m1", "17", strings.Repeat("m\x11", 3), "long text that begins with l", "t\x3f" + strings.Repeat("x", 24), "{\"json\": true}"} {
			client.Set(ctx, key, foreign, 0)
			_, err := s.Take(ctx, time.Time{}, one(p, "k", 1))
			wants(t, err, Misconfigured, key, "another prefix")
			if got := client.Get(ctx, key).Val(); got != foreign {
				t.Errorf("%q has become %q", foreign, got)
			}
		}
		client.Del(ctx, key)
		client.LPush(ctx, key, "x")
		_, err := s.Take(ctx, time.Time{}, one(p, "k", 1))
		wants(t, err, Misconfigured, "WRONGTYPE", "another prefix")
	}
	// A refund gives back what it can, and says what it could not.
	a, b := policy(t, "a", everyKind[0]), policy(t, "b", everyKind[0])
	d, err := s.Take(ctx, time.Time{}, []limits.Charge{{Policy: a, Key: "k", Cost: 3}, {Policy: b, Key: "k", Cost: 3}})
	if err != nil {
		t.Fatal(err)
	}
	client.Set(ctx, s.key("a", "k"), "hello", 0)
	wants(t, s.Refund(ctx, time.Time{}, d), Misconfigured, s.key("a", "k"))
	if d, err := s.Peek(ctx, time.Time{}, one(b, "k", 1)); err != nil || d.At(0).Remaining != 9 {
		t.Errorf("after the refund: %+v, %v", d, err)
	}
}

// TestRights: the least that a user needs is enough, and with less the error says so.
func TestRights(t *testing.T) {
	server := redistest.SharedServer(t)
	least := []string{"~spillway:*", "+evalsha", "+eval", "+get", "+set", "+time"}
	p := policy(t, "right", limits.TokenBucket{Capacity: 5, Refill: limits.PerHour(1)})
	server.Do(t, "SCRIPT", "FLUSH")
	for i, drop := range append([]string{""}, least...) {
		var rights []string
		for _, r := range least {
			if r != drop {
				rights = append(rights, r)
			}
		}
		u := server.User(t, fmt.Sprint("user", i), rights...)
		client, err := Open("redis://"+u.Addr, Options{Timeout: 10 * time.Second, Username: u.Username, Password: u.Password})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		s, err := New(client, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if drop == "+eval" {
			server.Do(t, "SCRIPT", "FLUSH")
		}
		d, err := s.Take(ctx, time.Time{}, one(p, u.Username, 2))
		if drop != "" {
			wants(t, err, Misconfigured, "+evalsha +eval +get +set +time")
			continue
		}
		if err != nil || !d.Allowed {
			t.Errorf("with %v: allowed %v, %v", rights, d.Allowed, err)
		}
		if err := s.Refund(ctx, time.Time{}, d); err != nil {
			t.Error(err)
		}
	}
	wrong, err := Open("redis://"+server.Addr, Options{Timeout: 10 * time.Second, Username: "user0", Password: "wrong"})
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.Close()
	s, _ := New(wrong, Config{})
	_, err = s.Take(ctx, time.Time{}, one(p, "k", 1))
	wants(t, err, Misconfigured, "password")
}

// TestOutOfMemory is no refusal, and charges nothing.
func TestOutOfMemory(t *testing.T) {
	server := redistest.Single(t)
	s := open(t, server.Client(t), Config{})
	p := policy(t, "p", limits.TokenBucket{Capacity: 5, Refill: limits.PerHour(1)})
	if _, err := s.Take(ctx, time.Time{}, one(p, "k", 1)); err != nil {
		t.Fatal(err)
	}
	server.Do(t, "CONFIG", "SET", "maxmemory", "1mb")
	_, err := s.Take(ctx, time.Time{}, one(p, "k", 1))
	wants(t, err, OutOfMemory, "maxmemory")
	server.Do(t, "CONFIG", "SET", "maxmemory", "0")
	if d, err := s.Take(ctx, time.Time{}, one(p, "k", 1)); err != nil || d.At(0).Remaining != 3 {
		t.Errorf("remaining %d, %v; want 3", d.At(0).Remaining, err)
	}
}

// TestScriptsForgotten: a server that forgets scripts all the time costs nobody an error or a charge.
func TestScriptsForgotten(t *testing.T) {
	server := redistest.SharedServer(t)
	s := open(t, redistest.Shared(t), Config{})
	p := policy(t, "p", limits.TokenBucket{Capacity: 1000, Refill: limits.PerDay(1)})
	const callers, each = 8, 50
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range each {
				if i%10 == 0 {
					server.Do(t, "SCRIPT", "FLUSH")
				}
				if d, err := s.Take(ctx, time.Time{}, one(p, "k", 1)); err != nil || !d.Allowed {
					t.Errorf("allowed %v, %v", d.Allowed, err)
				}
			}
		})
	}
	all.Wait()
	if d, err := s.Peek(ctx, time.Time{}, one(p, "k", 1)); err != nil || d.At(0).Remaining != 1000-callers*each-1 {
		t.Errorf("remaining %d, %v", d.At(0).Remaining, err)
	}
}

// TestALostReplyIsOneCharge cuts the connection after the server has charged: the caller learns that it does not know, and
// the charge is not made again. So on a cluster.
func TestALostReplyIsOneCharge(t *testing.T) {
	server := redistest.SharedServer(t)
	proxy := redistest.NewProxy(t, server.Addr)
	single := redistest.Shared(t, func(o *redis.Options) { o.Dialer, o.MaxRetries = proxy.Dial, 3 })
	t.Run("single", func(t *testing.T) { lostReply(t, proxy, single, "k") })

	nodes := redistest.SharedCluster(t)
	client := nodes.Client(t)
	key := "k"
	owner, _ := nodes.Owner(t, "{"+key+"}")
	before := redistest.NewProxy(t, owner.Addr)
	client = nodes.Client(t, func(o *redis.ClusterOptions) { o.Dialer, o.MaxRetries = before.Dial, 3 })
	t.Run("cluster", func(t *testing.T) { lostReply(t, before, client, key) })
}

func lostReply(t *testing.T, proxy *redistest.Proxy, client redis.UniversalClient, key string) {
	s := open(t, client, Config{})
	p := policy(t, "p", limits.TokenBucket{Capacity: 10, Refill: limits.PerDay(1)})
	first, err := s.Take(ctx, time.Time{}, one(p, key, 1)) // warm: connections and scripts
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Refund(ctx, time.Time{}, first); err != nil {
		t.Fatal(err)
	}
	if first, err = s.Take(ctx, time.Time{}, one(p, key, 1)); err != nil {
		t.Fatal(err)
	}
	trap := proxy.CutAfter("evalsha")
	_, err = s.Take(ctx, time.Time{}, one(p, key, 1))
	wants(t, err, Unknown, "may have been carried out")
	<-trap.Sprung()
	if d, err := s.Peek(ctx, time.Time{}, one(p, key, 0)); err != nil || d.At(0).Remaining != 8 {
		t.Errorf("remaining %d, %v; want 8: charged once", d.At(0).Remaining, err)
	}
	trap = proxy.CutAfter("evalsha")
	wants(t, s.Refund(ctx, time.Time{}, first), Unknown)
	<-trap.Sprung()
	if d, err := s.Peek(ctx, time.Time{}, one(p, key, 0)); err != nil || d.At(0).Remaining != 9 {
		t.Errorf("remaining %d, %v; want 9: given back once", d.At(0).Remaining, err)
	}
}

// TestNobodyListens and TestSilence: trouble of the network is told apart by whether anything can have happened.
func TestNobodyListens(t *testing.T) {
	server := redistest.Single(t)
	server.Kill()
	client, err := Open("redis://"+server.Addr, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s, _ := New(client, Config{})
	p := policy(t, "p", limits.TokenBucket{Capacity: 10, Refill: limits.PerDay(1)})
	_, err = s.Take(ctx, time.Time{}, one(p, "k", 1))
	wants(t, err, NotExecuted)
	server.Restart(t)
	if _, err := s.Take(ctx, time.Time{}, one(p, "k", 1)); err != nil {
		t.Errorf("after the server has come: %v", err)
	}
}

func TestSilence(t *testing.T) {
	server := redistest.Single(t)
	client, err := Open("redis://"+server.Addr+"?read_timeout=10s", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s, _ := New(client, Config{})
	p := policy(t, "p", limits.TokenBucket{Capacity: 10, Refill: limits.PerDay(1)})
	if _, err := s.Take(ctx, time.Time{}, one(p, "k", 1)); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	defer server.Cont()
	short, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err = s.Take(short, time.Time{}, one(p, "k", 1))
	wants(t, err, Cancelled)
	var e *Error
	if errors.As(err, &e) && !e.MayHaveCharged() {
		t.Error("a call that was sent is said not to have charged")
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the caller's deadline of 30ms was minded after %v", took)
	}
	done, stop := context.WithCancel(ctx)
	stop()
	_, err = s.Take(done, time.Time{}, one(p, "k", 1))
	wants(t, err, Cancelled)
	if errors.As(err, &e) && e.MayHaveCharged() {
		t.Error("a call that was not sent is said to have charged")
	}
}
