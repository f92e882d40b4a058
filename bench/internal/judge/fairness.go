package judge

import (
	"slices"

	"github.com/spillway-go/spillway/bench/internal/measure"
)

// Jain is the index of fairness of x: 1 when all are equal, 1/n when one has all, and 1 when nobody has anything.
func Jain(x []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum += v
		squares += v * v
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(x)) * squares)
}

// MaxMin shares capacity out among demands: who wants less than an equal share gets what it wants, and the rest is shared
// out among the others in the same way.
func MaxMin(demands []float64, capacity float64) []float64 {
	order := make([]int, len(demands))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case demands[a] < demands[b]:
			return -1
		case demands[a] > demands[b]:
			return 1
		}
		return 0
	})
	shares, left := make([]float64, len(demands)), capacity
	for n, i := range order {
		shares[i] = min(demands[i], left/float64(len(demands)-n))
		left -= shares[i]
	}
	return shares
}

// Bar is what one client got of what was due to it.
type Bar struct {
	Population int
	Asked, OK  float64 // requests
	Share      float64 // requests that max-min fairness would have given it
}

// Bars returns every client that asked for something in the picked part.
func Bars(r *measure.Run, p measure.Pick) []Bar {
	if len(r.Phases) == 0 {
		return nil
	}
	var bars []Bar
	var demands []float64
	length := 0.0
	for i := range r.Clients {
		c := &r.Clients[i]
		pop := &r.Phases[0].Populations[c.Population]
		bar := Bar{Population: c.Population}
		for n := range r.Phases {
			if ph := &r.Phases[n]; ph.Name == p.Phase || p.Phase == "" && !ph.Warmup {
				bar.Asked += float64(c.Asked[n])
				bar.OK += float64(c.OK[n])
			}
		}
		if bar.Asked > 0 {
			bars, demands = append(bars, bar), append(demands, bar.Asked*pop.Weight)
		}
	}
	for _, ph := range r.Picked(p) {
		length += (ph.End - ph.Start).Duration().Seconds()
	}
	for i, share := range MaxMin(demands, r.Capacity*length) {
		bars[i].Share = share / r.Phases[0].Populations[bars[i].Population].Weight
	}
	return bars
}

// fairness is Jain's index over the picked clients.
func fairness(r *measure.Run, p measure.Pick) float64 {
	var x []float64
	for _, b := range Bars(r, p) {
		if p.Has(r.Phases[0].Populations[b.Population].Name) && b.Share > 0 {
			x = append(x, b.OK/b.Share)
		}
	}
	return Jain(x)
}

// share is what the picked populations got of what was due to them.
func share(r *measure.Run, p measure.Pick) float64 {
	got, due := 0.0, 0.0
	for _, b := range Bars(r, p) {
		if p.Has(r.Phases[0].Populations[b.Population].Name) {
			got += b.OK
			due += b.Share
		}
	}
	if due == 0 {
		return 1
	}
	return got / due
}
