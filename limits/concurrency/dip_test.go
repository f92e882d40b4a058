package concurrency

import (
	"testing"
	"time"
)

// backend is a model without chance or delay, in a closed loop: the limit is always used up, and latency follows it at once.
type backend struct {
	slots   int
	service time.Duration
	now     time.Duration
}

// saturate keeps e at its limit for a while.
func (b *backend) saturate(e *Estimator, lasting time.Duration) {
	for until := b.now + lasting; b.now < until; {
		at := e.Limit()
		b.now += b.service / time.Duration(min(at, b.slots))
		latency := b.service * time.Duration(max(at, b.slots)) / time.Duration(b.slots)
		e.Observe(b.now, Sample{Latency: latency, InFlight: at})
	}
}

// untilNoDipIsNear saturates e until the next dip is due in more than 4 s, so that an earlier one has another reason.
func (b *backend) untilNoDipIsNear(e *Estimator) {
	for b.saturate(e, 30*time.Second); e.Status().Dipping || e.dip.next < b.now+4*time.Second; {
		b.saturate(e, 10*time.Millisecond)
	}
}

// nearly tells whether got is want within a tenth.
func nearly(got, want time.Duration) bool { return got > want*9/10 && got < want*11/10 }

func TestARowOfDipsFindsTheBaselineFarBelowTheFirstLatency(t *testing.T) {
	e, b := build(t, Config{Min: 1, Initial: 60}), backend{slots: 3, service: 20 * time.Millisecond}
	b.saturate(e, 6*time.Second)
	if got := e.Status().Baseline; !nearly(got, b.service) {
		t.Errorf("baseline %v, want the service time of %v", got, b.service)
	}
	if e.Limit() > 6 {
		t.Errorf("limit %d, want it to have gone straight to a few more than 3", e.Limit())
	}
}

func TestUnexplainedLatencyBringsADipBeforeItIsDue(t *testing.T) {
	e, b := build(t, Config{}), backend{slots: 16, service: 20 * time.Millisecond}
	b.untilNoDipIsNear(e)
	b.slots = 5
	b.saturate(e, 2*time.Second)
	if got := e.Limit(); got > 12 {
		t.Errorf("limit %d two seconds after 11 of 16 slots were lost, want at most 12", got)
	}
	if got := e.Status().Baseline; !nearly(got, b.service) {
		t.Errorf("baseline %v, want it still to be %v: the service has not become slower", got, b.service)
	}
}

func TestASlowerServiceBecomesTheNewBaseline(t *testing.T) {
	e, b := build(t, Config{}), backend{slots: 16, service: 20 * time.Millisecond}
	b.saturate(e, 10*time.Second)
	before := e.Status().Estimate
	b.service *= 4
	b.saturate(e, 5*time.Second)
	if got := e.Status().Baseline; !nearly(got, b.service) {
		t.Errorf("baseline %v, want %v", got, b.service)
	}
	b.saturate(e, 10*time.Minute)
	if got := e.Status().Estimate; got < before-3 || got > before+3 {
		t.Errorf("limit %d after ten minutes, want it near %d: there are as many slots as before", got, before)
	}
}

func TestAQuickerServiceIsNoticedAndRaisesNothing(t *testing.T) {
	e, b := build(t, Config{}), backend{slots: 16, service: 80 * time.Millisecond}
	b.untilNoDipIsNear(e)
	b.service /= 4
	b.saturate(e, 2*time.Second)
	s := e.Status()
	if !nearly(s.Baseline, b.service) || s.Estimate > 32 {
		t.Errorf("baseline %v at limit %d after two seconds, want %v and no more than before", s.Baseline, s.Estimate, b.service)
	}
}

// Just after a dip there are no other windows yet. A baseline that is too low by far makes the limit so, too, and near the floor no
// dip corrects it.
func TestOneQuickWindowByChanceIsNoQuickerService(t *testing.T) {
	e, b := build(t, Config{}), backend{slots: 16, service: 20 * time.Millisecond}
	b.untilNoDipIsNear(e)
	b.saturate(e, 50*time.Millisecond) // what ends just after a dip is left out
	const short = 8 * time.Millisecond
	quick := func(windows int) time.Duration {
		e.past, e.win = history{}, window{opened: b.now}
		for range windows * windowSamples {
			b.now += windowTime / windowSamples
			e.Observe(b.now, Sample{Latency: short, InFlight: e.Limit()})
		}
		return e.Status().Baseline
	}
	if got := quick(1); !nearly(got, b.service) {
		t.Errorf("baseline %v after one window of 20 quick samples, want it to stay near %v", got, b.service)
	}
	if got := quick(3); got != short {
		t.Errorf("baseline %v after three such windows, want %v: the service has become quicker", got, short)
	}
}

