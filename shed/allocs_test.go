//go:build !race

// The race detector makes sync.Pool forget at random, so what allocates nothing is counted without it.

package shed

import "testing"

func TestAdmitAndDoneAllocateNothing(t *testing.T) {
	cfg := fixed(100, Queue{})
	cfg.Limits = []Limit{bucket("per-client", 1<<40, 1<<20)}
	s := open(t, cfg)
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() {
		p, err := s.Admit(ctx, Request{Client: "a"})
		if err != nil {
			t.Fatal(err)
		}
		p.Done(Success)
	}); n != 0 {
		t.Errorf("Admit and Done allocate %v times", n)
	}
}

func TestSheddingAllocatesNothing(t *testing.T) {
	cfg := fixed(1, Queue{Capacity: -1})
	cfg.Limits = []Limit{bucket("per-client", 1<<40, 1<<20)}
	s := open(t, cfg)
	ctx := t.Context()
	p := admitted(t, s, Request{Client: "a"})
	defer p.Done(Success)
	if n := testing.AllocsPerRun(1000, func() { s.Admit(ctx, Request{Client: "a"}) }); n != 0 {
		t.Errorf("a shed request allocates %v times", n)
	}
}
