package shed

import (
	"math/bits"
	"sync"
	"time"
)

// MomentEvery is how long a Moment lasts, and MomentsKept how many are kept: a minute.
const (
	MomentEvery = 2 * TickEvery
	MomentsKept = int(time.Minute / MomentEvery)

	momentsPerSecond = int(time.Second / MomentEvery)
)

// atOnce is the wait up to which people would say that a request was served at once.
const atOnce = time.Millisecond

// Flow counts requests by what became of them; exempt ones are not among them. Served, Delayed, Over, Full, Off and Gone are
// everything that can become of one. Offered runs ahead of their sum by those that are still waiting.
type Flow struct {
	Offered int64 `json:"offered"`
	Served  int64 `json:"served"`  // let in at once
	Delayed int64 `json:"delayed"` // let in after a wait of more than a millisecond
	Over    int64 `json:"over"`    // refused for what the client did: its quota (429), or no identity (403)
	Full    int64 `json:"full"`    // refused for lack of room, or because a store could not decide (503)
	Off     int64 `json:"off"`     // refused because the feature is switched off (503)
	Gone    int64 `json:"gone"`    // left before they were answered
	Good    int64 `json:"good"`    // permits that ended in success
}

// Moment is what happened in MomentEvery, and the state at its end.
type Moment struct {
	// Seq numbers moments from 1, without gaps.
	Seq int64 `json:"seq"`
	Flow
	Limit    int `json:"limit"`
	InFlight int `json:"in_flight"`
	// Waiting is everybody who waits, for room and for a turn.
	Waiting int `json:"waiting"`
	// Pressure is 0 to 1, or -1 while nothing is known.
	Pressure float64 `json:"pressure"`
	// P50 and P99 are the answer times of what ended in success in the last second, waits included and streams not, in
	// milliseconds, at most 6 % too high; -1 when there were none.
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// history keeps the last minute. It has a lock of its own, which is held for copies only.
type history struct {
	mu      sync.Mutex
	seq     int64
	total   Flow
	moments [MomentsKept]Moment         // by Seq
	answers [momentsPerSecond]durations // of the last second, by Seq
}

// Recent returns the moments of the last minute after the one numbered seq, oldest first, and what was counted since New up
// to the last of them. A seq from before a restart, which is above all there are, counts as 0.
func (s *Shedder) Recent(seq int64) (moments []Moment, total Flow) {
	h := &s.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if seq > h.seq {
		seq = 0
	}
	for i := max(seq, h.seq-int64(MomentsKept), 0) + 1; i <= h.seq; i++ {
		moments = append(moments, h.moments[i%int64(MomentsKept)])
	}
	return moments, h.total
}

// remember ends a moment. The pressure counts only if it is known.
func (s *Shedder) remember(pressure float64, known bool) {
	m := Moment{Pressure: -1, Waiting: s.turns.Len()}
	if known {
		m.Pressure = pressure
	}
	h := &s.history
	h.mu.Lock()
	defer h.mu.Unlock()
	last := &h.answers[h.seq%int64(momentsPerSecond)]
	s.mu.Lock()
	m.Limit, m.InFlight = s.gate.limit(), s.gate.inFlight
	m.Waiting += s.gate.line.Len()
	*last, s.answers = s.answers, durations{}
	total := s.counts.flow(s.gate.granted, s.finished[Success])
	s.mu.Unlock()

	// Who was waiting when that was read, and has been answered since, is counted twice; the next moment corrects it.
	total.Offered = max(total.decided()+int64(m.Waiting), h.total.Offered)
	m.Flow, h.total = total.minus(h.total), total
	var second durations
	for i := range h.answers {
		second.merge(&h.answers[i])
	}
	m.P50, m.P99 = second.quantile(50), second.quantile(99)
	h.seq++
	m.Seq = h.seq
	h.moments[m.Seq%int64(MomentsKept)] = m
}

func (f Flow) decided() int64 { return f.Served + f.Delayed + f.Over + f.Full + f.Off + f.Gone }

func (f Flow) minus(o Flow) Flow {
	return Flow{
		Offered: f.Offered - o.Offered, Served: f.Served - o.Served, Delayed: f.Delayed - o.Delayed, Over: f.Over - o.Over,
		Full: f.Full - o.Full, Off: f.Off - o.Off, Gone: f.Gone - o.Gone, Good: f.Good - o.Good,
	}
}

// flow sums up the counters.
func (c *counts) flow(granted, good int64) Flow {
	f := Flow{Delayed: c.delayed.Load(), Gone: c.gone.Load(), Good: good}
	f.Served = max(granted-f.Delayed, 0)
	for i, reason := range reasons {
		n := c.refused[i].Load()
		switch reason {
		case OverLimit, CostTooLarge, InFlight, NoIdentity, BodyTooSlow:
			f.Over += n
		case FeatureOff:
			f.Off += n
		default:
			f.Full += n
		}
	}
	return f
}

// durations is a histogram of durations in µs: exact below 32 µs, then 16 steps for each doubling, up to 134 s.
type durations struct {
	buckets [24 * 16]uint32
	n       uint32
}

func (h *durations) add(d time.Duration) {
	us := min(uint64(max(d, 0)/time.Microsecond), 1<<27-1)
	shift := max(bits.Len64(us)-5, 0)
	h.buckets[shift*16+int(us>>shift)]++
	h.n++
}

func (h *durations) merge(o *durations) {
	if o.n == 0 {
		return
	}
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.n += o.n
}

// quantile returns a number of milliseconds that at least percent of all do not exceed, -1 when there are none.
func (h *durations) quantile(percent uint64) float64 {
	if h.n == 0 {
		return -1
	}
	rank := (uint64(h.n)*percent + 99) / 100
	for i, n := range h.buckets {
		if rank <= uint64(n) {
			return float64(upperEdge(i)) / 1000
		}
		rank -= uint64(n)
	}
	return -1
}

// upperEdge is the smallest number of µs above bucket i; of the exact ones the number itself.
func upperEdge(i int) uint64 {
	if i < 32 {
		return uint64(i)
	}
	shift := i/16 - 1
	return uint64(i-shift*16+1) << shift
}
