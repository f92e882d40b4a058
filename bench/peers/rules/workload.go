package main

import (
	"fmt"
	"math/rand/v2"

	mathrand "math/rand"
)

const (
	population = 100_000 // keys of the workloads with many
	orderSize  = 1 << 18 // how many draws of a workload are prepared; a power of two
)

// key returns the name of client i: 14 bytes, as user numbers are.
func key(i int) string { return fmt.Sprintf("user:%09d", i) }

// workload is an order in which keys come. It is drawn before anything is timed and repeats.
type workload []string

var (
	hot     = workload{key(42)}
	zipf    = drawZipf()
	uniform = drawUniform()
)

// drawZipf draws keys of which the k-th most popular comes with a frequency of about k^-1.1, as clients do.
func drawZipf() workload {
	z := mathrand.NewZipf(mathrand.New(mathrand.NewSource(1)), 1.1, 1, population-1)
	w := make(workload, orderSize)
	names := keys(population)
	for i := range w {
		w[i] = names[z.Uint64()]
	}
	return w
}

func drawUniform() workload {
	random := rand.New(rand.NewPCG(1, 2))
	w := make(workload, orderSize)
	names := keys(population)
	for i := range w {
		w[i] = names[random.IntN(population)]
	}
	return w
}

// keys returns n names, in an order in which neighbours in memory do not follow one another.
func keys(n int) []string {
	names := make([]string, n)
	for i, j := range rand.New(rand.NewPCG(3, 4)).Perm(n) {
		names[j] = key(i)
	}
	return names
}

// measurement is one case of the comparison: a rule, the keys that ask, and what they have to be told.
type measurement struct {
	name    string
	short   string
	rule    rule
	keys    workload
	allowed bool
}

var cases = []measurement{
	{"hot key, allowed", "hot allow", wide, hot, true},
	{"hot key, denied", "hot deny", single, hot, false},
	{"100 000 keys, zipf 1.1", "zipf", wide, zipf, true},
	{"100 000 keys, uniform", "uniform", wide, uniform, true},
	{"100 000 keys, uniform, full again when they return", "refilled", refilled, uniform, true},
}

// prepare opens a store for the case and gives every key its balance, so that no run pays for growth.
func (m measurement) prepare(c contender) (*subject, error) {
	take, closing, err := c.open(m.rule)
	if err != nil {
		return nil, err
	}
	s := &subject{take: take, close: closing, keys: m.keys, allowed: m.allowed}
	for _, k := range m.keys {
		take(k)
	}
	return s, nil
}

// subject is a store with a workload.
type subject struct {
	take    take
	close   func()
	keys    workload
	allowed bool
}

// run makes n decisions; workers begin at different places of the workload. It is an error if only one comes out otherwise
// than the case says: it would be another case that was timed.
func (s *subject) run(worker, n int) error {
	given, i, mask := 0, worker*orderSize/2, len(s.keys)-1
	for range n {
		if s.take(s.keys[i&mask]) {
			given++
		}
		i++
	}
	if want := map[bool]int{true: n, false: 0}[s.allowed]; given != want {
		return fmt.Errorf("%d of %d decisions allowed, %d expected", given, n, want)
	}
	return nil
}
