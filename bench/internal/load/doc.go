// Package load answers the question: how does a real target do under this schedule?
//
// The load is open: each request leaves at its scheduled time, whatever became of those before. What cannot leave in time
// leaves late, and its latency counts from the schedule all the same; how late is measured. What would be more than
// MaxInFlight at once is not delayed but dropped and counted. A run in which the generator itself was the bottleneck says
// so and has no verdict.
package load
