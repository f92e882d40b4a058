package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/spillway-go/spillway/limits"
)

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestZZHot(t *testing.T) {
	if os.Getenv("ZZ") == "" {
		t.Skip()
	}
	ctx := context.Background()
	m, _ := limits.NewMemory(limits.MemoryConfig{})
	p, _ := limits.NewPolicy("p", limits.TokenBucket{Capacity: 1 << 40, Refill: limits.PerSecond(1000000)})
	q, _ := limits.NewPolicy("q", limits.TokenBucket{Capacity: 1, Refill: limits.PerDay(1)})
	r, _ := limits.NewPolicy("r", limits.TokenBucket{Capacity: 1 << 40, Refill: limits.PerSecond(1000000)})
	s, _ := limits.NewPolicy("s", limits.TokenBucket{Capacity: 1 << 40, Refill: limits.PerSecond(1000000)})
	one := []limits.Charge{{Policy: p, Key: "user:000000042", Cost: 1}}
	den := []limits.Charge{{Policy: q, Key: "user:000000042", Cost: 1}}
	three := []limits.Charge{one[0], {Policy: r, Key: "user:000000042", Cost: 1}, {Policy: s, Key: "user:000000042", Cost: 1}}
	m.Take(ctx, time.Now(), den)
	sv, _ := memorystore.New(&memorystore.Config{Tokens: 1 << 40, Interval: time.Hour})
	var keep bool
	runs := []struct {
		name string
		f    func()
	}{
		{"allow", func() { d, _ := m.Take(ctx, time.Now(), one); keep = d.Allowed }},
		{"allow0", func() { d, _ := m.Take(ctx, time.Time{}, one); keep = d.Allowed }},
		{"deny0", func() { d, _ := m.Take(ctx, time.Time{}, den); keep = d.Allowed }},
		{"deny", func() { d, _ := m.Take(ctx, time.Now(), den); keep = d.Allowed }},
		{"three", func() { d, _ := m.Take(ctx, time.Now(), three); keep = d.Allowed }},
		{"sethvargo", func() { _, _, _, ok, _ := sv.Take(ctx, "user:000000042"); keep = ok }},
		{"now", func() { keep = time.Now().IsZero() }},
	}
	if only := os.Getenv("ONLY"); only != "" {
		for _, r := range runs {
			if r.name == only {
				for range 15_000_000 {
					r.f()
				}
			}
		}
		return
	}
	best := map[string]time.Duration{}
	for range 25 {
		for _, r := range runs {
			begin := cpu()
			for range 100_000 {
				r.f()
			}
			d := cpu() - begin
			if b, ok := best[r.name]; !ok || d < b {
				best[r.name] = d
			}
		}
	}
	for _, r := range runs {
		fmt.Printf("%s %.1f ns\n", r.name, float64(best[r.name])/1e5)
	}
	_ = keep
}
