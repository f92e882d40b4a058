package limits

import "testing"

// key-collision: keys are told apart by 128 bits under a seed that nobody knows, so that no client can look for a key that meets
// another's: the same keys meet nowhere else, and neither half follows from the other.
func TestKindKeyCollision(t *testing.T) {
	a, err := NewMemory(MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewMemory(MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if a.digest("client") == b.digest("client") {
		t.Error("two stores share their seed")
	}
	high, low := map[uint32]uint64{}, 0
	for i := range 1 << 18 { // some eight of these agree in 32 bits, by chance
		d := a.digest(string([]byte{byte(i), byte(i >> 8), byte(i >> 16)}))
		if other, met := high[uint32(d.hi)]; met {
			low++
			if uint32(other) == uint32(d.lo) {
				t.Errorf("two keys that agree in a part of one half agree in the other half, too")
			}
		}
		high[uint32(d.hi)] = d.lo
	}
	if low == 0 {
		t.Error("no two keys of 262144 agree in 32 bits; is this a hash?")
	}
}
