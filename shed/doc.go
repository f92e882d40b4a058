// Package shed answers one question for every request: may it run now?
//
// [Shedder.Admit] is the only way in and [Permit.Done] the only way out. Between them a request passes four stations, and
// each may turn it away with a [Rejection] that carries its reason as one word:
//
//  1. Feature: is what it asks for switched off? (Features, e.g. a pumpkin)
//  2. Gate, a first look: would it be refused at once? Then no quota is touched.
//  3. Rules: every [Limit] of its route is charged, all or nothing, in one call to the store; what is in flight is counted
//     here, before that. A rule whose excess is delayed gives the request a turn, and it waits for that.
//  4. Gate: are fewer running than the concurrency limit? If not, the request waits in a bounded line, or is refused if
//     it could not be answered in time. In the line ([queue.Fair]) the more important route goes first, and no client can
//     crowd out the others. Quota taken at the third station is then given back, but no turn that has come.
//
// Where the request has something to await that must not cost a place ([Request].Await; an adapter awaits the beginning of the body
// there), it does so between the last two, or before the rules where one of them delays.
//
// The concurrency limit is found, not configured: package limits/concurrency learns it from the latency of the work that
// permits are given for, and package health lowers it while the process is short of CPU or memory. Time spent waiting is never
// part of such a sample.
//
// # Permits
//
// A permit ends exactly once, with an [Outcome]. Give it back in a deferred closure:
//
//	permit, err := s.Admit(ctx, shed.Request{Client: "customer-42", Route: "reports"})
//	if err != nil {
//		return err
//	}
//	outcome := shed.Ignored
//	defer func() { permit.Done(outcome) }() // a closure, so that the outcome is read when the work ends
//
// # Structure
//
// The gate is a pure machine that is driven with the time and has neither lock nor goroutine; the Shedder adds the lock and
// the waiting. That lock is the only one in this package, is held for a few dozen instructions, and never while a store, an
// observer or a waiter is called. Everything exported is safe for concurrent use.
//
// # Bounds
//
// Those who wait are bounded in number and in time; both defaults are finite. Distinct clients cost memory only in the
// store, which is bounded. An idle Shedder has nothing in flight.
//
// # Not here
//
// Nothing of HTTP: package middleware turns requests into [Request] values and rejections into answers.
package shed
