package concurrency

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"
)

var long = flag.Bool("long", false, "run the whole matrix of simulations, all algorithms and a day of overload; takes minutes")

// medianOf returns the median of what the seeds give.
func medianOf(seeds int, of func(seed uint64) float64) float64 {
	all := make([]float64, 0, seeds)
	for seed := range seeds {
		all = append(all, of(uint64(seed+1)))
	}
	slices.Sort(all)
	return all[seeds/2]
}

// TestCompareTheAlgorithms prints the table by which the default was chosen.
func TestCompareTheAlgorithms(t *testing.T) {
	if !*long {
		t.Skip("only with -long")
	}
	algorithms := []string{Knee, Gradient2, Vegas, AIMD}
	for _, exponential := range []bool{false, true} {
		for _, slots := range []int{4, 16, 128} {
			for _, load := range []float64{1.2, 2, 5, 10} {
				line := fmt.Sprintf("exp %-5v N %-3d %4gx ", exponential, slots, load)
				for _, name := range algorithms {
					p50s, late, second := []float64{}, 0.0, 0.0
					n := 9.0
					good := medianOf(9, func(seed uint64) float64 {
						s := newSim(build(t, Config{Algorithm: name}), slots, load, exponential, seed).run(10 * time.Second)
						p50s = append(p50s, s.median().Seconds()*1000)
						l, all := 0, 0
						for _, x := range s.seconds[2:] {
							l += x.late
							all += x.good + x.late
						}
						late += float64(l) / float64(all) / n
						second += s.goodput(1, 2) / n
						return s.goodput(2, 10)
					})
					line += fmt.Sprintf("| %s %.3f p50 %3.0f late %.1f%% 2nd %.2f ", name[:2], good, medianFloat(p50s), 100*late, second)
				}
				fmt.Println(line)
			}
		}
	}
}

func medianFloat(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
