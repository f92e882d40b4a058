package backend

import "time"

// The demo's backend: 16 slots and 20 ms for an ordinary request make 800 requests per second; a report keeps a slot for
// as long as five of them.
const (
	SlotCount = 16
	Item      = 20 * time.Millisecond
	Report    = 100 * time.Millisecond
	Capacity  = SlotCount * int(time.Second/Item) // ordinary requests per second
)

// Slots is the worker pool as arithmetic: when each slot will be free again. It neither waits nor looks at a clock, and it
// is not safe for concurrent use. The zero value has no slots and cannot be used; NewSlots makes one.
type Slots struct {
	free []time.Time // when each slot has done all that is booked on it
}

// NewSlots returns n idle slots; fewer than one counts as one.
func NewSlots(n int) *Slots {
	return &Slots{free: make([]time.Time, max(n, 1))}
}

// Book gives a request that arrives at now and needs a slot for service its place behind all earlier ones, and returns
// when it starts and ends. Since every service time is known on arrival, giving each arrival the slot that is free first
// is the same as a queue in front of all slots, first come first served.
func (s *Slots) Book(now time.Time, service time.Duration) (start, end time.Time) {
	first := 0
	for i := range s.free {
		if s.free[i].Before(s.free[first]) {
			first = i
		}
	}
	start = now
	if s.free[first].After(now) {
		start = s.free[first]
	}
	end = start.Add(service)
	s.free[first] = end
	return start, end
}

// Busy returns how many slots have work at now.
func (s *Slots) Busy(now time.Time) int {
	n := 0
	for _, free := range s.free {
		if free.After(now) {
			n++
		}
	}
	return n
}
