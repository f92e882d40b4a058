package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/limits"
)

// TestABundleIsDecisionsOneAfterTheOther asks about many balances in one run of a script, some of them twice and by rules that
// have changed, and holds each decision against what a Memory answers that is asked one by one.
func TestABundleIsDecisionsOneAfterTheOther(t *testing.T) {
	client := redistest.Shared(t)
	s := played(open(t, client, Config{}))
	rules := []limits.Rule{
		limits.TokenBucket{Capacity: 30, Refill: limits.PerSecond(7)},
		limits.TokenBucket{Capacity: 999_983, Refill: limits.PerDay(999_983)},                                      // counted in ms
		limits.TokenBucket{Capacity: 3, Refill: limits.PerHour(1)},                                                 // since is long ago
		limits.Delay{Rule: limits.TokenBucket{Capacity: 5, Refill: limits.PerSecond(3)}, MaxWait: 3 * time.Second}, // lends
		limits.Delay{Rule: limits.LeakyBucket{Capacity: 9, Leak: limits.PerSecond(3)}, MaxWait: 2 * time.Second},   // a queue
		limits.TokenBucket{Capacity: 0, Refill: limits.PerSecond(1)},
		limits.FixedWindow{Quota: limits.PerSecond(20)}, // not for batches
	}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 4))
		m, err := limits.NewMemory(limits.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Date(2026, 5, 1, 10, 0, 0, 123_000, time.UTC)
		policies := make([]*limits.Policy, 4)
		for i := range policies {
			policies[i] = policy(t, fmt.Sprintf("batch %d.%d", seed, i), rules[r.IntN(len(rules))])
		}
		for step := range 30 {
			if r.IntN(5) == 0 {
				i := r.IntN(len(policies))
				policies[i] = policy(t, policies[i].Name(), rules[r.IntN(len(rules))])
			}
			queries := someQueries(t, s, r, now, policies)
			turn := make([]int, len(queries)) // what is not fast comes after what is, and what turned out not to be at the end
			for n, c := range queries {
				if !c.fast() {
					turn[n] = 1
				}
			}
			s.decideAll(ctx, queries...)
			for which := range 3 {
				for n, c := range queries {
					if turn[n] == 0 && !c.fast() {
						turn[n] = 2
					}
					if turn[n] != which {
						continue
					}
					if c.err != nil {
						t.Fatalf("seed %d, step %d, query %d: %v", seed, step, n, c.err)
					}
					for _, row := range c.rows {
						ask := m.Peek
						if c.take {
							ask = m.Take
						}
						want, err := ask(ctx, now, row.charges)
						if err != nil {
							t.Fatal(err)
						}
						if err := differ(&row.d, &want); err != nil {
							t.Fatalf("seed %d, step %d, query %d of %d, turn %d: %v", seed, step, n, len(queries), turn[n], err)
						}
					}
				}
			}
			now = now.Add(time.Duration(r.Int64N(int64(700 * time.Millisecond))))
		}
	}
}

// someQueries asks about some balances of a few clients.
func someQueries(t *testing.T, s *Store, r *rand.Rand, now time.Time, policies []*limits.Policy) (queries []*query) {
	for range 1 + r.IntN(8) {
		charges := make([]limits.Charge, 1+r.IntN(3))
		key := strconv.Itoa(r.IntN(4))
		for i := range charges {
			charges[i] = limits.Charge{Policy: policies[r.IntN(len(policies))], Key: key, Shadow: r.IntN(6) == 0}
		}
		c := &query{take: r.IntN(5) > 0}
		rows := 1
		if c.take {
			rows += r.IntN(6)
		}
		for range rows {
			for i := range charges {
				if r.IntN(2) == 0 { // else the same again
					charges[i].Cost = []int64{0, 1, 1, 2, 3, 1 + charges[i].Policy.Quota()/3, charges[i].Policy.Quota() + 1}[r.IntN(7)]
				}
			}
			q, err := s.ask(now, charges)
			if err != nil {
				t.Fatal(err)
			}
			c.rows = append(c.rows, q)
		}
		queries = append(queries, c)
	}
	return queries
}

