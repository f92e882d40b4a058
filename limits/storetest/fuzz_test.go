package storetest

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/spillway-go/spillway/limits"
)

// FuzzTranscript lets the fuzzer choose rules, times, costs and refunds, and compares Memory with the model.
func FuzzTranscript(f *testing.F) {
	for seed := range uint64(6) {
		script := make([]byte, 0, 400)
		for r := rand.NewPCG(seed, 1); len(script) < 400; {
			script = binary.LittleEndian.AppendUint64(script, r.Uint64())
		}
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		m, err := limits.NewMemory(limits.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		source := &tape{rest: script, after: rand.NewPCG(1, 1)}
		p := newPlay(m, 1)
		p.rand = rand.New(source)
		p.policies[0] = policy("fuzzed", p.anyRule())
		for step := 0; len(source.rest) > 0 && step < 100; step++ {
			if err := p.step(); err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
		}
	})
}

// tape is a source of the fuzzer's bytes, and of others after them.
type tape struct {
	rest  []byte
	after rand.Source
}

func (t *tape) Uint64() uint64 {
	if len(t.rest) < 8 {
		t.rest = nil
		return t.after.Uint64()
	}
	v := binary.LittleEndian.Uint64(t.rest)
	t.rest = t.rest[8:]
	return v
}
