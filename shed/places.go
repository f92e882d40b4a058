package shed

import (
	"fmt"
	"time"
)

// Defaults of the line in front of the concurrency limit. A line whose capacity is not given grows with what is served, from
// DefaultQueueCapacity up to MostQueueCapacity.
const (
	DefaultQueueCapacity = 200
	MostQueueCapacity    = 10_000
	DefaultQueueMaxWait  = 500 * time.Millisecond
)

// places says how many may wait: so many, or with elastic as many more as the line can serve within its longest wait.
type places struct {
	capacity int
	elastic  bool
}

func (q Queue) resolve() (p places, maxWait time.Duration, err error) {
	switch {
	case q.MaxWait > longestMaxWait:
		return p, 0, fmt.Errorf("shed: queue: max_wait %v is above %v; nobody waits that long", q.MaxWait, longestMaxWait)
	case q.MaxWait < 0:
		return p, 0, fmt.Errorf("shed: queue: max_wait %v is negative; use a capacity of -1 for no line", q.MaxWait)
	}
	if maxWait = q.MaxWait; maxWait == 0 {
		maxWait = DefaultQueueMaxWait
	}
	if q.Capacity == 0 {
		return places{DefaultQueueCapacity, true}, maxWait, nil
	}
	return places{capacity: max(q.Capacity, 0)}, maxWait, nil
}

// resizable is a line whose capacity can be changed.
type resizable interface{ Resize(capacity int) }

// fit gives the line its places. By Little's law a line in which nobody waits for longer than maxWait holds what is served in that
// time, which is maxWait × limit ÷ latency. Fewer would refuse whom there is time for: a backend of 128 slots that stands still for
// a tenth of a second has 600 waiting. More would be of no use. The bound above keeps the memory of those who wait in bounds.
func (g *gate) fit() {
	line, ok := g.line.(resizable)
	if !ok {
		return
	}
	n := g.places.capacity
	if typical := g.latency.typical(); g.places.elastic && typical > 0 {
		served := float64(g.maxWait) / float64(typical) * float64(g.settled())
		n = int(min(max(served, float64(n)), MostQueueCapacity))
	}
	if n != g.line.Cap() {
		line.Resize(n)
	}
}
