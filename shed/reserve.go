package shed

import (
	"fmt"
	"math"
	"time"

	"github.com/spillway-go/spillway/queue"
)

// maxReserve leaves something for everybody.
const maxReserve = 0.9

func checkReserve(share float64) error {
	if share >= 0 && share <= maxReserve { // not so for NaN
		return nil
	}
	return fmt.Errorf("shed: reserve %v is not between 0 and %v; it is the share of the limit that only critical requests may use", share, maxReserve)
}

// room is how many may run when one of that priority is to start: the limit, less what is reserved for those above. All may use at
// least one place.
func (g *gate) room(priority int) int {
	limit := g.limit()
	if g.reserve == 0 || priority >= int(Critical) {
		return limit
	}
	return max(min(1, limit), limit-int(math.Ceil(g.reserve*float64(limit))))
}

// critical is the line as far as the reserve needs to know it.
type critical interface {
	PopFrom(now time.Duration, priority int) *queue.Waiter
	Waiting(priority int) int
}

// open reports whether t can start at once: there is room, and nobody waits who would go first. Who waits for a place that is not
// reserved does not hold up those for whom the rest is.
func (g *gate) open(t *ticket) bool {
	if g.inFlight >= g.room(t.Priority) {
		return false
	}
	if g.line.Len() == 0 {
		return true
	}
	line, ok := g.line.(critical)
	return ok && g.reserve > 0 && t.Priority >= int(Critical) && g.inFlight >= g.room(int(Sheddable)) &&
		line.Waiting(int(Critical))+line.Waiting(int(CriticalPlus)) == 0
}

// pop takes out who is next, and may start: when only reserved places are left, the next of the critical ones.
func (g *gate) pop(now time.Duration) *queue.Waiter {
	if line, ok := g.line.(critical); ok && g.reserve > 0 && g.inFlight >= g.room(int(Sheddable)) {
		return line.PopFrom(now, int(Critical))
	}
	return g.line.Pop(now)
}
