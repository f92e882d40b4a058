package queue

import "time"

// Waiter is one caller in a Line. The caller owns it, sets the exported fields before Push and does not touch it again
// until a Line has given it back. A waiter is in at most one Line; it can be reused afterwards.
type Waiter struct {
	// Owner is whatever the caller needs to find its own side of the waiter again. A Line never looks at it.
	Owner any
	// Client names whose request this is, for disciplines that are fair between clients. All nameless are one client.
	Client string
	// Priority orders waiters for disciplines that know priorities; higher goes first.
	Priority int
	// Cost is how much of the quota the request weighs; disciplines that share by work use it. Zero counts as 1.
	Cost int64
	// Arrived is when the waiter joined, and Deadline when it must have started; both on the gate's clock, which counts
	// from an arbitrary start. There is no waiting without a deadline: zero is an ordinary time, long past.
	Arrived, Deadline time.Duration

	// Next links waiters that are handed over together, so that handing over needs no allocation. It is nil otherwise.
	Next *Waiter

	line       Line // the line it stands in, nil when in none
	prev, next *Waiter
	flow       *flow  // in a Fair: its client's flow, nil once its time is up
	seq        uint64 // in a Fair: its number among the arrivals
	due        int    // in a Fair: its place among the deadlines
}

// Line is a discipline: who waits, in which order, and who has to go when it is full. It is a plain data structure
// without lock and without clock: the gate calls it under its own lock and passes now where time matters.
type Line interface {
	// Ahead tells, without changing anything, how many would be served before w if it joined now, and whether Push would
	// take it. The gate asks before quota is charged, to refuse at once whom it could not serve in time.
	Ahead(now time.Duration, w *Waiter) (n int, ok bool)

	// Push adds w at now. If there is no room, either w itself is refused (ok is false) or somebody who ranks below
	// it is displaced, taken out of the line and returned. Waiters whose deadline has passed still take room: the gate
	// calls Expire first. A waiter that already stands in a line is refused.
	Push(now time.Duration, w *Waiter) (displaced *Waiter, ok bool)

	// Pop takes out the waiter whose turn it is. It never returns one whose deadline is at or before now; those stay
	// for Expire. It returns nil when nobody may start.
	Pop(now time.Duration) *Waiter

	// Remove takes out w, wherever it stands. It reports whether w was in this line.
	Remove(w *Waiter) bool

	// Expire takes out everybody whose deadline is at or before now and returns them linked by Next, or nil.
	Expire(now time.Duration) *Waiter

	// Refused tells the line that w was refused at now for lack of time or room, outside the line. What the line does itself
	// (refusing, displacing, expiring) it knows already. A discipline may order differently while refusals last.
	Refused(now time.Duration, w *Waiter)

	// Len returns how many wait, and Cap how many can.
	Len() int
	Cap() int
}
