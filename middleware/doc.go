// Package middleware answers the question: how does a shedder's decision reach an HTTP client?
//
// [Shed] wraps a handler. For each request it finds out who asks and for which route, asks the [shed.Shedder], and either
// calls the handler or answers for it:
//
//	429  a rule refused: this client's quota        reason over_limit, cost_too_large, in_flight
//	403  nobody knows who asks, and somebody must   reason no_identity
//	408  the request's body does not come           reason body_too_slow
//	503  the service is short, or a feature is off  all other reasons
//
// A request with a body takes a place only when the beginning of its body is there, and the rest has to come fast enough: see
// [shed.Bodies].
//
// A client that goes away while its request waits is not refused: the status is then 499 and nothing else, which nobody sees
// but logs, and clients whose context the server itself has cancelled.
//
// A refusal is an RFC 9457 problem document whose "reason" is the same word as in metrics and logs, with Retry-After in
// whole seconds, rounded up, unless waiting cannot help. Every answer to a request that rules were asked about, allowed or
// refused by them, carries RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers, wire format of -08 and later):
//
//	RateLimit-Policy: "per-client";q=20;w=4
//	RateLimit: "per-client";r=19;t=1
//
// q is the quota and w the seconds in which that much comes back; r is what is left and t the seconds until that changes:
// on a refusal until the same request fits, otherwise until the quota next grows.
//
// # Who asks
//
// [shed.Clients] says how clients are told apart: by what the application's authentication says (Config.Principal), by an
// API key, by address. No forwarding header is believed unless the peer is a configured proxy, and then exactly the one
// header that is configured, read from the right. API keys are used as keyed hashes only. Where shed.Clients.APIKeys lists them,
// only a listed key names a client, and its plan. Without a list they are labels, not proof, and a warning says so at the start:
// whoever makes up keys is a new client each time, for rules per client; rules per ip hold all the same.
//
// # What it costs
//
// A request weighs its route's cost, or what Config.Cost says. What the work came to can be said afterwards, by the handler with
// [SetCost] or in a field of its response (shed.Route.CostHeader), or by Config.Settle: what was charged too much is given back. A
// limit with shed.CountFailures keeps only what was answered with 4xx, as logins need.
//
// Limits on bytes and messages need no help: a body with a length is charged by it, and what the handler did not read is given back;
// bodies without one, responses, event streams and the messages that clients send over WebSockets are slowed down to what limits
// allow, and hold no place under the concurrency limit while they wait. What only the handler knows it counts with [Charge] and
// [Pace].
//
// # For people
//
// Who asks for HTML rather than JSON gets a page, without scripts and styles, with the same status and fields. Config.Render answers
// in the application's own way.
//
// # Trying limits
//
// Limits in shadow mode refuse nobody. What they would have refused says the field Spillway-Shadow of the response:
//
//	Spillway-Shadow: "site";reason=over_limit;t=3
//
// # What a handler sees
//
// The ResponseWriter is wrapped, to learn the status. It can flush, be hijacked, read from files and push exactly when the
// one inside can. Panics pass through untouched, http.ErrAbortHandler too, and give the permit back. Streams, upgrades and
// work that its client broke off teach the concurrency limit nothing.
//
// # Where to put it
//
// Inside of recovery, logging, metrics and CORS (so that a browser may read a 429), inside of http.TimeoutHandler (so that
// the permit follows the work and not the answer), outside of everything that costs. A writer further out that hides
// SetReadDeadline, as http.TimeoutHandler's does, keeps it from hurrying slow bodies; that is logged once. Preflights pass without
// being counted.
// Cross-origin scripts see the fields if CORS exposes Retry-After, RateLimit and RateLimit-Policy.
//
// One shedder may stand at several places of one chain: the outermost decides, the others let through what it admitted, so that
// each limit is charged once. Around authentication there are two of them: the outer one with Config.BeforeAuth charges limits
// per ip and for all, the inner one with Config.Principal those per client, for the same permit. A writer between them that has no
// Unwrap method hides the first from the second. Routes that are exempt take no permit and leave no mark.
//
// # Calling out
//
// A [Transport] is the other side: an http.RoundTripper that calls other services within limits, as long as they want to be
// called. [Dashboard] shows what a Shedder does, of either side.
//
// # Not in here
//
// No handler is called twice, retried or cut short. A slow reader holds its permit: set write deadlines
// (http.ResponseController) where clients are not to be trusted. Authentication is the application's.
package middleware