// TestOneWrongKeyConcernsNobodyElse: in a batch with what is somebody else's, whatever its type, the others are decided.
func TestOneWrongKeyConcernsNobodyElse(t *testing.T) {
	client := redistest.Shared(t)
	s := open(t, client, Config{})
	p := policy(t, "p", limits.TokenBucket{Capacity: 5, Refill: limits.PerDay(1)})
	client.LPush(ctx, s.key("p", "list"), "x")
	client.Set(ctx, s.key("p", "text"), "hello", 0)
	client.Set(ctx, s.key("p", "empty"), "", 0)
	client.Set(ctx, s.key("p", "mark"), elsewhere, 0)
	var queries []*query
	keys := []string{"a", "list", "b", "text", "c", "empty", "d", "mark", "e"}
	for _, key := range keys {
		q, err := s.ask(time.Time{}, one(p, key, 2))
		if err != nil {
			t.Fatal(err)
		}
		queries = append(queries, &query{rows: []*question{q}, take: true})
	}
	s.decideAll(ctx, queries...)
	for i, c := range queries {
		if len(keys[i]) > 1 {
			wants(t, failed(ctx, "take", c.err), Misconfigured, "another prefix")
		} else if d := &c.rows[0].d; c.err != nil || !d.Allowed || d.At(0).Remaining != 3 {
			t.Errorf("%s: %+v, %v", keys[i], d, c.err)
		}
	}
}

// TestAClusterInDisguise: keys of different servers go apart when the first batch is refused, and nothing is charged twice.
func TestAClusterInDisguise(t *testing.T) {
	s := open(t, struct{ redis.UniversalClient }{redistest.SharedCluster(t).Client(t)}, Config{})
	p := policy(t, "p", limits.TokenBucket{Capacity: 5, Refill: limits.PerDay(1)})
	for round := range int64(2) {
		var queries []*query
		for i := range 20 {
			q, err := s.ask(time.Time{}, one(p, strconv.Itoa(i), 1))
			if err != nil {
				t.Fatal(err)
			}
			queries = append(queries, &query{rows: []*question{q}, take: true})
		}
		s.decideAll(ctx, queries...)
		for i, c := range queries {
			if d := &c.rows[0].d; c.err != nil || !d.Allowed || d.At(0).Remaining != 4-round {
				t.Errorf("round %d, client %d: %+v, %v", round, i, d, c.err)
			}
		}
	}
	if !s.apart() {
		t.Error("it has not noticed")
	}
}

// FuzzBatchAnswer reads anything as the answer to a batch.
func FuzzBatchAnswer(f *testing.F) {
	p, err := limits.NewPolicy("fuzz", limits.TokenBucket{Capacity: 10, Refill: limits.PerHour(1)})
	if err != nil {
		f.Fatal(err)
	}
	tag := compile(p).tag()
	long := func(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)[1:]) }
	for _, answer := range []string{"", "1", "1\n1", "1\n1\n", "1000000000000000\n1\n", "1000000000000000\n0\n?", "1\n1\n\n", "x\ny\nz", "-1\n0\n",
		"1000000000000000\n1\n" + tag + long(1e15) + long(1), "1000000000000000\n0\n" + tag + long(1e15) + long(1<<53),
		"1000000000000000\n1\n" + tag + long(1<<56-1) + long(1<<56-1), "1000000000000000\n1\n" + tag + long(5) + long(5) + long(6)} {
		f.Add(answer, uint16(1), true)
		f.Add(answer, uint16(11), false)
	}
	s := &Store{prefix: DefaultPrefix}
	f.Fuzz(func(t *testing.T, answer string, cost uint16, take bool) {
		q, err := s.ask(time.Time{}, one(p, "k", int64(cost)))
		if err != nil {
			t.Fatal(err)
		}
		b := batch{queries: []*query{{rows: []*question{q}, take: take}}}
		b.fill(s)
		cmd := texts{redis.NewStringSliceCmd(ctx)}
		cmd.SetVal(strings.Split(answer, "\n"))
		b.job.cmd = cmd
		if err := b.read(); err == nil && q.d.Allowed && int64(cost) > p.Quota() {
			t.Errorf("%q means that a cost of %d is allowed of %d", answer, cost, p.Quota())
		}
		b.job.err = errors.New("lost")
		if b.read() == nil {
			t.Error("what is lost is read")
		}
	})
}
