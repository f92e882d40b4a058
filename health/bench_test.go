package health

import (
	"context"
	"database/sql"
	"testing"
	"time"
)

// BenchmarkSample is one round over the machine's own sources; there are four in a second.
func BenchmarkSample(b *testing.B) {
	s := must[*Sampler](b)(New(Config{}))
	defer s.release()
	s.sample()
	b.ReportAllocs()
	for b.Loop() {
		s.sample()
	}
}

// BenchmarkSampleUnderAQuota has a quota and its parent's in fixtures: the parsing without the kernel.
func BenchmarkSampleUnderAQuota(b *testing.B) {
	now := noon
	sv := newService(2, 0.2, func() time.Time { now = now.Add(interval / 8); return now })
	sv.use(1, 0)
	s := must[*Sampler](b)(newSampler(Config{}, sv.system()))
	defer s.release()
	s.sample()
	b.ReportAllocs()
	for b.Loop() {
		s.sample()
	}
}

// BenchmarkPressure is what a decision costs that asks for it.
func BenchmarkPressure(b *testing.B) {
	s := must[*Sampler](b)(New(Config{WarmUp: -1}))
	s.Start()
	defer s.Close()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.Pressure()
		}
	})
}

func TestReadingThePressureAllocatesNothing(t *testing.T) {
	s := must[*Sampler](t)(New(Config{Checks: []Check{{Name: "x", Routes: []string{"a"},
		Func: func(context.Context) (float64, error) { return 0, nil }}}}))
	defer s.release()
	first := *s.latest.Load()
	first.warmUntil = time.Now() // as if started; a sampler that runs would allocate meanwhile
	s.latest.Store(&first)
	s.sample()
	if n := testing.AllocsPerRun(100, func() { s.Pressure(); s.State(); s.PressureOf("a") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestARoundOfSamplesAllocatesOnlyItsSnapshot(t *testing.T) {
	var calls Calls
	s := must[*Sampler](t)(New(Config{MemoryStall: Thresholds{0.1, 0.2}, HostCPU: Thresholds{0.1, 0.2},
		Pools:        []Pool{{Name: "p", Stats: func() sql.DBStats { return sql.DBStats{MaxOpenConnections: 1} }, Routes: []string{"a"}}},
		Dependencies: []Dependency{{Name: "d", Calls: &calls, Failed: Thresholds{0.1, 0.2}, Routes: []string{"a"}}}}))
	defer s.release()
	for range 2 * waitsWindow / interval { // the windows make their memory once
		s.sample()
	}
	if n := testing.AllocsPerRun(100, s.sample); n > 3 {
		t.Errorf("%v allocations", n)
	}
}
