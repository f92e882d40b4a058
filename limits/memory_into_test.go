package limits_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// TestTakeIntoIsTake makes the same charges in two stores, for none to more charges than a Decision holds by itself, until they are
// refused.
func TestTakeIntoIsTake(t *testing.T) {
	one, other := newMemory(t, limits.MemoryConfig{}), newMemory(t, limits.MemoryConfig{})
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for n := range 7 {
		for step := range 4 {
			var charges []limits.Charge
			for i := range n {
				name := string(rune('a'+n)) + string(rune('a'+i))
				p := mustPolicy(t, name, limits.TokenBucket{Capacity: int64(2 + i), Refill: limits.PerSecond(1)})
				charges = append(charges, limits.Charge{Policy: p, Key: "k", Cost: 1})
			}
			now = now.Add(time.Millisecond)
			want, err := one.Take(t.Context(), now, charges)
			if err != nil {
				t.Fatal(err)
			}
			var got limits.Decision
			if err := other.TakeInto(t.Context(), now, charges, &got); err != nil {
				t.Fatal(err)
			}
			if got.Allowed != want.Allowed || got.Len() != want.Len() || got.Allowed != (step < 2 || n == 0) {
				t.Fatalf("%d charges, step %d: %+v, want %+v", n, step, got, want)
			}
			for i := range n {
				a, b := *got.At(i), *want.At(i)
				if !reflect.DeepEqual(a, b) {
					t.Errorf("%d charges, step %d: verdict %d is %+v, want %+v", n, step, i, a, b)
				}
			}
		}
	}
	if err := other.TakeInto(t.Context(), now, []limits.Charge{{Key: "k", Cost: 1}}, new(limits.Decision)); err == nil {
		t.Error("a charge without a policy")
	}
}
