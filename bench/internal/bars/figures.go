package bars

import (
	"time"

	"github.com/spillway-go/spillway/bench/internal/measure"
)

func in(phase string, of func(*measure.Run, measure.Pick) float64) func(*measure.Run) float64 {
	return func(r *measure.Run) float64 { return of(r, measure.Pick{Phase: phase}) }
}

// median is that of the admitted over the mean service time.
func median(r *measure.Run) float64 {
	return float64(r.Sum(measure.Pick{Phase: "load"}).Admitted.Quantile(.5)) / float64(service)
}

// late is the share of the admitted who got their answer too late, or had left by then.
func late(r *measure.Run) float64 {
	c := r.Sum(measure.Pick{Phase: "load"}).Counts
	return float64(c[measure.Late]+c[measure.Timeout]) / float64(max(1, c[measure.OK]+c[measure.Late]+c[measure.Timeout]))
}

func refused(r *measure.Run) float64 {
	s := r.Sum(measure.Pick{})
	return 1 - float64(s.Counts[measure.OK]+s.Counts[measure.Late])/float64(max(1, s.Asked))
}

// share is what was served in time of what came from one time to another, as a share of what was possible when only a part
// of the capacity remained.
func share(from, to time.Duration, remains float64) func(*measure.Run) float64 {
	return func(r *measure.Run) float64 {
		asked, ok := fine(r, from, to)
		return ok / min(asked, remains*r.Capacity*(to-from).Seconds())
	}
}

func fine(r *measure.Run, from, to time.Duration) (asked, ok float64) {
	w := r.Fine.Window.Duration()
	for i := int(from / w); i < min(int(to/w), len(r.Fine.OK)); i++ {
		asked, ok = asked+float64(r.Fine.Asked[i]), ok+float64(r.Fine.OK[i])
	}
	return asked, ok
}

// recovered is how long after a time a second begins in which so much of what was asked for is served.
func recovered(at time.Duration, enough float64) func(*measure.Run) float64 {
	return func(r *measure.Run) float64 {
		for after := time.Duration(0); after < 9*time.Second; after += r.Fine.Window.Duration() {
			if asked, ok := fine(r, at+after, at+after+time.Second); ok >= enough*asked {
				return after.Seconds()
			}
		}
		return 9
	}
}

// drift is how far the hourly means of the limit are apart, relative to their least. They are means of a reading every second; a day
// has a window every few minutes only, and a mean of so few single readings differs by a tenth by chance alone.
func drift(r *measure.Run) float64 {
	day := r.Picked(measure.Pick{Phase: "load"})[0]
	points := r.Series.Windows(day.Start, day.End)
	lowest, highest := 1e9, 0.0
	for hour := range 24 {
		part := points[len(points)*hour/24 : len(points)*(hour+1)/24]
		sum := 0.0
		for _, p := range part {
			sum += p.MeanLimit
		}
		lowest, highest = min(lowest, sum/float64(len(part))), max(highest, sum/float64(len(part)))
	}
	return highest/lowest - 1
}
