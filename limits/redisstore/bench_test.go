package redisstore

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/limits"
)

// BenchmarkTake is what a decision costs: on one key that all want or on many, by callers at once, and with what is sent
// together switched off. Server and callers share the machine's cores.
func BenchmarkTake(b *testing.B) {
	client := redistest.Shared(b, func(o *redis.Options) { o.PoolSize, o.PoolTimeout, o.ReadTimeout = 300, time.Minute, time.Minute })
	bucket, err := limits.NewPolicy("bench", limits.TokenBucket{Capacity: 1 << 30, Refill: limits.PerSecond(1_000_000)})
	if err != nil {
		b.Fatal(err)
	}
	for _, keys := range []int{1, 100_000} {
		for _, callers := range []int{1, 64, 256} {
			for _, alone := range []bool{false, true} {
				name := fmt.Sprintf("keys=%d/callers=%d/alone=%v", keys, callers, alone)
				b.Run(name, func(b *testing.B) {
					s, err := New(client, Config{Prefix: "bench", NoCoalescing: alone, NoPipelining: alone})
					if err != nil {
						b.Fatal(err)
					}
					defer s.Close()
					takeMany(b, s, bucket, keys, callers)
				})
			}
		}
	}
}

func takeMany(b *testing.B, s limits.Store, p *limits.Policy, keys, callers int) {
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("client-%06d", i)
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	before := spent(b)
	b.ReportAllocs()
	b.ResetTimer()
	for c := range callers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 1))
			for left.Add(-1) >= 0 {
				if _, err := s.Take(ctx, time.Time{}, []limits.Charge{{Policy: p, Key: names[r.IntN(keys)], Cost: 1}}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(float64(spent(b)-before)/float64(b.N), "cpu-ns/op")
}

// spent returns the processor time that this process and the server have used: with both on a crowded machine, it says more
// than the clock on the wall.
func spent(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	sum := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	info := redistest.SharedServer(b).Do(b, "INFO", "cpu")
	for _, word := range []string{"used_cpu_sys:", "used_cpu_user:"} {
		seconds, err := strconv.ParseFloat(field(info, word), 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(seconds * 1e9)
	}
	return sum
}
