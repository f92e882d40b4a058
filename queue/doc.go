// Package queue answers the question: in which order, and how long, does excess wait?
//
// It has two halves that share nothing but the idea.
//
// A [Line] is where requests stand that wait for a permit: nobody knows when the next permit comes free, so a line only
// decides who is next, who has waited too long and who must go when it is full. [Fair] is the line for overload, with priorities and
// fair between clients; [FIFO] knows nothing but arrival. Lines are plain data structures without lock and clock; the gate of package shed owns both.
//
// [Leaky] is the leaky bucket as a queue: there every caller's turn is known to the nanosecond when it arrives, because a
// rule of package limits has computed it (the k-th of n simultaneous arrivals starts (k-1)/leak later). Leaky only parks the
// callers until their turns come.
//
// # Words
//
// A waiter is one caller in a line. A turn is the moment at which a parked caller may start. To give a turn on is to leave
// before it comes, so that everybody behind moves up. A surge is a time in which refusals of one priority last. A client in
// debt was served beyond its share and lets others go first.
//
// # Invariants
//
//   - Nobody starts before its turn, and nobody is handed out after its deadline.
//   - Who leaves frees its place at once; the others keep their order.
//   - A waiter leaves a line exactly once: popped, removed, displaced or expired.
//   - In a Fair, a priority in which somebody waits gets one of any 32 turns, and a client that asks for no more than its
//     share is served as if those who ask for more were not there.
//
// # Bounds
//
// Both halves hold a fixed number of callers and refuse more. FIFO's Push, Pop and Remove are O(1); Expire looks at the
// waiters only when one of them may have expired. Fair takes O(log n) for each of them. None of them allocates. Leaving a
// Leaky early costs one step for everybody behind on the same key.
//
// # Not here
//
// How many may run at once (package limits/concurrency), whether a charge fits (package limits), and blocking for a permit
// (package shed).
package queue
