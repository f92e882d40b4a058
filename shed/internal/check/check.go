// Package check answers the question: does what a configuration says mean anything? It knows of values that are well formed and
// still can never do what they are there for: patterns that no request matches, headers that carry no key, networks that are the
// whole Internet. The configuration file and the configuration in Go ask it the same.
//
// Each answer is in words that go on from the value, and empty where there is nothing to say.
package check
