package main

import (
	"math/bits"
	"time"
)

// waits is how long callers waited, counted in classes of which each is at most a thirty-second wider than the one before.
type waits struct {
	counts [64 * fine]int64
	n      int64
}

const fine = 32

// class returns which class a wait is in.
func class(d time.Duration) int {
	ns := uint64(max(d, 1))
	high := bits.Len64(ns) - 1 // ns is between 2^high and twice that
	if high < 5 {
		return int(ns)
	}
	return (high-4)*fine + int(ns>>(high-5)) - fine
}

// least returns the shortest wait of a class.
func least(class int) time.Duration {
	if class < fine {
		return time.Duration(class)
	}
	high := class/fine + 4
	return time.Duration(fine+class%fine) << (high - 5)
}

func (w *waits) add(d time.Duration) {
	w.counts[class(d)]++
	w.n++
}

func (w *waits) merge(other *waits) {
	for i, n := range other.counts {
		w.counts[i] += n
	}
	w.n += other.n
}

// at returns the wait that a share of all did not exceed, to the class.
func (w *waits) at(share float64) time.Duration {
	left := int64(share * float64(w.n))
	for i, n := range w.counts {
		if left -= n; left < 0 {
			return least(i)
		}
	}
	return 0
}
