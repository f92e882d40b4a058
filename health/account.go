package health

import (
	"math"
	"time"
)

// counters is one look at the cumulative counters of CPU use, and at what may be used.
type counters struct {
	at    time.Time
	own   time.Duration // CPU time of this process since it started, user and system
	cores float64       // how many cores this process may use
	group group         // the cgroup whose quota binds; zero where none does
}

// group is the accounting of one cgroup that has a CPU quota.
type group struct {
	name      string  // which cgroup; empty: none
	cores     float64 // quota ÷ period
	usage     time.Duration
	periods   uint64 // quota periods in which something ran
	throttled uint64 // those of them in which the quota was used up
	hasUsage  bool   // usage was readable
	hasStat   bool   // periods and throttled were readable
	// decides: the quota, not the affinity mask or an override, is what cores says.
	decides bool
}

// comparable reports whether g's counters continue those of old.
func (g *group) comparable(old group) bool {
	return g.name != "" && g.name == old.name && g.hasUsage == old.hasUsage && g.hasStat == old.hasStat
}

// span is what happened between two looks.
type span struct {
	dt        time.Duration
	own       time.Duration
	all       time.Duration // of the whole group
	periods   uint64
	throttled uint64
	now       counters
	sameGroup bool // all, periods and throttled compare the same group with itself
	ours      bool // this process makes most of the group's CPU time
}

// used is the CPU time that counts against the cores: the group's while the group is ours and its quota decides, since
// what our children use brings throttling on us too; otherwise only this process's own, since what others use is not ours
// to shed.
func (s *span) used() time.Duration {
	if s.ours && s.now.group.decides {
		return s.all
	}
	return s.own
}

// utilisation is used ÷ (dt × cores), at most 1: more than all is all, and a single absurd reading must not weigh more
// than a true one.
func (s *span) utilisation() float64 {
	return math.Min(1, s.used().Seconds()/(s.dt.Seconds()*s.now.cores))
}

// minSpan is the shortest time that is rated. With counters that move in ticks of 10 ms the resolution would be worse
// than a tenth below it; two looks within one tick would read 0 or 100 %.
const minSpan = 100 * time.Millisecond

// meter turns looks into spans. It is pure. The zero value has seen nothing.
type meter struct {
	last  counters
	owner ownership
}

// next compares c with the look before. A look that is too soon does not become the new baseline, so nothing is lost by
// it; after a counter that fell, c is where counting starts again.
func (m *meter) next(c counters) (span, error) {
	last := m.last
	if last.at.IsZero() {
		m.last = c
		return span{}, errNoNews
	}
	dt := c.at.Sub(last.at)
	switch {
	case dt <= 0:
		return span{}, errClockStood
	case dt < minSpan:
		return span{}, errTooSoon
	}
	m.last = c
	if dt > carriedFor {
		return span{}, errTooLong
	}
	s := span{dt: dt, own: c.own - last.own, now: c}
	if s.own < 0 {
		return span{}, errOwnFell
	}
	// Another group's counters start elsewhere: this once only our own CPU time can be rated.
	s.sameGroup = c.group.comparable(last.group)
	if s.sameGroup {
		if c.group.usage < last.group.usage || c.group.periods < last.group.periods || c.group.throttled < last.group.throttled {
			return span{}, errGroupFell
		}
		s.all = c.group.usage - last.group.usage
		s.periods = c.group.periods - last.group.periods
		s.throttled = c.group.throttled - last.group.throttled
	}
	if s.sameGroup && c.group.hasUsage {
		s.ours = m.owner.add(s.own, s.all, dt)
	} else {
		m.owner = ownership{}
	}
	return s, nil
}

var (
	errClockStood = &discard{reason: ClockStood, what: "no time passed since the last sample"}
	errTooSoon    = &discard{reason: TooSoon, what: "less than 100 ms passed since the last sample"}
	errOwnFell    = &discard{reason: CounterFell, what: "the process's CPU time went back"}
	errGroupFell  = &discard{reason: CounterFell, what: "a counter of the cgroup went back"}
)

const (
	// ownerMemory is the time constant over which shares are compared before a group becomes ours.
	ownerMemory = 5 * time.Second
	// ownerEnter is the share from which a group is ours. It is left at a half: the gap keeps a process that makes about
	// half of the CPU time from being rated by turns with and without its neighbours.
	ownerEnter = 0.6
)

// ownership answers whether a cgroup is ours: whether this process makes most of its CPU time. Elsewhere in the same
// cgroup there may be a sidecar, a shell or a whole batch job, whose load sheds nothing here. The group stops being ours
// with the first span in which others make more than half; it becomes ours by the share over the last seconds.
type ownership struct {
	own, all float64 // decaying sums in seconds of CPU time
	ours     bool
}

func (o *ownership) add(own, all, dt time.Duration) bool {
	keep := math.Exp(-dt.Seconds() / ownerMemory.Seconds())
	o.own = keep*o.own + own.Seconds()
	o.all = keep*o.all + all.Seconds()
	switch {
	case 2*own < all:
		o.ours = false
	case o.all > 0 && o.own >= ownerEnter*o.all:
		o.ours = true
	}
	return o.ours
}

// account looks once per round, however many signals ask.
type account struct {
	look  func() (counters, error)
	meter meter

	round time.Time
	span  span
	err   error
}

func (a *account) at(round time.Time) (span, error) {
	if a.round.IsZero() || !round.Equal(a.round) {
		a.round = round
		c, err := a.look()
		if err == nil {
			a.span, a.err = a.meter.next(c)
		} else {
			a.span, a.err = span{}, err
		}
	}
	return a.span, a.err
}
