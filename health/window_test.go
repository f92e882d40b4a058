package health

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The model keeps everything and cuts by the definition: from the newest back to the last one that is at least span older, all
// of it since the last gap of more than 5 s.
func TestAWindowIsWhatItsDefinitionSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := time.Duration(rapid.IntRange(1, 12).Draw(t, "span")) * time.Second
		w := newWindow[int](span)
		now := noon
		type moment struct {
			at    time.Time
			value int
		}
		var all []moment
		for i := range rapid.IntRange(1, 150).Draw(t, "looks") {
			gap := interval + time.Duration(rapid.SampledFrom([]int{0, 0, 1, 250, 2000, 4750, 4751}).Draw(t, "late"))*time.Millisecond
			now = now.Add(gap)
			if gap > carriedFor {
				all = nil
			}
			all = append(all, moment{now, i})
			for len(all) > 1 && now.Sub(all[1].at) >= span {
				all = all[1:]
			}
			place, err := w.add(now)
			if err != nil {
				t.Fatal(err)
			}
			*place = i
			var got []moment
			for k := range w.n {
				got = append(got, moment{w.at(k).at, w.at(k).value})
			}
			if !slices.Equal(got, all) {
				t.Fatalf("after %d looks the window is %v, want %v", i, got, all)
			}
			if c := w.covers(); c != now.Sub(all[0].at) {
				t.Fatalf("it covers %v", c)
			}
		}
		w.forget()
		if w.n != 1 || w.newest().at != now || w.oldest().at != now {
			t.Fatalf("after forget it has %d moments", w.n)
		}
	})
}

func TestAWindowRefusesAClockThatStands(t *testing.T) {
	w := newWindow[int](time.Second)
	must[*int](t)(w.add(noon))
	for _, at := range []time.Time{noon, noon.Add(-time.Hour)} {
		if _, err := w.add(at); !errors.Is(err, errClockStood) || w.n != 1 {
			t.Errorf("at %v: error %v, %d moments", at, err, w.n)
		}
	}
}
