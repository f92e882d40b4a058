package health

import (
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
	s := must[*Sampler](t)(New(Config{WarmUp: -1}))
	s.Start()
	defer s.Close()
	if n := testing.AllocsPerRun(100, func() { s.Pressure(); s.State() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestARoundOfSamplesAllocatesOnlyItsSnapshot(t *testing.T) {
	s := must[*Sampler](t)(New(Config{}))
	defer s.release()
	s.sample()
	s.sample()
	if n := testing.AllocsPerRun(100, s.sample); n > 3 {
		t.Errorf("%v allocations", n)
	}
}
