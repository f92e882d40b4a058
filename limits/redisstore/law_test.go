package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/limits"
)

var ctx = context.Background()

func policy(t testing.TB, name string, r limits.Rule) *limits.Policy {
	t.Helper()
	p, err := limits.NewPolicy(name, r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func one(p *limits.Policy, key string, cost int64) []limits.Charge {
	return []limits.Charge{{Policy: p, Key: key, Cost: cost}}
}

// everyKind has a rule of each arithmetic, with enough room for a few charges and slow enough to notice.
var everyKind = []limits.Rule{
	limits.TokenBucket{Capacity: 10, Refill: limits.PerHour(1)},
	limits.TokenBucket{Capacity: 999_983, Refill: limits.PerDay(999_983)}, // counted in ms
	limits.LeakyBucket{Capacity: 10, Leak: limits.PerHour(1)},
	limits.Delay{Rule: limits.LeakyBucket{Capacity: 10, Leak: limits.PerSecond(1)}, MaxWait: time.Hour},
	limits.FixedWindow{Quota: limits.PerDay(10)},
	limits.SlidingWindow{Quota: limits.PerDay(10)},
	limits.SlidingLog{Quota: limits.PerDay(10)},
	limits.Burst{Soft: limits.PerDay(2), Hard: limits.PerDay(10)},
	limits.Burst{Soft: limits.PerHour(2), Hard: limits.PerHour(10), Total: limits.PerDay(10)},
}

// TestRaceForOneToken lets two instances reach for the last token at the same time. The control reads and then writes, as a
// client without a script would.
func TestRaceForOneToken(t *testing.T) {
	const rounds = 2000
	clients := [2]*redis.Client{}
	stores := [2]*Store{}
	db := redistest.Shared(t).Options().DB
	for i := range clients {
		clients[i] = redistest.Shared(t, func(o *redis.Options) { o.DB = db })
		stores[i] = open(t, clients[i], Config{})
		stores[i].prefix = "race"
	}
	p := policy(t, "one", limits.TokenBucket{Capacity: 1, Refill: limits.PerDay(1)})
	scripted := race(t, rounds, func(who, round int) (bool, error) {
		d, err := stores[who].Take(ctx, time.Time{}, one(p, strconv.Itoa(round), 1))
		return d.Allowed, err
	})
	for granted, n := range scripted {
		if granted != 1 && n > 0 {
			t.Errorf("%d of %d rounds granted the one token %d times", n, rounds, granted)
		}
	}
	naive := race(t, rounds, func(who, round int) (bool, error) {
		key := "naive:" + strconv.Itoa(round)
		switch err := clients[who].Get(ctx, key).Err(); {
		case err == nil:
			return false, nil
		case !errors.Is(err, redis.Nil):
			return false, err
		}
		return true, clients[who].Set(ctx, key, "taken", time.Minute).Err()
	})
	if naive[2] == 0 {
		t.Error("the control, which reads and then writes, never granted a token twice: the race is none")
	}
}

// race runs two contenders in each round and counts the rounds by how many were granted.
func race(t *testing.T, rounds int, take func(who, round int) (bool, error)) (granted [3]int) {
	t.Helper()
	for round := range rounds {
		var got [2]bool
		var errs [2]error
		var all sync.WaitGroup
		barrier := make(chan struct{})
		for who := range 2 {
			all.Go(func() {
				<-barrier
				got[who], errs[who] = take(who, round)
			})
		}
		close(barrier)
		all.Wait()
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, g := range got {
			if g {
				n++
			}
		}
		granted[n]++
	}
	return granted
}

// TestRefusalsAndPeeksWriteNothing looks at the bytes and the expiry.
func TestRefusalsAndPeeksWriteNothing(t *testing.T) {
	client := redistest.Shared(t)
	s := open(t, client, Config{})
	free := policy(t, "free", limits.TokenBucket{Capacity: 100, Refill: limits.PerHour(1)})
	for i, r := range everyKind {
		p := policy(t, fmt.Sprint("rule", i), r)
		if d, err := s.Take(ctx, time.Time{}, one(p, "k", p.Quota())); err != nil || !d.Allowed {
			t.Fatalf("%v: allowed %v, %v", r, d.Allowed, err)
		}
		before := dump(t, client)
		both := append(one(free, "k", 1), one(p, "k", p.Quota())...)
		for _, charges := range [][]limits.Charge{one(p, "k", p.Quota()), one(p, "k", p.Quota()+1), both} {
			if _, delays := r.(limits.Delay); delays && charges[len(charges)-1].Cost == p.Quota() {
				continue // has room for one more
			}
			if d, err := s.Take(ctx, time.Time{}, charges); err != nil || d.Allowed {
				t.Fatalf("%v: allowed %v, %v", r, d.Allowed, err)
			}
		}
		if _, err := s.Peek(ctx, time.Time{}, one(free, "k", 1)); err != nil {
			t.Fatal(err)
		}
		if after := dump(t, client); after != before {
			t.Errorf("%v: a refusal or a peek wrote\nbefore %q\nafter  %q", r, before, after)
		}
	}
}

// dump returns all keys with their values and times of expiry.
func dump(t *testing.T, client *redis.Client) string {
	t.Helper()
	keys, err := client.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, k := range keys {
		all[k] = client.Get(ctx, k).Val() + " until " + client.PExpireTime(ctx, k).Val().String()
	}
	return fmt.Sprint(all)
}

// TestKeysGoWhenFull: an idle key vanishes in the very millisecond in which it is full, and none is without an end.
func TestKeysGoWhenFull(t *testing.T) {
	client := redistest.Shared(t)
	s := open(t, client, Config{})
	for i, r := range everyKind {
		p := policy(t, fmt.Sprint("rule", i), r)
		charges := one(p, "k", 2)
		d, err := s.Take(ctx, time.Time{}, charges)
		if err != nil || !d.Allowed {
			t.Fatalf("%v: allowed %v, %v", r, d.Allowed, err)
		}
		full := d.At(0).Taken + d.At(0).ResetAfter.Microseconds()
		if _, ms := r.(limits.TokenBucket); ms && p.Grain() == time.Millisecond {
			full = d.At(0).Taken/1000*1000 + 2*86_400_000_000/999_983/1000*1000 + 1000 // rounded up to a tick
			if reset := d.At(0).ResetAfter; reset > 174*time.Millisecond {
				t.Errorf("%v: reset after %v", r, reset)
			}
		}
		key := s.key(p.Name(), "k")
		want := (full + 999) / 1000
		if got := client.PExpireTime(ctx, key).Val().Milliseconds(); got != want {
			t.Errorf("%v: the key goes at %d ms, want %d: it is full at %d µs", r, got, want, full)
		}
		if err := s.Refund(ctx, time.Time{}, d); err != nil {
			t.Fatal(err)
		}
		if ttl := client.PTTL(ctx, key).Val(); ttl > time.Millisecond {
			t.Errorf("%v: after a refund of all the key stays for %v", r, ttl)
		}
	}
	// A key without an end, whoever made it so, gets one back with the next charge.
	p := policy(t, "heal", everyKind[0])
	for range 2 {
		if _, err := s.Take(ctx, time.Time{}, one(p, "k", 1)); err != nil {
			t.Fatal(err)
		}
		if client.PTTL(ctx, s.key("heal", "k")).Val() <= 0 {
			t.Error("a key without an end")
		}
		client.Persist(ctx, s.key("heal", "k"))
	}
}

// TestTheClockIsTheServers: what the caller thinks the time is changes nothing.
func TestTheClockIsTheServers(t *testing.T) {
	s := open(t, redistest.Shared(t), Config{})
	p := policy(t, "hourly", limits.TokenBucket{Capacity: 4, Refill: limits.PerHour(1)})
	for i, now := range []time.Time{{}, time.Now().Add(time.Hour), time.Now().Add(-time.Hour), time.Unix(0, 0)} {
		d, err := s.Take(ctx, now, one(p, "k", 1))
		if err != nil || !d.Allowed || d.At(0).Remaining != 3-int64(i) {
			t.Fatalf("charge %d at %v: %+v, %v", i, now, d, err)
		}
	}
	if d, err := s.Take(ctx, time.Now().Add(time.Hour), one(p, "k", 1)); err != nil || d.Allowed {
		t.Errorf("a clock an hour ahead gets more: %v, %v", d.Allowed, err)
	}
}

// TestBytesPerKey holds the promise about Redis's memory.
func TestBytesPerKey(t *testing.T) {
	server := redistest.Single(t)
	client := server.Client(t)
	s, err := New(client, Config{Prefix: "sw"})
	if err != nil {
		t.Fatal(err)
	}
	used := func() int64 {
		for line := range strings.Lines(client.Info(ctx, "memory").Val()) {
			if v, ok := strings.CutPrefix(line, "used_memory:"); ok {
				n, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
				return n
			}
		}
		t.Fatal("no used_memory")
		return 0
	}
	bucket := policy(t, "api", limits.TokenBucket{Capacity: 20, Refill: limits.PerHour(5)})
	log := policy(t, "log", limits.SlidingLog{Quota: limits.PerHour(100)})
	if name := s.key("api", "client-00000"); len(name) != 21 {
		t.Logf("%q has %d bytes", name, len(name))
	}
	const keys = 50_000
	fill := func(from, n int, charges func(key string) []limits.Charge) {
		for i := range n {
			if d, err := s.Take(ctx, time.Time{}, charges(fmt.Sprintf("client-%05d", from+i))); err != nil || !d.Allowed {
				t.Fatalf("allowed %v, %v", d.Allowed, err)
			}
		}
	}
	fill(0, 100, func(key string) []limits.Charge { return one(bucket, key, 1) }) // connections and scripts
	before := used()
	fill(100, keys, func(key string) []limits.Charge { return one(bucket, key, 1) })
	if per := (used() - before) / keys; per > 170 {
		t.Errorf("%d bytes for a bucket, want at most 170", per)
	} else {
		t.Logf("%d bytes for a bucket", per)
	}
	fill(0, 1, func(key string) []limits.Charge { return one(log, key, 1) })
	before = used()
	const logs = 50
	for range 100 {
		fill(1, logs, func(key string) []limits.Charge { return one(log, key, 1) })
	}
	if per := (used() - before) / logs; per > 2200 {
		t.Errorf("%d bytes for a log of 100, want at most 2200", per)
	} else {
		t.Logf("%d bytes for a log of 100", per)
	}
}

// field returns what follows a word in a text, up to a comma or the end of the line.
func field(text, word string) string {
	_, rest, _ := strings.Cut(text, word)
	if i := strings.IndexAny(rest, ",\r\n"); i >= 0 {
		rest = rest[:i]
	}
	return rest
}
