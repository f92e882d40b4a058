package measure

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// slowest is the largest latency that histograms tell apart from larger ones.
const slowest = time.Minute

// Latency is a histogram of latencies from 1 µs to 1 min with three digits. The zero value is empty and takes no memory
// before the first Add.
type Latency struct{ h *hdrhistogram.Histogram }

// Add records d.
func (l *Latency) Add(d time.Duration) {
	if l.h == nil {
		l.h = hdrhistogram.New(1, slowest.Microseconds(), 3)
	}
	// The value is within the range of the histogram, so that there can be no error.
	_ = l.h.RecordValue(max(1, min(d, slowest).Microseconds()))
}

// Merge adds all of other.
func (l *Latency) Merge(other *Latency) {
	if other.h == nil {
		return
	}
	if l.h == nil {
		l.h = hdrhistogram.New(1, slowest.Microseconds(), 3)
	}
	l.h.Merge(other.h)
}

// Count returns how many there are.
func (l *Latency) Count() int64 {
	if l.h == nil {
		return 0
	}
	return l.h.TotalCount()
}

// Quantile returns the latency at q in [0, 1], 0 when there is none.
func (l *Latency) Quantile(q float64) time.Duration {
	if l.h == nil {
		return 0
	}
	return time.Duration(l.h.ValueAtQuantile(q*100)) * time.Microsecond
}

// MarshalText writes it in the compressed V2 form of HdrHistogram, base64; an empty one is "".
func (l Latency) MarshalText() ([]byte, error) {
	if l.h == nil {
		return nil, nil
	}
	return l.h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
}

// UnmarshalText reads what MarshalText wrote.
func (l *Latency) UnmarshalText(text []byte) error {
	l.h = nil
	if len(text) == 0 {
		return nil
	}
	h, err := hdrhistogram.Decode(text)
	if err != nil {
		return fmt.Errorf("bench: a latency histogram cannot be read: %w", err)
	}
	l.h = h
	return nil
}

// Reset forgets all.
func (l *Latency) Reset() {
	if l.h != nil {
		l.h.Reset()
	}
}
