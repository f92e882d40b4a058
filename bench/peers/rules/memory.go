package main

import (
	"fmt"
	"runtime"
)

// bytesPerKey returns what the heap holds for each of n distinct keys after a collection. The names are made while they are
// stored, so that a store that keeps them pays for them, and one that keeps a hash does not.
func bytesPerKey(c contender, n int) (float64, error) {
	take, closing, err := c.open(single)
	if err != nil {
		return 0, err
	}
	before := heap()
	for i := range n {
		if !take(key(i)) {
			return 0, fmt.Errorf("key %d of %d was denied its first request", i, n)
		}
	}
	after := heap()
	for i := 0; i < n; i += 1 + n/1000 {
		if take(key(i)) {
			return 0, fmt.Errorf("key %d of %d was forgotten", i, n)
		}
	}
	closing()
	if after < before {
		return 0, nil
	}
	return float64(after-before) / float64(n), nil
}

// heap returns how many bytes are in use after a collection. Two, because what has a finalizer goes with the second.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
