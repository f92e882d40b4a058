// Package redisstore answers the question: how much may a key use over time, when many processes share one quota?
//
// A [Store] keeps the balances of package limits in Redis. One decision is one call of one script, for all charges
// together: it reads, lets time pass, checks all, and takes all or nothing. The numbers are whole, the arithmetic is that of
// limits.Memory (and passes the same suite, limits/storetest), and the clock is the server's: skewed clocks of the callers
// change nothing. A refusal writes nothing.
//
// It works with every kind of client that go-redis has: one server, sentinels, a cluster. It needs Redis 6.2 or later, or
// Valkey, and a user with the rights
//
//	~spillway:* +evalsha +eval +get +set +time
//
// # Keys
//
// A balance is at PREFIX:{CLIENT}:POLICY, so that all balances of a client are on one server of a cluster; names that could
// be mistaken for anything else stand there as a digest. A key goes in the millisecond in which its balance is full again. A
// bucket takes about 165 bytes of Redis's memory at a key of 22 bytes, a log of 100 charges about 1.7 kB; a log is read and
// written whole, so let its quota be at most some thousands. A balance whose rule was changed is converted when it is next
// used; what was used stays used. What counts work in flight (limits.InFlight) stays in the process.
//
// # On a cluster
//
// Charges of different keys (one per client, one for everybody) are on different servers, so each takes a call: the
// client's first, everybody's last, and when a later one refuses the earlier are refunded exactly. At the end all is taken
// or nothing, but not at one instant: for that moment others may find less than there is. If the refund is lost, the charge
// stays.
//
// # What is sent together
//
// Decisions about the same balances that come while a call about them is on its way go together in the next, and are
// granted in the order in which they came. So a key that all want costs one call at a time, however many want it, or two where a
// crowd waits that would stand still otherwise. What comes
// about different balances while others are on their way is one message, peeks and refunds too, and where all rules are buckets
// that drain, and there is no cluster, one run of a script, which costs Redis less than half of what a run for each would. It
// is exact, has no timer, and nobody waits for others to come. Config.NoCoalescing and Config.NoPipelining switch it off.
//
// # Hot keys
//
// Wrappers spare Redis more calls, and are a choice. A [Refusals] remembers for a second at most what was refused, so that a
// flood of what is over its limit is answered from memory. A [Leases] takes blocks ahead for the policies that allow that, and
// spends them without asking: what a bucket admits over a span can then be more than its rule by what lay in blocks as the span
// began, and an instance may refuse what lies unused with another. An [Async] goes further: it decides by what it last heard, and tells
// Redis several times a second what it has admitted; see there for how much that can be. A [SubBuckets] keeps one balance in parts on several servers.
// Put it on an Async on a Leases on a Refusals on a Guard on a Store.
//
// # At most one charge
//
// A call whose answer is lost is never sent again: the [Error] says that it may have been carried out. See [Kind] for what
// each kind of error means for the quota.
//
// # What can cost quota
//
// Over one history of Redis nothing gives a key more than its rule allows. Beyond that: a failover forgets what the new
// master had not heard (at most its lag times the rate admitted, and never more than a capacity); a restart without
// persistence fills every balance; a clock of the server that steps forward brings what the step would have, at most a
// capacity, and one that steps back brings nothing until it has caught up; a maxmemory policy other than noeviction drops
// limited keys. So give quotas a Redis of their own, noeviction, a clock that is slewed, and min-replicas-to-write where
// there are replicas.
package redisstore
