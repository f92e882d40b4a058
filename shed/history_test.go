package shed

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway-go/spillway/limits"
)

func TestRecentCountsEveryRequestAsWhatBecameOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(1, Queue{Capacity: 1, MaxWait: time.Second})
		cfg.Limits = []Limit{bucket("per-client", 3, 1)}
		s := open(t, cfg)
		running := admitted(t, s, Request{Client: "a"})
		go func() {
			p := admitted(t, s, Request{Client: "b"})
			time.Sleep(20 * time.Millisecond)
			p.Done(Success)
		}()
		synctest.Wait()
		if _, err := s.Admit(t.Context(), Request{Client: "c"}); err == nil {
			t.Error("admitted without room")
		}
		time.Sleep(MomentEvery - time.Millisecond)
		if moments, _ := s.Recent(0); len(moments) != 0 {
			t.Errorf("%d moments before the first is over", len(moments))
		}
		time.Sleep(2 * time.Millisecond)
		moments, _ := s.Recent(0)
		want := []Moment{{
			Seq: 1, Flow: Flow{Offered: 3, Served: 1, Full: 1}, Limit: 1, InFlight: 1, Waiting: 1, Pressure: -1, P50: -1, P99: -1,
		}}
		if diff := cmp.Diff(want, moments); diff != "" {
			t.Errorf("the first moment (-want +got):\n%s", diff)
		}
		running.Done(Success)
		time.Sleep(MomentEvery)
		moments, total := s.Recent(1)
		if diff := cmp.Diff(Flow{Offered: 3, Served: 1, Delayed: 1, Full: 1, Good: 2}, total); diff != "" {
			t.Errorf("in total (-want +got):\n%s", diff)
		}
		if len(moments) != 1 || moments[0].Delayed != 1 || moments[0].Offered != 0 || moments[0].Waiting != 0 {
			t.Errorf("the second moment: %+v", moments)
		}
		defer func() { // a second later these are no news any more
			time.Sleep(time.Second)
			late, _ := s.Recent(0)
			if last := late[len(late)-1]; last.P50 != -1 || last.P99 != -1 {
				t.Errorf("a second later: %+v", last)
			}
		}()
		// One took 201 ms, the other waited 201 and took 20.
		if m := moments[0]; m.P50 < 201 || m.P50 > 201*1.07 || m.P99 < 221 || m.P99 > 221*1.07 {
			t.Errorf("p50 %v, p99 %v; want 201 and 221, at most 6 %% above", m.P50, m.P99)
		}
	})
}

func TestRecentGivesEachMomentOnceAndAtMostAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, fixed(1, Queue{}))
		time.Sleep(time.Duration(MomentsKept+10)*MomentEvery + time.Millisecond)
		newest := int64(MomentsKept + 10)
		for _, c := range []struct {
			after       int64
			first, many int64
			why         string
		}{
			{0, 11, int64(MomentsKept), "a new reader gets the last minute"},
			{newest - 2, newest - 1, 2, "the next poll gets what is new"},
			{newest, 0, 0, "nothing twice"},
			{3, 11, int64(MomentsKept), "a reader that slept gets the last minute"},
			{newest + 500, 11, int64(MomentsKept), "a number from before a restart counts as none"},
			{-5, 11, int64(MomentsKept), "nor does nonsense"},
		} {
			got, _ := s.Recent(c.after)
			if int64(len(got)) != c.many || len(got) > 0 && got[0].Seq != c.first {
				t.Errorf("after %d: %d moments, want %d from %d: %s", c.after, len(got), c.many, c.first, c.why)
			}
			for i := 1; i < len(got); i++ {
				if got[i].Seq != got[i-1].Seq+1 {
					t.Errorf("after %d: %d follows %d", c.after, got[i].Seq, got[i-1].Seq)
				}
			}
		}
	})
}

func TestEveryReasonHasItsPlaceInTheFlow(t *testing.T) {
	var c counts
	for _, r := range reasons {
		c.refuse(r)
	}
	c.refuse(OverLimit)
	if got := c.flow(0, 0); got.Over != 6 || got.Off != 1 || int(got.Over+got.Off+got.Full) != len(reasons)+1 {
		t.Errorf("%+v of %d reasons, the first twice", got, len(reasons))
	}
}

func TestDurationsAgreeWithSorting(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var a, b, all durations
		values := make([]float64, 1+draw.IntN(500))
		for i := range values {
			d := time.Duration(draw.Int64N(1 << (10 + draw.Int64N(26))))
			values[i] = float64(d/time.Microsecond) / 1000
			if i%2 == 0 {
				a.add(d)
			} else {
				b.add(d)
			}
		}
		all.merge(&a)
		all.merge(&b)
		slices.Sort(values)
		for _, percent := range []int{1, 50, 99, 100} {
			exact := values[(len(values)*percent+99)/100-1]
			if got := all.quantile(uint64(percent)); got < exact || got > exact*1.0626+1e-9 {
				t.Fatalf("quantile %d of %d is %v, exactly %v", percent, len(values), got, exact)
			}
		}
	}
	var h durations
	h.add(-time.Second)
	h.add(1000 * time.Hour)
	if h.quantile(1) != 0 || h.quantile(99) < 134_000 {
		t.Errorf("the extremes are %v and %v ms", h.quantile(1), h.quantile(99))
	}
}

func TestStreamsAreNoAnswerTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(5, Queue{})
		cfg.Limits = []Limit{{Name: "site", Rule: limits.InFlight{Max: 5}, Per: Global}}
		cfg.Routes = []Route{{Name: "events", LongLived: 5}}
		s := open(t, cfg)
		stream := admitted(t, s, Request{Client: "a", Route: "events"})
		other := admitted(t, s, Request{Client: "a"})
		other.Detach()
		time.Sleep(time.Minute)
		stream.Done(Success)
		other.Done(Success)
		time.Sleep(2 * MomentEvery)
		moments, total := s.Recent(0)
		for _, m := range moments {
			if m.P99 != -1 {
				t.Fatalf("moment %d has the answer time %v", m.Seq, m.P99)
			}
		}
		if total.Good != 2 {
			t.Errorf("%d ended well, want 2", total.Good)
		}
	})
}
