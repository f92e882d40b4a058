// Package edge answers the question: what does a shedder's decision look like in HTTP, whatever the framework?
//
// It is the part that the net/http middleware and its siblings for frameworks have in common. An [Edge] finds the route
// and the client of a request, asks the [shed.Shedder] and turns what comes back into header fields, a status and a
// problem document; a [Visit] is one admitted request, from which the outcome of its permit is read. The adapters add
// nothing but their framework's way of calling a handler and of reporting an error.
//
// # Invariants
//
//   - Header fields of an admitted request are set before its handler runs; those of a refused one before its only write.
//   - What is gathered of a request's body before there is a place for it is what the handler reads first, unchanged. Nothing is
//     read ahead where bodies may be as slow as they like, nor on exempt and long-lived routes.
//   - The permit ends exactly once, in a deferred call, and no panic is recovered on the way.
//   - Nothing is written to a client that has gone away.
//   - A writer is never reused for another request: a handler that leaks its writer into a goroutine must not reach
//     somebody else's response. That is why writers are not pooled.
//   - Everything remembered between requests (ready-made documents and policy lines) is bounded in number.
//
// Everything here is safe for concurrent use, but for a Visit, which belongs to one request.
package edge
