// Package stopwatch answers the question: what does one operation of each of several contenders cost?
//
// All contenders run in one process, interleaved: each round gives every contender one short run, in an order that
// rotates, so that whatever else the machine does in the meantime falls on all of them. A figure is the median over the
// rounds, and comes with how far its middle half spreads.
//
// On one core the processor time of the process is counted, which is not stretched by neighbours; on several it is the
// time on the wall, because what contention costs is mostly waiting.
package stopwatch
