// Package concurrency answers the question: how many requests may run at once? Latency samples go in, a limit comes out, and
// the health of the process caps it.
//
// # Words
//
// The limit is how many may be in flight. A slot is what the backend really has; how many there are nobody tells us. The
// baseline is the mean latency without queueing. A window collects samples between two decisions. Saturated means that the
// limit was reached, so that more was wanted than allowed. A dip lowers the limit for a moment to measure the baseline.
//
// # How the limit is found
//
// [Estimator] collects samples in windows, measures the latency without queueing, and asks one of these for the next limit:
//
//	knee       L → 1.3·X·S + 2           our own and the default; X is throughput, S the baseline
//	gradient2  L ← 0.8·L + 0.2·(L·clamp(1.2·S/R, 0.5, 1) + q)    R is the latency now, q at most 4
//	vegas      L ± 1 while ⌈L·(1 − S/R)⌉ is out of 3 to 6
//	aimd       L + 1 until too much is dropped
//	fixed      L
//
// By Little's law X·S is how many are at work in the backend, so knee keeps every slot busy, and a reserve. The three in the
// middle are the arithmetic of github.com/platinummonkey/go-concurrency-limits (after Netflix' concurrency-limits). What is
// around them is ours and the same for all, because none would hold without it:
//
//   - Windows close after at least 100 ms and 20 samples, or after 1 s, or 1.5 latencies if that is more; they are fed as a
//     mean, never as a minimum. On its first way up the limit doubles as soon as 50 samples show clearly that throughput
//     follows: 20 to 160 takes some 0.2 s.
//   - The limit moves only by saturated windows, or down by slow ones: nothing shows that more would be good while less is
//     wanted. Bursts of slow work are the exception: they are over before a window is saturated. There it doubles while somebody
//     is turned away and work takes no longer than usual, and goes back if twice as much takes longer.
//   - Drops take half of their share off the limit once they exceed a tenth of the samples. A window in which all failed
//     counts like any other.
//   - The limit doubles while it is used up, throughput follows and latency does not: Gradient2 alone needs 135 windows from
//     20 to 128, or from the floor back up.
//   - The baseline is measured in dips, every 8 s or more while saturation lasts, and when latency has not been explained by
//     the limit for half a second. Baselines of the library follow overload, until the limit limits nothing.
//   - A dip goes no lower than 0.4 of the limit before it, and on from there only if latency fell with the limit. A burst on
//     an idle process makes everything slow for a moment and throughput low: a limit that follows at once falls to the floor.
//   - The library never sees a time of 0, and an estimate outside [Min, Max] makes it start anew.
//
// [Cap] turns a health pressure into a limit beside the estimate.
//
// # Invariants
//
//   - Min ≤ Limit ≤ Max, always. The cap never goes below the floor it is given.
//   - The same samples at the same times give the same limits: there is no clock, no lock, no goroutine and no randomness.
//   - Nothing that is not a finite number reaches the arithmetic.
//
// # Measured
//
// go run ./bench bars plays the gate as it serves, with a line of max_wait 200 ms, in front of 4, 16 and 128 slots of 20 ms,
// fixed and exponential, for clients that stay 250 ms; medians of nine seeds. At 1.2 to 10 times the load at least 0.97 of the
// capacity is served in time by 16 and 128 slots from the third second on and 0.95 by 4, and 0.95 by 128 slots from the second
// second on; half of the admitted are answered within twice the service time (4 slots: 3.5 times), and under 1 % late. After ten times the
// load all is well within a second. With 0.3 of the slots or of the speed for five seconds, and afterwards, at least 0.9 of what
// is possible is served after two seconds (4 slots: 0.8 after four). At 0.9 of the capacity with a hiccup of 100 ms every 10 s
// fewer than 0.5 % are refused, the cold start included.
//
// # Known to be weak
//
// Simulated with fixed and exponential service times and 1.2 to 10 times the load, 4, 16 and 128 slots are used to 97.5 %
// and more by knee in the median. In a day at 1.2 times the load the hourly means of the limit lie within 5 % of each other, for 4 and for
// 16 slots, and 0.98 of the capacity and more is served. Beyond that:
//
// AIMD looks at failures only. A backend that answers late instead of failing sees its limit grow to Max, one per window:
// with 4 slots, twice the load and clients that wait 250 ms two of three answers are late within ten seconds. Give it a Max that
// means something. Vegas moves by one per window below 100, so that a backend of which most slots went and came back is at
// 0.87 of its capacity for some seconds. Gradient2 multiplies the noise of latency: its limit for 4 slots wanders between 4
// and 7 from hour to hour, and after a burst on an idle process a large backend is at 0.84 for two seconds.
//
// With 4 slots and service times that vary nothing is steady: of what is left when most slots go, a tenth is lost for some
// seconds, and of a hiccup a percent of the requests is refused.
//
// Bursts need some: of a hundred requests of a second each at once, half a minute apart, four of five are turned away at first, and
// hardly any after ten to twenty bursts if there is room behind. Where times vary and there is not, trials that chance has let pass
// leave two or three at once for a slot. Bursts that run into one another are overload that lasts.
//
// A mix of quick and slow routes has one baseline, their mean; when the mix changes, the limit is off until the next dip. At
// the floor, and where a dip would be hardly lower than the limit, there are no dips, so a backend with fewer slots than Min
// is never seen without its queue; with Min 1 a backend of one slot that varies may do half of what it could for a while.
// Where service times have a very long tail the mean of 50 samples is a poor baseline (with a coefficient of variation of 2
// expect 0.9 to 0.98). An attempt at doubling that fails costs some tenths of a second at too high a limit. While all
// permits are held longer than the work takes, the limit is held, not raised: throughput is low for as long as that lasts.
//
// Several processes in front of one backend know nothing of each other. Each sees the queue of the others in its dips, takes it for
// the service, and makes room for it: with k of them that share the load a dip takes a k-th of a quarter off what is inside. When a
// backend of 16 slots becomes five times slower, two estimators together let some 100 in at once where one lets 26, and three 300. Where
// clients are patient and the overload lasts there is no end to it: of four estimators in front of 128 slots each is at Max within
// minutes. As much is done as before, but it takes as long as the queue is, and answers are late. A Max of 1.5 times each one's share of
// the slots keeps them together where one would be; it has to be set. What would help without it are dips that all take at once, such
// as at multiples of 8 s of the wall clock, if no other dip may raise the baseline. That was tried: it held two to five gates of lasting
// overload together, less so while the service is slower, and one gate alone then needs up to 8 s to learn that its service has become slower.
//
// # Not here
//
// Who waits and who is refused (packages queue and shed), and what counts as a sample: cancelled and streamed work must not
// be fed.
package concurrency
