package concurrency

import (
	"math/rand/v2"
	"slices"
	"time"
)

// limiter is what the simulated gate needs to know; Estimator is one, and so are the broken ones of the negative controls.
type limiter interface {
	Observe(now time.Duration, s Sample)
	Tick(now time.Duration)
	Limit() int
}

// sim is a discrete-event simulation: Poisson arrivals, a gate with a line, and a backend of some slots with a FIFO queue of
// its own that the gate sees as latency only. No real time passes in it.
type sim struct {
	limit   limiter
	rng     *rand.Rand
	slots   int
	service func(now time.Duration) time.Duration // of one request that arrives at the backend at now
	rate    func(now time.Duration) float64       // arrivals per second
	drop    func(now time.Duration) bool          // whether a request that ends at now was dropped; nil means none
	lag     func(now time.Duration) float64       // factor by which a permit is held longer than the work takes; nil means none
	cap     func() int                            // a limit beside the estimate; nil means none
	maxWait time.Duration                         // in the line
	budget  time.Duration                         // of the client

	now      time.Duration
	free     heap[time.Duration] // when each slot of the backend is free
	running  heap[job]
	line     line
	inFlight int
	lack     lack
	usual    usual
	arrival  time.Duration
	tick     time.Duration

	seconds  []second
	answered []time.Duration // from arrival to answer, of the good from the third second on
}

// second is what happened in one second of the simulation.
type second struct {
	offered, good, late, refused, dropped int
	low, high                             int // of the limit
}

// job is one admitted request.
type job struct {
	arrived, admitted, end time.Duration
}

const serviceTime = 20 * time.Millisecond

// newSim returns a backend of slots × 20 ms under load × its capacity.
func newSim(l limiter, slots int, load float64, exponential bool, seed uint64) *sim {
	s := &sim{
		limit: l, rng: rand.New(rand.NewPCG(seed, 1)), slots: slots,
		maxWait: 150 * time.Millisecond, budget: 250 * time.Millisecond,
	}
	s.free.before = func(a, b time.Duration) bool { return a < b }
	s.free.all = make([]time.Duration, slots)
	s.running.before = func(a, b job) bool { return a.end < b.end }
	s.service = s.times(serviceTime, exponential)
	s.rate = func(time.Duration) float64 { return load * s.capacity() }
	return s
}

func (s *sim) capacity() float64 { return float64(s.slots) / serviceTime.Seconds() }

func (s *sim) times(mean time.Duration, exponential bool) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration {
		if exponential {
			return time.Duration(s.rng.ExpFloat64() * float64(mean))
		}
		return mean
	}
}

// run lets the simulation go on until the given time.
func (s *sim) run(until time.Duration) *sim {
	if s.arrival == 0 {
		s.arrival = s.next()
	}
	for {
		next := min(s.arrival, s.tick)
		if len(s.running.all) > 0 {
			next = min(next, s.running.all[0].end)
		}
		if next > until {
			s.now = until
			return s
		}
		s.now = next
		switch {
		case len(s.running.all) > 0 && s.running.all[0].end == next:
			s.finish(s.running.pop())
		case s.tick == next:
			s.tick += 50 * time.Millisecond
			s.limit.Tick(s.now)
		default:
			if s.rate(s.now) > 0 {
				s.arrive()
			}
			s.arrival = s.next()
		}
		s.grant()
	}
}

func (s *sim) next() time.Duration {
	rate := s.rate(s.now)
	if rate <= 0 {
		return s.now + time.Millisecond*10 // look again soon; counted as an arrival only if there is load then
	}
	return s.now + time.Duration(s.rng.ExpFloat64()/rate*float64(time.Second)) + 1
}

func (s *sim) at() *second {
	for i := int(s.now / time.Second); len(s.seconds) <= i; {
		s.seconds = append(s.seconds, second{low: s.limit.Limit(), high: s.limit.Limit()})
	}
	return &s.seconds[len(s.seconds)-1]
}

