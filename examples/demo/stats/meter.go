package stats

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/spillway-go/spillway/shed"
)

// Every is how often a tick is closed, and Kept how many are kept: a minute.
const (
	Every = 200 * time.Millisecond
	Kept  = int(time.Minute / Every)

	perSecond = int(time.Second / Every)
)

// atOnce is the wait up to which people would say that a request was served at once.
const atOnce = time.Millisecond

// Counts counts requests by what became of them. The last five are everything that can become of one; Offered is counted
// on arrival, so it runs ahead of their sum by those that are still waiting.
type Counts struct {
	Offered int64 `json:"offered"`
	Served  int64 `json:"served"`  // let in at once
	Delayed int64 `json:"delayed"` // let in after a wait
	Over    int64 `json:"over"`    // refused: the client's quota (429)
	Full    int64 `json:"full"`    // refused: no room (503)
	Off     int64 `json:"off"`     // refused: the feature is switched off (503)
}

func (c *Counts) add(o Counts) {
	c.Offered += o.Offered
	c.Served += o.Served
	c.Delayed += o.Delayed
	c.Over += o.Over
	c.Full += o.Full
	c.Off += o.Off
}

// Gauges is the state of admission control at the end of a tick.
type Gauges struct {
	Limit    int `json:"limit"`
	InFlight int `json:"in_flight"`
	// Waiting is everybody who waits, for room and for a turn.
	Waiting int `json:"waiting"`
	// Pressure is 0 to 1, or -1 while nothing is known.
	Pressure float64 `json:"pressure"`
}

// Tick is what happened in one fifth of a second.
type Tick struct {
	// Seq numbers ticks from 1, without gaps.
	Seq int64 `json:"seq"`
	Counts
	// Good counts successes within GoodWithin of their arrival.
	Good int64 `json:"good"`
	Gauges
	// P50 and P99 are the latencies of successes within the last second, in whole milliseconds, rounded up; -1 when there
	// were none.
	P50 int `json:"p50"`
	P99 int `json:"p99"`
}

// GoodWithin is how long after its arrival a success still counts as good.
const GoodWithin = 250 * time.Millisecond

// Meter counts. It is a shed.Observer; the application tells it the rest with Arrived and Answered. It is safe for
// concurrent use. New makes one; Run closes its ticks.
type Meter struct {
	mu      sync.Mutex
	now     Counts // of the open tick
	good    int64
	total   Counts
	seq     int64
	recent  [perSecond]latencies // of the open tick and the ones before it, by seq
	encoded [Kept][]byte         // closed ticks as JSON, by seq
}

// New returns a Meter that has seen nothing.
func New() *Meter { return &Meter{} }

// Arrived counts a request as offered and returns its number, counted from 1.
func (m *Meter) Arrived() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Offered++
	return m.total.Offered + m.now.Offered
}

// Answered counts an answer with status that was there took after the request's arrival.
func (m *Meter) Answered(status int, took time.Duration) {
	if status < 200 || status > 299 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if took <= GoodWithin {
		m.good++
	}
	m.recent[m.slot()].add(took)
}

// Observe implements shed.Observer.
func (m *Meter) Observe(e shed.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case e.Kind == shed.Admitted && e.Wait <= atOnce:
		m.now.Served++
	case e.Kind == shed.Admitted:
		m.now.Delayed++
	case e.Kind == shed.Refused:
		m.refused(e.Reason)
	}
}

func (m *Meter) refused(reason shed.Reason) {
	switch reason {
	case shed.OverLimit, shed.CostTooLarge, shed.InFlight:
		m.now.Over++
	case shed.FeatureOff:
		m.now.Off++
	case shed.NoIdentity: // neither the client's quota nor our fault, and impossible with the demo's own clients
	default:
		m.now.Full++
	}
}

// Run closes a tick every Every until ctx ends. It asks read for the gauges, without holding a lock.
func (m *Meter) Run(ctx context.Context, read func() Gauges) {
	t := time.NewTicker(Every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			m.Close(read())
		case <-ctx.Done():
			return
		}
	}
}

// Close ends the open tick, with the gauges of now. Run does so by itself.
func (m *Meter) Close(g Gauges) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var second latencies
	for i := range m.recent {
		second.merge(&m.recent[i])
	}
	m.seq++
	tick := Tick{Seq: m.seq, Counts: m.now, Good: m.good, Gauges: g, P50: second.quantile(50), P99: second.quantile(99)}
	m.total.add(m.now)
	m.now, m.good = Counts{}, 0
	m.recent[m.slot()] = latencies{}
	// A Tick is numbers only, which always encode.
	m.encoded[m.seq%int64(Kept)], _ = json.Marshal(tick)
}

// slot is where the open tick keeps its latencies.
func (m *Meter) slot() int { return int(m.seq % int64(perSecond)) }

// After returns the ticks after seq that are still kept, oldest first, each as a JSON object, and all that was counted in
// closed ticks. The slices must not be changed.
func (m *Meter) After(seq int64) (ticks [][]byte, total Counts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if seq > m.seq { // from before a restart of the program
		seq = 0
	}
	for i := max(seq, m.seq-int64(Kept), 0) + 1; i <= m.seq; i++ {
		ticks = append(ticks, m.encoded[i%int64(Kept)])
	}
	return ticks, m.total
}
