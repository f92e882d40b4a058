package limits

import (
	"testing"
	"time"
)

func TestAZeroMemoryIsAnError(t *testing.T) {
	p, err := NewPolicy("a", TokenBucket{Capacity: 5, Refill: PerSecond(1)})
	if err != nil {
		t.Fatal(err)
	}
	charges := []Charge{{Policy: p, Key: "k", Cost: 1}, {Policy: p, Key: "l", Cost: 1}}
	sound, err := NewMemory(MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	taken, err := sound.Take(t.Context(), time.Now(), charges[:1])
	if err != nil || !taken.Allowed {
		t.Fatal(taken, err)
	}
	var m Memory
	for n := 1; n <= 2; n++ {
		if _, err := m.Take(t.Context(), time.Now(), charges[:n]); err == nil {
			t.Errorf("Take of %d: no error", n)
		}
		if _, err := m.Peek(t.Context(), time.Now(), charges[:n]); err == nil {
			t.Errorf("Peek of %d: no error", n)
		}
		if err := m.TakeInto(t.Context(), time.Now(), charges[:n], new(Decision)); err == nil {
			t.Errorf("TakeInto of %d: no error", n)
		}
	}
	if err := m.Refund(t.Context(), time.Now(), taken); err == nil {
		t.Error("Refund: no error")
	}
	if got := m.Stats(); got != (Stats{}) {
		t.Errorf("Stats: %+v", got)
	}
}
