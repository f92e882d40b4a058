package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// instant answers at once and in time: what is left is what a Guard costs.
type instant struct{ d limits.Decision }

func (s *instant) Take(context.Context, time.Time, []limits.Charge) (limits.Decision, error) {
	return s.d, nil
}

func (s *instant) Peek(context.Context, time.Time, []limits.Charge) (limits.Decision, error) {
	return s.d, nil
}

func (s *instant) Refund(context.Context, time.Time, limits.Decision) error { return nil }

func (s *instant) punctual() bool { return true }

// BenchmarkGuard is what a Guard adds to a decision, without and with a local balance that is kept warm.
func BenchmarkGuard(b *testing.B) {
	for _, f := range []limits.OnFailure{limits.Closed, limits.Local} {
		p, err := limits.NewPolicy("bench", limits.TokenBucket{Capacity: 1 << 30, Refill: limits.PerSecond(1_000_000)}, limits.WhenStoreFails(f))
		if err != nil {
			b.Fatal(err)
		}
		s := &instant{limits.Decision{Allowed: true, Source: limits.FromRedis}}
		s.d.Append(limits.Verdict{Policy: p, Key: "k", Cost: 1})
		g, err := NewGuard(s, GuardConfig{})
		if err != nil {
			b.Fatal(err)
		}
		defer g.Close()
		charges := []limits.Charge{{Policy: p, Key: "k", Cost: 1}}
		for name, store := range map[string]limits.Store{"bare": s, "guarded": g} {
			b.Run(name+"/"+f.String(), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if d, err := store.Take(ctx, time.Time{}, charges); err != nil || !d.Allowed {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
