package limits

import (
	"testing"

	"pgregory.net/rapid"
)

// The table against a map, with keys that share homes and with every order of adding and removing.
func TestTableHoldsWhatWasPutAndNotWhatWasRemoved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type id = digest
		var tab table
		held := map[id]int64{}
		draw := func() id {
			home := rapid.SampledFrom([]uint64{0, 1, 1 << 62, 1<<63 + 1, ^uint64(0), ^uint64(0) - 1}).Draw(t, "home")
			return digest{rapid.Uint64Range(0, 7).Draw(t, "hi"), home}
		}
		for n := range rapid.IntRange(1, 200).Draw(t, "steps") {
			k := draw()
			at := tab.find(k)
			want, ok := held[k]
			if (at >= 0) != ok || ok && tab.slots[at].balance().owed != want {
				t.Fatalf("%v is at %d, want %v %d", k, at, ok, want)
			}
			if !ok && tab.fetch(k) != nil {
				t.Fatalf("%v is fetched and not there", k)
			}
			switch {
			case !ok:
				tab.insert(filled(k, 1<<(n%32), balance{owed: int64(n)}), len(held))
				held[k] = int64(n)
			case n%3 == 1:
				if s := tab.fetch(k); s != &tab.slots[tab.home(k)] || s.balance().owed != want {
					t.Fatalf("fetched %v with %d, want it at its home with %d", s.hash, s.balance().owed, want)
				}
			case n%3 == 2:
				tab.remove(at)
				delete(held, k)
				tab.shrink(len(held))
			}
		}
		count := 0
		for _, s := range tab.slots {
			if !s.empty() {
				count++
			}
		}
		if count != len(held) {
			t.Fatalf("%d slots are used for %d keys", count, len(held))
		}
		for k, want := range held {
			if at := tab.find(k); at < 0 || tab.slots[at].balance().owed != want {
				t.Fatalf("%v is lost", k)
			}
		}
	})
}
