// Package tour answers: does the demo do what it says? It plays the main scenarios against a running demo, prints for each
// what a person should see, and checks it.
//
// A check is a pure function of what the load child reported, so checks are tested on reports that are made up, good and
// bad. A check never depends on a lucky moment: lower bounds hold whatever the machine does, and a step whose load came late
// (99 % of its requests within 25 ms, or it is late) says nothing and is repeated, at most three times.
package tour
