//go:build race

package concurrency

// seeds is less with the race detector, which makes the simulations ten times as slow and has nothing to find in them: they
// are one goroutine.
const seeds = 3

// slack is what a median of three may be off by, where six runs more would settle it.
const slack = 0.02
