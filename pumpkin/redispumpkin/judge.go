package redispumpkin

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/spillway-go/spillway/pumpkin"
)

// verdict is how what is stored stands to what an instance knows.
type verdict uint8

const (
	same  verdict = iota // nothing to do
	ahead                // adopt it
	apart                // something is lost there, or both sides have gone their own ways: join them, and store that
)

// judge compares what is stored, which is the zero State where nothing is, with mine.
func judge(now time.Time, there, mine pumpkin.State) verdict {
	switch {
	case there.Epoch == "":
		if mine.Seq > 0 || len(mine.Items)+len(mine.Holds)+len(mine.Cleared) > 0 {
			return apart
		}
		return same // nobody has said anything yet
	case mine.Seq == 0:
		return ahead
	case there.Epoch < mine.Epoch, there.Epoch == mine.Epoch && there.Seq < mine.Seq:
		return apart
	case there.Epoch > mine.Epoch:
		if !sameWords(pumpkin.Merge(there, mine), there) {
			return apart
		}
		return ahead
	case len(lost(now, there, mine)) > 0:
		return apart
	case there.Seq > mine.Seq:
		return ahead
	case len(lost(now, mine, there)) > 0 || differ(there, mine):
		return apart
	}
	return same
}

// basis is what a write that finds there is made on.
func basis(now time.Time, there, mine pumpkin.State) pumpkin.State {
	if there.Epoch == "" || judge(now, there, mine) != apart {
		return there
	}
	if there.Epoch != mine.Epoch || there.Seq <= mine.Seq {
		return pumpkin.Merge(there, mine)
	}
	// The same line, continued elsewhere by somebody who did not know of something: only that is put back. All else is as those
	// who went on have it, whatever their clocks say.
	joined := there
	joined.Items = slices.Concat(there.Items, lost(now, there, mine))
	joined.Rev = max(there.Rev, mine.Rev) + 1
	return joined
}

// leeway is how far the clocks of instances may be apart without one taking for lost what another has seen expire.
const leeway = 5 * time.Second

// lost returns the items of known that are not in s, though nobody has ended them and they have not expired.
func lost(now time.Time, s, known pumpkin.State) []pumpkin.Item {
	var all []pumpkin.Item
	for _, it := range known.Items {
		isIt := func(other pumpkin.Item) bool { return other.ID == it.ID }
		wasIt := func(c pumpkin.Cleared) bool { return c.ID == it.ID }
		if it.ExpiresAt.Sub(now) > leeway && !slices.ContainsFunc(s.Items, isIt) && !slices.ContainsFunc(s.Cleared, wasIt) {
			all = append(all, it)
		}
	}
	return all
}

// differ reports whether an item was written at different times on the two sides.
func differ(a, b pumpkin.State) bool {
	return slices.ContainsFunc(a.Items, func(x pumpkin.Item) bool {
		return slices.ContainsFunc(b.Items, func(y pumpkin.Item) bool { return x.ID == y.ID && !x.UpdatedAt.Equal(y.UpdatedAt) })
	})
}

// sameWords compares all but what counts changes, and the order.
func sameWords(a, b pumpkin.State) bool { return words(a) == words(b) }

func words(s pumpkin.State) string {
	s.Epoch, s.Rev, s.Seq = "", 0, 0
	s.Items, s.Holds, s.Cleared = slices.Clone(s.Items), slices.Clone(s.Holds), slices.Clone(s.Cleared)
	slices.SortFunc(s.Items, func(x, y pumpkin.Item) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortFunc(s.Holds, func(x, y pumpkin.Hold) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortFunc(s.Cleared, func(x, y pumpkin.Cleared) int { return cmp.Compare(x.ID, y.ID) })
	if len(s.Items) == 0 {
		s.Items = nil
	}
	text, _ := json.Marshal(s)
	return string(text)
}

// lighter returns s without the item that can best be spared, for two sides together may hold more than fits: one of automation,
// then the least severe, then the one that ends first.
func lighter(s pumpkin.State) (pumpkin.State, pumpkin.Item) {
	weight := map[pumpkin.Severity]int{pumpkin.Minor: 1, pumpkin.Maintenance: 2, pumpkin.Major: 3, pumpkin.Critical: 4}
	least := slices.MinFunc(s.Items, func(x, y pumpkin.Item) int {
		byHand := func(it pumpkin.Item) int {
			if it.Origin == pumpkin.Automatic {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(byHand(x), byHand(y)), cmp.Compare(weight[x.Severity], weight[y.Severity]),
			x.ExpiresAt.Compare(y.ExpiresAt), cmp.Compare(x.ID, y.ID))
	})
	s.Items = slices.DeleteFunc(slices.Clone(s.Items), func(it pumpkin.Item) bool { return it.ID == least.ID })
	return s, least
}
