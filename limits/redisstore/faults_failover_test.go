package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/limits"
)

// TestWhatAFailoverCosts counts what is admitted over a failover, whose new master has not heard the last charges of the old one: a
// capacity and what was not heard, which is no more than another capacity. A master that must not go on without a replica loses
// nothing.
func TestWhatAFailoverCosts(t *testing.T) {
	t.Parallel()
	const capacity = 60
	for _, careful := range []bool{false, true} {
		t.Run(fmt.Sprintf("min-replicas-to-write=%v", careful), func(t *testing.T) {
			t.Parallel()
			s := redistest.Sentinel(t)
			if careful {
				s.Master.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
			}
			g := opened(t, "redis+sentinel://"+s.Addrs()[0]+"?master_name="+s.Name+"&addr="+s.Addrs()[1]+"&addr="+s.Addrs()[2],
				Options{Timeout: patient}, GuardConfig{Timeout: patient, OnFailure: limits.Closed})
			p := named(t, "p", limits.TokenBucket{Capacity: capacity, Refill: limits.Rate{Amount: 1, Per: limits.Day}})
			keys := []struct {
				name                 string
				before, unheard, all int64 // of the last two how many there were
			}{{name: "heard", before: capacity}, {name: "some", before: 20}, {name: "nothing"}}
			admit := func(key string, most int64) (n int64, refused bool) {
				for range most {
					d, err := g.Take(context.Background(), time.Time{}, single(p, key, 1))
					if err == nil && d.Allowed {
						n++
					}
					refused = refused || err == nil && !d.Allowed
				}
				return n, refused
			}
			for i := range keys {
				k := &keys[i]
				if k.all, _ = admit(k.name, k.before); k.all != k.before {
					t.Fatalf("%s: %d of %d were admitted", k.name, k.all, k.before)
				}
			}
			if n := s.Master.Do(t, "WAIT", 1, 30_000); n != "1" {
				t.Fatalf("%s replicas have heard of it", n)
			}
			s.Replica.Stop()
			s.Master.Do(t, "CLIENT", "KILL", "TYPE", "replica") // what comes now is nowhere on its way either
			for i := range keys {
				k := &keys[i]
				k.unheard, _ = admit(k.name, capacity/2)
				k.all += k.unheard
			}
			s.Master.Kill()
			s.Replica.Cont()
			s.AwaitMaster(t, s.Replica)
			for i := range keys {
				k := &keys[i]
				wait.Until(t, "a refusal by the new master", func() bool {
					n, refused := admit(k.name, 1)
					k.all += n
					return refused
				})
				switch want := map[string]int64{"heard": 0, "some": capacity / 2, "nothing": capacity / 2}[k.name]; {
				case careful && k.unheard > 0:
					t.Errorf("%s: a master without a replica has admitted %d", k.name, k.unheard)
				case !careful && k.unheard != want:
					t.Errorf("%s: %d were admitted that nobody heard of, want %d", k.name, k.unheard, want)
				}
				if k.all != capacity+k.unheard || k.all > 2*capacity {
					t.Errorf("%s: %d were admitted, want %d and the %d that the new master had not heard of", k.name, k.all, capacity, k.unheard)
				}
			}
		})
	}
}
