// Package compare answers the question: is B better than A, or is it noise? It assumes nothing about distributions: medians,
// intervals from order statistics, and the exact test of Mann and Whitney.
package compare

import (
	"math"
	"slices"
)

// alpha is the risk of calling noise a difference.
const alpha = 0.05

// The fewest runs a side that can show a difference at alpha at all, and the fewest with a finite interval.
const (
	fewestRuns     = 4
	fewestInterval = 6
)

// Summary is the median of some runs with an interval that covers the true median with at least 95 %, if there are enough.
type Summary struct {
	N            int
	Median       float64
	Low, High    float64
	HasIntervals bool
}

// Summarise sorts x and returns its summary.
func Summarise(x []float64) Summary {
	slices.Sort(x)
	s := Summary{N: len(x)}
	if s.N == 0 {
		s.Median = math.NaN()
		return s
	}
	s.Median = (x[(s.N-1)/2] + x[s.N/2]) / 2
	if s.N < fewestInterval {
		return s
	}
	// The interval from the k-th smallest to the k-th largest misses the median with probability 2·P(Binomial(n, 1/2) < k).
	k, tail := 0, 0.0
	for {
		tail += binomial(s.N, k) * math.Pow(0.5, float64(s.N))
		if 2*tail > alpha {
			break
		}
		k++
	}
	if k > 0 {
		s.Low, s.High, s.HasIntervals = x[k-1], x[s.N-k], true
	}
	return s
}

func binomial(n, k int) float64 {
	b := 1.0
	for i := range k {
		b = b * float64(n-i) / float64(i+1)
	}
	return b
}

// MannWhitney returns the two-sided probability that samples of the same distribution differ as much as x and y do. Without
// ties and with up to 50 values a side it is exact, otherwise a normal approximation with the correction for ties.
func MannWhitney(x, y []float64) float64 {
	n, m := len(x), len(y)
	if n == 0 || m == 0 {
		return 1
	}
	u, ties := rankSum(x, y)
	if ties == 0 && n <= 50 && m <= 50 {
		return exact(n, m, u)
	}
	all := float64(n + m)
	mean := float64(n) * float64(m) / 2
	variance := float64(n) * float64(m) / 12 * (all + 1 - ties/(all*(all-1)))
	if variance <= 0 {
		return 1 // all values are the same
	}
	z := max(0, math.Abs(u-mean)-0.5) / math.Sqrt(variance)
	return math.Erfc(z / math.Sqrt2)
}

// rankSum returns U of x, ties counting half, and Σ(t³−t) over groups of ties.
func rankSum(x, y []float64) (u, ties float64) {
	for _, a := range x {
		for _, b := range y {
			switch {
			case a > b:
				u++
			case a == b:
				u += 0.5
			}
		}
	}
	all := slices.Concat(x, y)
	slices.Sort(all)
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j] == all[i] {
			j++
		}
		t := float64(j - i)
		ties += t*t*t - t
		i = j
	}
	return u, ties
}

// exact counts, among all ways in which n and m values can be ordered, those at least as extreme as u.
func exact(n, m int, u float64) float64 {
	// ways[i][v]: orders of i values of x and the y seen so far with U = v, by the recurrence on the largest value.
	ways := make([][]float64, n+1)
	for i := range ways {
		ways[i] = make([]float64, n*m+1)
		ways[i][0] = 1
	}
	for j := 1; j <= m; j++ {
		next := make([][]float64, n+1)
		next[0] = make([]float64, n*m+1)
		next[0][0] = 1
		for i := 1; i <= n; i++ {
			next[i] = make([]float64, n*m+1)
			for v := 0; v <= i*j; v++ {
				next[i][v] = ways[i][v]
				if v >= j {
					next[i][v] += next[i-1][v-j]
				}
			}
		}
		ways = next
	}
	total, tail := 0.0, 0.0
	extreme := min(u, float64(n*m)-u)
	for v, w := range ways[n] {
		total += w
		if float64(v) <= extreme {
			tail += w
		}
	}
	return min(1, 2*tail/total)
}
