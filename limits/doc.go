// Package limits answers the question: how much may a key use over time?
//
// A [Rule] says what is allowed: [TokenBucket] and [LeakyBucket], with [Delay] to make excess wait for its turn instead of
// refusing it; [Burst] with a soft and a hard rate; [FixedWindow], [SlidingWindow] and [SlidingLog]; [InFlight] for what
// runs at the same time. A [Policy] is a rule under a name. A [Store] keeps a balance for each policy and key; [Memory] is the store
// in this process. One call decides:
//
//	decision, err := store.Take(ctx, time.Now(), []limits.Charge{{Policy: perClient, Key: client, Cost: 1}})
//
// All charges of a Take are made, or none. Each gets a [Verdict] that tells what remains and, if it was refused, exactly
// when the same charge would be accepted.
//
// # Words
//
//   - cost: what a request weighs, in whole units of whatever the caller counts: requests, bytes, messages.
//   - balance: what one key has left under one policy. A full balance has nothing used.
//   - debt: what is used and has not come back yet. It is what stores keep; a key that is not in a store is full.
//   - window, period: a span of the clock. Those of one length begin at its multiples since the Unix epoch, everywhere.
//   - shadow: a charge that is judged and counted, and decides nothing.
//   - tick: the unit of a rule's time, 1 µs, or 1 ms for rules whose numbers would be too large otherwise.
//
// # What holds
//
//   - A refusal writes nothing, for none of its policies.
//   - No quota is minted: not by clock steps, refunds, rebuilt policies, dropped keys, negative or huge costs. Over any
//     span that begins with a full bucket, what is admitted less what is refunded is at most the capacity and what the
//     rate brings in that span; each window says what it bounds. Nor is less admitted than that.
//   - RetryAfter is the truth: whoever waits that long, and competes with nobody, is admitted; 1 µs earlier is too early.
//     Where waiting cannot help there is none, and the reason is CostTooLarge; nor for TooManyInFlight, where nobody knows.
//   - Arithmetic is exact, in integers: see [Meter]. Rates such as 10/13s, 1/day and 1000000000/s lose nothing in years.
//     What would not fit is an error of NewPolicy, not a surprise later. The same times and costs give the same
//     decisions in every store.
//   - No store starts a goroutine or a timer, and memory is bounded: see [MemoryConfig].
//
// Everything is safe for concurrent use.
//
// # Not here
//
// No store waits: a turn is a number. [Wait], and a [Flow] with its [Reader] and [Writer], are for callers who have no waiting
// room of their own. Nothing knows HTTP. How many may run at once before a service is overloaded is another question, for
// which no fixed number is the answer.
package limits
