package limits

import (
	"context"
	"fmt"
	"math/rand"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func BenchmarkTake(b *testing.B) {
	wide := TokenBucket{Capacity: 1 << 40, Refill: PerSecond(1_000_000)}
	for _, v := range []struct {
		name    string
		rules   []Rule
		allowed bool
	}{
		{"hot key allowed", []Rule{wide}, true},
		{"hot key denied", []Rule{TokenBucket{Capacity: 1, Refill: PerDay(1)}}, false},
		{"hot key cost too large", []Rule{TokenBucket{Capacity: 0, Refill: PerDay(1)}}, false},
		{"three charges", []Rule{wide, wide, wide}, true},
	} {
		b.Run(v.name, func(b *testing.B) {
			s := newSheet(b, 0)
			s.now = time.Now()
			var charges []Charge
			for i, r := range v.rules {
				charges = append(charges, Charge{Policy: s.policy(fmt.Sprint(i), r), Key: "user:000000042", Cost: 1})
				s.take(charges[i].Policy, charges[i].Key, 1)
			}
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				if d, err := s.Take(ctx, time.Now(), charges); err != nil || d.Allowed != v.allowed {
					b.Fatal(d, err)
				}
			}
		})
	}
}

func BenchmarkTakeZipf100kKeys(b *testing.B) {
	for _, parallel := range []bool{false, true} {
		b.Run(fmt.Sprint("parallel=", parallel), func(b *testing.B) {
			s := newSheet(b, 0)
			s.now = time.Now()
			p := s.policy("p", TokenBucket{Capacity: 1 << 30, Refill: PerSecond(1)})
			keys := make([]string, 100_000)
			for i := range keys {
				keys[i] = fmt.Sprintf("user:%09d", i)
				s.take(p, keys[i], 1000) // far from full, so that it stays
			}
			zipf := rand.NewZipf(rand.New(rand.NewSource(1)), 1.1, 1, uint64(len(keys)-1))
			order := make([]string, 1<<18)
			seen := map[string]bool{}
			for i := range order {
				order[i] = keys[zipf.Uint64()]
				seen[order[i]] = true
			}
			runtime.GC()
			if len(seen) < 10_000 {
				b.Fatalf("only %d keys vary", len(seen))
			}
			ctx := context.Background()
			b.ReportAllocs()
			if !parallel {
				charges, i := make([]Charge, 1), 0
				for b.Loop() {
					charges[0] = Charge{Policy: p, Key: order[i&(len(order)-1)], Cost: 1}
					i++
					if _, err := s.Take(ctx, time.Now(), charges); err != nil {
						b.Fatal(err)
					}
				}
				return
			}
			var start atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				charges, i := make([]Charge, 1), int(start.Add(1<<16))
				for pb.Next() {
					charges[0] = Charge{Policy: p, Key: order[i&(len(order)-1)], Cost: 1}
					i++
					if _, err := s.Take(ctx, time.Now(), charges); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// BenchmarkBytesPerKey fills a store with distinct keys and reports what each costs.
func BenchmarkBytesPerKey(b *testing.B) {
	for _, n := range []int{1_000_000, 1_200_000, 1_400_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				s := newSheet(b, 2*n)
				p := s.policy("p", TokenBucket{Capacity: 10, Refill: PerDay(1)})
				for i := range n {
					s.take(p, fmt.Sprintf("user:%09d", i), 1)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				if got := s.Stats().Keys; got != n {
					b.Fatalf("%d keys of %d", got, n)
				}
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "bytes/key")
			}
		})
	}
}