// arrive puts an arrival into the line, or turns it away if its wait would be too long.
func (s *sim) arrive() {
	s.at().offered++
	if !s.line.enter(s.now, s.limit.Limit(), s.inFlight, s.maxWait, s.budget) {
		s.at().refused++
		s.lack.begin(s.now, s.inFlight)
	}
}

// grant lets in who may start, after sending away who has waited too long.
func (s *sim) grant() {
	if n := s.line.expire(s.now, s.maxWait); n > 0 {
		s.at().refused += n
		s.lack.begin(s.now, s.inFlight)
	}
	limit := s.limit.Limit()
	sec := s.at()
	sec.low, sec.high = min(sec.low, limit), max(sec.high, limit)
	if s.cap != nil {
		limit = min(limit, s.cap())
	}
	for len(s.line.waiting) > 0 && s.inFlight < limit {
		arrived := s.line.take()
		took := s.service(s.now)
		end := max(s.now, s.free.pop()) + took
		s.free.push(end)
		if s.lag != nil {
			end = s.now + time.Duration(float64(end-s.now)*s.lag(s.now))
		}
		s.running.push(job{arrived, s.now, end})
		s.inFlight++
		if e, ok := s.limit.(*Estimator); ok && s.inFlight > e.Trial() {
			s.lack.begin(s.now, s.inFlight)
		}
	}
}

func (s *sim) finish(j job) {
	sample := Sample{Latency: s.now - j.admitted, InFlight: s.inFlight, Usual: s.usual.time(), Short: s.lack.owed > 0}
	s.usual.add(sample.Latency)
	s.inFlight--
	s.line.took(s.now, sample.Latency)
	switch {
	case s.drop != nil && s.drop(s.now):
		sample.Dropped = true
		s.at().dropped++
	case s.now-j.arrived <= s.budget:
		s.at().good++
		if s.now >= 2*time.Second {
			s.answered = append(s.answered, s.now-j.arrived)
		}
	default:
		s.at().late++
	}
	s.limit.Observe(s.now, sample)
	if s.lack.ended(j.admitted) {
		if e, ok := s.limit.(*Estimator); ok {
			e.Eased(s.now, s.inFlight)
		}
	}
}

// stall makes all slots busy for a while, from now on.
func (s *sim) stall(lasting time.Duration) {
	for i, at := range s.free.all { // the same for all, so the heap stays one
		s.free.all[i] = max(at, s.now) + lasting
	}
}

// lose takes slots away until the given time and returns how many are left.
func (s *sim) lose(until time.Duration) (left int) {
	left = max(1, s.slots*3/10)
	for i := range s.free.all[left:] {
		s.free.all[left+i] = until
	}
	s.free.fix()
	return left
}

// refused is the share of all arrivals since a second that were turned away.
func (s *sim) refused(from int) float64 {
	refused, offered := 0, 0
	for _, sec := range s.seconds[from:] {
		refused += sec.refused
		offered += sec.offered
	}
	return float64(refused) / float64(offered)
}

// late is the share of all answers since a second that came too late.
func (s *sim) late(from int) float64 {
	late, all := 0, 0
	for _, sec := range s.seconds[from:] {
		late += sec.late
		all += sec.late + sec.good
	}
	return float64(late) / float64(all)
}

// median returns the median time from arrival to answer.
func (s *sim) median() time.Duration {
	sorted := slices.Sorted(slices.Values(s.answered))
	return sorted[len(sorted)/2]
}

// goodput is the share of what could have been served that was, in time, in the seconds [from, to).
func (s *sim) goodput(from, to int) float64 {
	good, possible := 0.0, 0.0
	for _, sec := range s.seconds[from:to] {
		good += float64(sec.good)
		possible += min(float64(sec.offered), s.capacity())
	}
	return good / possible
}

// limits returns the lowest and highest limit in the seconds [from, to).
func (s *sim) limits(from, to int) (low, high int) {
	low, high = s.seconds[from].low, s.seconds[from].high
	for _, sec := range s.seconds[from:to] {
		low, high = min(low, sec.low), max(high, sec.high)
	}
	return low, high
}
