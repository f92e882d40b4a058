package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/storetest"
)

func TestStoreKeepsThePromisesOnACluster(t *testing.T) {
	client := redistest.SharedCluster(t).Client(t)
	storetest.Run(t, func(t *testing.T) limits.Store { return careful{played(open(t, client, Config{}))} })
}

// careful looks before it takes. The suite lets time step back between calls about the same balance; what is taken and given
// back again has seen the later time, as no server's clock would show it.
type careful struct{ *Store }

func (c careful) Take(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	if d, err := c.Peek(ctx, now, charges); err != nil || !d.Allowed {
		return d, err
	}
	return c.Store.Take(ctx, now, charges)
}

// TestGlobalRulesBesideOnesPerClient: on a cluster they live apart, and what one refuses the other gets back exactly.
func TestGlobalRulesBesideOnesPerClient(t *testing.T) {
	client := redistest.SharedCluster(t).Client(t)
	s := open(t, client, Config{})
	for _, r := range everyKind {
		if _, delays := r.(limits.Delay); delays {
			continue
		}
		mine, all := policy(t, "mine "+r.String(), r), policy(t, "all "+r.String(), r)
		quota := mine.Quota()
		take := func(key string, own, everybodys int64) limits.Decision {
			t.Helper()
			d, err := s.Take(ctx, time.Time{}, []limits.Charge{{Policy: all, Cost: everybodys}, {Policy: mine, Key: key, Cost: own}})
			if err != nil {
				t.Fatalf("%v: %v", r, err)
			}
			return d
		}
		if d := take("a", 3, quota-1); !d.Allowed || d.At(0).Policy != all || d.At(1).Remaining != quota-3 || d.Source != limits.FromRedis {
			t.Errorf("%v: first: %+v", r, d)
		}
		// Everybody's refuses: what the client was charged comes back, and the verdicts say what was found.
		d := take("a", 2, 2)
		if d.Allowed || d.Binding().Policy != all || d.At(0).Reason != limits.OverLimit {
			t.Errorf("%v: everybody's should refuse: %+v", r, d)
		}
		if v := d.At(1); v.Reason != limits.Allowed || v.Taken != limits.NotTaken || v.Remaining != quota-3 {
			t.Errorf("%v: the client's verdict is %+v", r, v)
		}
		d, err := s.Peek(ctx, time.Time{}, []limits.Charge{{Policy: mine, Key: "a"}, {Policy: all}})
		if err != nil || d.At(0).Remaining != quota-3 || d.At(1).Remaining != 1 {
			t.Errorf("%v: after a refusal %+v, %v", r, d, err)
		}
		// The client's own refuses: everybody's is not even asked to take.
		if d := take("a", quota, 1); d.Allowed || d.At(1).Reason != limits.OverLimit || d.At(0).Remaining != 1 {
			t.Errorf("%v: the client's own should refuse: %+v", r, d)
		}
		d = take("b", 1, 1)
		if !d.Allowed {
			t.Errorf("%v: the last of everybody's: %+v", r, d)
		}
		if err := s.Refund(ctx, time.Time{}, d); err != nil {
			t.Fatal(err)
		}
		d, err = s.Peek(ctx, time.Time{}, []limits.Charge{{Policy: mine, Key: "b"}, {Policy: all}})
		if err != nil || d.At(0).Remaining != quota || d.At(1).Remaining != 1 {
			t.Errorf("%v: after a refund %+v, %v", r, d, err)
		}
	}
}

// TestOnlyAClusterIsAskedTwice: elsewhere all is one call.
func TestOnlyAClusterIsAskedTwice(t *testing.T) {
	server := redistest.Single(t)
	s := open(t, server.Client(t), Config{})
	p := policy(t, "p", everyKind[0])
	charges := []limits.Charge{{Policy: p, Cost: 1}, {Policy: p, Key: "a", Cost: 1}, {Policy: p, Key: "b", Cost: 1}}
	for range 5 {
		if d, err := s.Take(ctx, time.Time{}, charges); err != nil || !d.Allowed {
			t.Fatalf("allowed %v, %v", d.Allowed, err)
		}
	}
	calls := server.Do(t, "INFO", "commandstats")
	if got := field(calls, "cmdstat_evalsha:calls="); got != "5" {
		t.Errorf("%s calls for 5 decisions of 3 charges\n%s", got, calls)
	}
}

// TestSentinels: the master that they name is asked.
func TestSentinels(t *testing.T) {
	s := open(t, redistest.Sentinel(t).Client(t), Config{})
	p := policy(t, "p", everyKind[0])
	d, err := s.Take(ctx, time.Time{}, []limits.Charge{{Policy: p, Cost: 1}, {Policy: p, Key: "a", Cost: 1}})
	if err != nil || !d.Allowed {
		t.Fatalf("allowed %v, %v", d.Allowed, err)
	}
	if err := s.Refund(ctx, time.Time{}, d); err != nil {
		t.Error(err)
	}
}
