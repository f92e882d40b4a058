// Package sim answers the question: what would happen, in virtual time? It plays a scenario on a heap of events, with the
// same schedule, the same app and the same recorder as a real run, and with the very code of package shed: [shed.Machine].
//
// The result depends on the scenario and the seed alone, to the last bit. What it leaves out is the network, the scheduler
// and the cost of a decision, which all take no time here.
package sim