func TestDipsAreRareAndShort(t *testing.T) {
	e, b := build(t, Config{}), backend{slots: 16, service: 20 * time.Millisecond}
	b.saturate(e, 30*time.Second)
	dipping, steps := 0, 6000
	for range steps {
		b.saturate(e, 10*time.Millisecond)
		if e.Status().Dipping {
			dipping++
		}
	}
	if share := float64(dipping) / float64(steps); share > 0.03 || share == 0 {
		t.Errorf("dipping %.1f %% of a minute, want some, and at most 3 %%", 100*share)
	}
}

func TestThereIsNoDipWhereItWouldBeHardlyLower(t *testing.T) {
	e, b := build(t, Config{Min: 20, Max: 20}), backend{slots: 16, service: 20 * time.Millisecond}
	b.saturate(e, time.Minute)
	if s := e.Status(); s.Limit != 20 || s.Change != Started {
		t.Errorf("%+v, want a limit that never moved", s)
	}
}

func TestADropInADipEndsItAndStillCounts(t *testing.T) {
	e, b := build(t, Config{Initial: 40}), backend{slots: 100, service: 20 * time.Millisecond}
	for !e.Status().Dipping {
		b.saturate(e, time.Millisecond)
	}
	feed(e, b.now, time.Millisecond, 3000, Sample{InFlight: 1, Dropped: true})
	if s := e.Status(); s.Dipping || s.Limit != DefaultMin {
		t.Errorf("%+v, want the dip ended and the floor", s)
	}
}

func TestALongSilenceMakesHistoryForgotten(t *testing.T) {
	e := build(t, Config{})
	end := feed(e, 0, time.Millisecond, 500, Sample{Latency: 20 * time.Millisecond, InFlight: 5})
	if e.past.n < 3 {
		t.Fatalf("%d windows, want several", e.past.n)
	}
	e.Tick(end + time.Second)
	feed(e, end+11*time.Second, time.Millisecond, 300, Sample{Latency: 20 * time.Millisecond, InFlight: 5})
	if e.past.n > 3 {
		t.Errorf("%d windows, want only those after the silence", e.past.n)
	}
}

// What is known of the slots may be wrong by any factor. A dip must not cost all of the throughput to find out.
func TestADipIsNeverDeeperThanAShareOfWhatWasInEffect(t *testing.T) {
	e, b := build(t, Config{Min: 1}), backend{slots: 16, service: 20 * time.Millisecond}
	b.untilNoDipIsNear(e)
	b.service *= 5 // throughput falls to a fifth, and with it throughput times the old baseline
	before := e.Limit()
	for !e.Status().Dipping {
		b.saturate(e, time.Millisecond)
		if got := e.Limit(); !e.Status().Dipping && got < before {
			t.Fatalf("limit %d before a dip has told why it is slow, want %d", got, before)
		}
	}
	if got := e.Limit(); got < before*2/5 {
		t.Errorf("dip to %d from %d, want no less than 0.4 of it", got, before)
	}
	b.saturate(e, 3*time.Second)
	if got := e.Status(); !nearly(got.Baseline, b.service) || got.Estimate < 16 {
		t.Errorf("%+v, want the slower service for a baseline and a limit above its slots", got)
	}
}

func TestMoreThroughputInADipMeansThatWhatWasSlowHasPassed(t *testing.T) {
	e, b := build(t, Config{Min: 1}), backend{slots: 16, service: 20 * time.Millisecond}
	b.untilNoDipIsNear(e)
	b.service *= 5
	for !e.Status().Dipping {
		b.saturate(e, time.Millisecond)
	}
	b.service /= 5 // just now
	before := e.Settled()
	for range 3000 {
		b.saturate(e, time.Millisecond)
		if got := e.Settled(); got < 16 {
			t.Fatalf("limit %d after a slow time that has passed, want it to stay near %d", got, before)
		}
	}
	if got := e.Status().Baseline; !nearly(got, b.service) {
		t.Errorf("baseline %v, want %v", got, b.service)
	}
}

// A backlog that drains after a hiccup is no time for less.
func TestADipThatIsDueWaitsForOverloadThatLasts(t *testing.T) {
	e, b := build(t, Config{}), backend{slots: 16, service: 20 * time.Millisecond}
	b.untilNoDipIsNear(e)
	now := feed(e, b.now, 2*time.Millisecond, 10_000, Sample{Latency: 20 * time.Millisecond, InFlight: 10}) // twenty quiet seconds
	b.now = now
	b.saturate(e, 900*time.Millisecond)
	if e.Status().Dipping || e.dip.next > b.now {
		t.Fatalf("dipping %v, next %v at %v: want one due, and none yet", e.Status().Dipping, e.dip.next, b.now)
	}
	for range 500 {
		if b.saturate(e, time.Millisecond); e.Status().Dipping {
			return
		}
	}
	t.Error("no dip in 1.4 seconds of overload")
}
