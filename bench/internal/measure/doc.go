// Package measure answers the question: what happened? It turns what became of each request into counts, histograms and
// series of bounded size, however long the run is.
//
// # Words
//
// Every attempt of a request ends in one outcome: ok (answered within the deadline, counted from the scheduled time), late
// (answered after it), shed (429 or 503), timeout (the client gave up) or error. Latencies count from the scheduled time and
// are in µs. The admitted are ok, late and timeout together: fast refusals must not make a percentile look good, nor
// clients that gave up vanish from it. A timeout counts with the time at which the client gave up.
//
// Percentiles are of merged histograms, never merged themselves. Windows go by the scheduled time, not by the time of the
// answer.
package measure
