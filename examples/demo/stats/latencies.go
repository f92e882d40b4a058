package stats

import "time"

// latencies is a histogram of whole milliseconds up to one second; all that took longer share the last bucket. Within that
// range quantiles are exact to the millisecond. The zero value is empty.
type latencies struct {
	buckets [1001]uint32
	n       int
}

func (l *latencies) add(d time.Duration) {
	ms := int((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
	l.buckets[min(ms, len(l.buckets)-1)]++
	l.n++
}

func (l *latencies) merge(o *latencies) {
	if o.n == 0 {
		return
	}
	for i, n := range o.buckets {
		l.buckets[i] += n
	}
	l.n += o.n
}

// quantile returns the smallest number of milliseconds that at least percent of all do not exceed, -1 when there are none.
func (l *latencies) quantile(percent int) int {
	if l.n == 0 {
		return -1
	}
	rank := uint32((l.n*percent + 99) / 100)
	for ms, n := range l.buckets {
		if n >= rank {
			return ms
		}
		rank -= n
	}
	return len(l.buckets) - 1
}
