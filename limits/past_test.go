package limits

import (
	"testing"

	"pgregory.net/rapid"
)

// The ring with its sums against a plain list.
func TestThePastIsAListThatForgetsItsBegin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type charged struct{ at, amount int64 }
		var list []charged
		p := &past{before: rapid.SampledFrom([]uint64{0, 1 << 63, 1<<64 - 5}).Draw(t, "before")} // sums may wrap around
		now := int64(0)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch n := len(list); rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1, 2:
				now += rapid.Int64Range(0, 2).Draw(t, "time")
				amount := rapid.Int64Range(1, Exact).Draw(t, "amount")
				p.push(now, amount)
				if n > 0 && list[n-1].at == now {
					list[n-1].amount += amount
				} else {
					list = append(list, charged{now, amount})
				}
			case 3:
				k := rapid.IntRange(0, n).Draw(t, "forgotten")
				p.forget(k)
				list = list[k:]
			case 4:
				if n > 0 {
					i := rapid.IntRange(0, n-1).Draw(t, "reduced")
					amount := rapid.Int64Range(0, list[i].amount*2).Draw(t, "by")
					p.reduce(i, amount)
					if list[i].amount -= min(amount, list[i].amount); list[i].amount == 0 {
						list = append(list[:i:i], list[i+1:]...)
					}
				}
			}
			if p.len() != len(list) {
				t.Fatalf("%d entries, want %d", p.len(), len(list))
			}
			if len(p.ring) > 4*len(list)+smallestRing {
				t.Fatalf("a ring of %d for %d entries", len(p.ring), len(list))
			}
			sum := int64(0)
			for i := len(list) - 1; i >= 0; i-- {
				sum += list[i].amount
				if p.entry(i).at != list[i].at || p.since(i) != sum {
					t.Fatalf("entry %d is at %d, with %d from there on; want %d, %d", i, p.entry(i).at, p.since(i), list[i].at, sum)
				}
			}
			for at := now - 5; at <= now+1; at++ {
				want := 0
				for want < len(list) && list[want].at < at {
					want++
				}
				if got := p.from(at); got != want {
					t.Fatalf("the first not before %d is %d, want %d", at, got, want)
				}
			}
			if sum > 0 && len(list) > 0 {
				amount := rapid.Int64Range(1, sum).Draw(t, "covered")
				i, left := 0, amount
				for left > list[i].amount {
					left -= list[i].amount
					i++
				}
				if got := p.covering(0, amount); got.at != list[i].at {
					t.Fatalf("%d are covered at %d, want %d", amount, got.at, list[i].at)
				}
			}
		}
	})
}

func TestAPastThatEmptiesGivesItsMemoryBack(t *testing.T) {
	p := new(past)
	for i := range int64(10_000) {
		p.push(i, 1)
	}
	p.forget(9_990)
	p.push(10_000, 1)
	p.forget(8)
	if p.len() != 3 || len(p.ring) > 64 || p.since(0) != 3 {
		t.Errorf("%d entries with a sum of %d in a ring of %d", p.len(), p.since(0), len(p.ring))
	}
	var none *past
	if none.len() != 0 || none.from(5) != 0 || none.since(0) != 0 {
		t.Error("no past is not an empty one")
	}
}

func TestASlotKeepsItsNumbersWhateverTheEdition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Int64Range(0, Exact-1), rapid.SampledFrom([]int64{0, 1, Exact - 1, latest}))
		b := balance{owed: number.Draw(t, "owed"), last: number.Draw(t, "last"), since: number.Draw(t, "since")}
		e := rapid.Uint32Min(1).Draw(t, "edition")
		s := filled(digest{1, 2}, e, b)
		if s.edition() != e || s.balance() != b || s.last() != b.last || s.empty() {
			t.Fatalf("%+v in edition %d became %+v in %d", b, e, s.balance(), s.edition())
		}
	})
	if !new(slot).empty() {
		t.Error("the zero slot is not empty")
	}
}
