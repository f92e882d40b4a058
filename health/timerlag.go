package health

import "time"

// lagWindow is how far back the worst lag counts: late wake-ups are rare events, and one in eight is bad enough.
const lagWindow = 2 * time.Second

// timerLag is by how many seconds the sampler itself was woken too late, at worst. Busy Ps, throttling, a stolen CPU and
// pauses of the process all show in it, those made by neighbours too: hence supporting only.
//
// What a late sampler means for the other signals needs no rule of its own: their age is seen by whoever reads them, and they
// rate what passed with the time that passed.
type timerLag struct {
	due    time.Time // when the sampler wants to be woken; zero: at once
	window window[time.Duration]
}

func newTimerLag() *timerLag { return &timerLag{window: newWindow[time.Duration](lagWindow)} }

// expect notes when the next round is due.
func (l *timerLag) expect(due time.Time) { l.due = due }

func (l *timerLag) name() string { return "timer_lag" }

func (l *timerLag) source() string { return "worst delay of the sampler's own timer, in seconds" }

func (l *timerLag) measure(round time.Time) (float64, time.Duration, error) {
	if l.due.IsZero() {
		return 0, 0, errNoNews
	}
	lag, err := l.window.add(round)
	if err != nil {
		return 0, 0, err
	}
	*lag = round.Sub(l.due)
	worst := time.Duration(0)
	for i := range l.window.n {
		worst = max(worst, l.window.at(i).value)
	}
	// The maximum over the window stands as it is: its time, not the time since the last look.
	return worst.Seconds(), lagWindow, nil
}
