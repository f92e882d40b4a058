package health

import (
	"fmt"
	"time"
)

// quietAfter is when a cgroup in which no quota period passed is known not to be throttled: a throttled cgroup's period
// timer runs, and the longest period the kernel allows is 1 s.
const quietAfter = 2 * time.Second

// throttle is the share of quota periods in which the quota was used up before the period ended: Δnr_throttled ÷
// Δnr_periods. It sees what utilisation averages away (bursts that are stopped within each period) and what scheduling
// latency can not see at all. It counts only while the cgroup is ours.
type throttle struct {
	account *account
	// pending is what passed since the last value: periods may be longer than the time between samples.
	pending time.Duration
	ratio   float64 // of the last periods that passed
	known   bool
	group   string // that words are about
	words   string
}

func (t *throttle) name() string { return "throttle" }

func (t *throttle) measure(round time.Time) (float64, time.Duration, error) {
	s, err := t.account.at(round)
	if err != nil {
		return 0, 0, err
	}
	g := s.now.group
	switch {
	case g.name == "":
		t.forget("")
		return 0, 0, errNoQuota
	case !g.hasStat:
		t.forget(g.name)
		return 0, 0, errNoStat
	case !s.ours:
		t.forget(g.name)
		return 0, 0, errNotOurs
	}
	t.describe(g.name)
	t.pending += s.dt
	switch {
	case s.periods > 0:
		// Both counters are read from one file, but no kernel promises that they move together.
		t.ratio, t.known = min(1, float64(s.throttled)/float64(s.periods)), true
	case t.pending >= quietAfter:
		t.ratio, t.known = 0, true
	case !t.known:
		return 0, 0, errNoNews
	default:
		// No period ended: 0 ÷ 0 is not 0, the last ratio stands.
		return t.ratio, s.dt, nil
	}
	t.pending = 0
	return t.ratio, s.dt, nil
}

var (
	errNoQuota = fmt.Errorf("%w: no CPU quota applies, so nothing can be throttled", errAbsent)
	errNoStat  = fmt.Errorf("%w: the cgroup with the quota does not say how often it was throttled", errAbsent)
	errNotOurs = fmt.Errorf("%w: this process does not make most of the cgroup's CPU time", errAbsent)
)

func (t *throttle) source() string { return t.words }

// forget drops what was known, when the group is another one, or none.
func (t *throttle) forget(group string) {
	t.pending, t.ratio, t.known = 0, 0, false
	t.describe(group)
}

// describe words what is measured, if that changed.
func (t *throttle) describe(group string) {
	if t.words != "" && t.group == group {
		return
	}
	t.group, t.words = group, "no CPU quota"
	if group != "" {
		t.words = "throttled periods of " + group
	}
}
