// Package gates puts the overload controls that Go services use behind one interface, each as its documentation shows it and
// with its own defaults, so that they can be compared in front of the same backend.
//
// What differs is said where it is set: who waits gets at most MaxWait wherever the library knows such a bound, and work
// that ends too late is told to each library in its own words.
package gates
