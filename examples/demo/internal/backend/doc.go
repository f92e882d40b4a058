// Package backend answers: how much can the app behind the admission control do? Exactly as much as it says, on every
// machine: it is a worker pool of 16 slots that each serve one request at a time, for a time that is known beforehand, and
// spends no CPU on it. So the demo's claims about goodput can be checked against a number and not against a guess.
//
// In front of the slots stands an unbounded queue, first come first served, that ignores cancellation, as the pools of
// threads and of database connections behind real services do. Nothing here protects itself: work that is let in is
// done, however late and whether or not anybody still waits for it. That is what admission control is there to prevent.
//
// A slot's next start is its scheduled end, not the moment at which a timer happened to fire. Timers that fire late make
// an answer late, but never cost capacity: 16 slots of 20 ms are 800 requests per second, exactly.
package backend
