// Package gameday answers the question: what do the users of a small production see on a bad day?
//
// It starts two gateways of this repository behind one configuration file that switches everything on, a Redis with a replica
// and sentinels, a service in Python of known capacity and one in Go with streams, lets customers of many kinds use it, and
// breaks one thing after the other. Each act says beforehand what should be seen; the verdicts are then taken from what
// clients were answered and from what arrived at the service, not from what the gateways say about themselves.
//
// A control act lets the same flood hit the same service without a gateway: it must collapse, or the day proves nothing.
//
// Timing decides as little as possible. What a rule let through is counted over a whole act, from before the first request to
// after the last answer: it is at most the capacity and what was refilled in that time, however slow the machine is. Where
// latency matters, an act in which the machine itself was late (the generator, or a direct probe that meets no gateway) is
// played again, and is INVALID when that does not help.
package gameday
