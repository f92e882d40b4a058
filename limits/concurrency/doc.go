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
// [Estimator] uses Gradient2 of github.com/platinummonkey/go-concurrency-limits (after Netflix' concurrency-limits) for its
// arithmetic. With the window's mean latency R and the baseline S it does, once per window,
//
//	L ← 0.8·L + 0.2·(L·clamp(1.2·S/R, 0.5, 1) + q)    q = min(4, max(1, L/3))
//
// which rests at 1.2·N + q for a backend of N slots: enough to keep them busy, and little of a queue. Everything else is
// ours, because the library would fail without it:
//
//   - Windows close after at least 100 ms and 20 samples, or after 1 s; they are fed as a mean, never as a minimum.
//   - The limit moves only by saturated windows, or down by slow ones: nothing shows that more would be good while less is
//     wanted.
//   - Drops, which Gradient2 ignores, take half of their share off the limit once they exceed a tenth of the samples. A window
//     in which all failed counts like any other.
//   - The limit doubles while it is used up, throughput follows and latency does not: the gradient alone needs 135 windows
//     from 20 to 128, or from the floor back up.
//   - The baseline is measured in dips, every 8 s or more while saturated, and at once when latency is not explained by the
//     limit. The library's own baseline follows overload, until the limit limits nothing.
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
// # Known to be weak
//
// Simulated with exponential service times and 1.2 to 10 times the load, 4 to 128 slots are used to 98 % and more in the
// median, and six hours of it move nothing. Beyond that:
//
// A mix of quick and slow routes has one baseline, their mean; when the mix changes, the limit is off until the next dip. At
// the floor, and where a dip would be hardly lower than the limit, there are no dips, so a backend with fewer slots than Min
// is never seen without its queue; with Min 1 a backend of one slot that varies may do half of what it could for a while.
// Where service times have a very long tail the mean of 50 samples is a poor baseline (with a coefficient of variation of 2
// expect 0.9 to 0.98). An attempt at doubling that fails costs some tenths of a second at too high a limit.
//
// # Not here
//
// Who waits and who is refused (packages queue and shed), and what counts as a sample: cancelled and streamed work must not
// be fed.
package concurrency
