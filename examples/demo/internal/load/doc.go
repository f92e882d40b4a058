// Package load answers: what does a client see when so many requests come at exactly these times? It is the demo's load
// generator: an open loop on an absolute schedule, run in a child process, so that its own CPU time does not count as the
// app's.
//
// Words: a Plan says what is sent and when; the k-th request is due at start + k/rate, whatever became of the earlier ones.
// Lag is how much later than due a request really left. Latency counts from the due time, so a stall of the server or of
// the generator is seen by every request that it delayed, and not by one alone.
//
// The load is bounded in count, rate and time by Plan's limits, and goes to loopback addresses only. If all connections
// are busy a due request is sent late, and its lag says so; nothing is left out silently.
package load
