//go:build !race

package concurrency

// seeds is how many runs a median is taken of.
const seeds = 9

// slack is what the median may be off by.
const slack = 0
