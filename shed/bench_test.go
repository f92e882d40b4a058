package shed

import "testing"

func BenchmarkAdmitDone(b *testing.B) {
	for _, c := range []struct {
		name   string
		limits []Limit
	}{
		{"gate only", nil},
		{"one rule", []Limit{bucket("per-client", 1<<40, 1<<20)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			cfg := fixed(1000, Queue{})
			cfg.Limits = c.limits
			s := open(b, cfg)
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				p, err := s.Admit(ctx, Request{Client: "a"})
				if err != nil {
					b.Fatal(err)
				}
				p.Done(Success)
			}
		})
	}
}

func BenchmarkShed(b *testing.B) {
	s := open(b, fixed(1, Queue{Capacity: -1}))
	ctx := b.Context()
	admitted(b, s, Request{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Admit(ctx, Request{}); err == nil {
			b.Fatal("admitted")
		}
	}
}
