// Package judge answers the question: did it pass? It computes the metrics that scenarios name from what was measured, and
// compares them with the bounds.
//
// # Metrics
//
//	goodput         ok / min(asked, C), window by window
//	success         ok / asked
//	drops           refused, timed out and failed, as a share of the attempts
//	timeouts        timed out, as a share of the attempts
//	p50, p99        ms, of the admitted
//	p99_deadline    p99 of the admitted / D
//	p99_ratio       p99 of the admitted in the phase / in the phase "than"
//	success_ratio   success in the phase / in the phase "than"
//	goodput_levels  goodput at the level / at "than_level"
//	first_deadline  ok / (D · C)
//	recovery        seconds from the start of the phase to the first of 3 windows with success ≥ 0.95 × and p99 ≤ 1.2 × of
//	                before; the rest of the run when it never came. Before is the phase "than", or the first that is neither
//	                warm-up nor trigger
//	convergence     seconds from the start of the phase until a second begins in which goodput is ≥ 0.9
//	amplification   attempts / asked
//	calls           attempts per second in the phase / in the phase "than"
//	wasted          work for answers that came too late or to nobody / all work of the app
//	jain            fairness between clients: Jain's index of ok / max-min share
//	share           ok / max-min share of the populations "of" together
//	order           the smallest lead in success of each population in "of" over the next one
//	hysteresis      the largest difference of goodput at the same load between the phase and, mirrored, the phase "than"
//	stays_down      the longest time in seconds with success < 0.5 from the start of the phase on
//	slope           the change of p99 from the first to the last quarter of the run / p99
//	NAME            any figure that the run itself notes, such as in_flight_end
//
// A metric that compares says so in bounds that make sense for the worst level. Of several seeds the median counts, or
// the worst where the row says every.
package judge
