package measure

import "slices"

// Pick names a part of a Run: one phase, or "" for all but warm-up, and populations, or none for all.
type Pick struct {
	Phase string
	Of    []string
}

// Sum is what happened in the picked part.
type Sum struct {
	Asked, Attempts int64
	Counts          [outcomes]int64
	Admitted        Latency // ok, late and timeout
	Work, Wasted    Micros  // of the phases, whatever the populations
	Length          Micros
}

// Picked returns the picked phases.
func (r *Run) Picked(p Pick) []*Phase {
	var picked []*Phase
	for i := range r.Phases {
		if ph := &r.Phases[i]; ph.Name == p.Phase || p.Phase == "" && !ph.Warmup {
			picked = append(picked, ph)
		}
	}
	return picked
}

// Has reports whether the population with that name is picked.
func (p Pick) Has(name string) bool { return len(p.Of) == 0 || slices.Contains(p.Of, name) }

// Sum adds up the picked part.
func (r *Run) Sum(p Pick) *Sum {
	s := new(Sum)
	for _, ph := range r.Picked(p) {
		s.Work += ph.Work
		s.Wasted += ph.Wasted
		s.Length += ph.End - ph.Start
		for i := range ph.Populations {
			if pop := &ph.Populations[i]; p.Has(pop.Name) {
				s.add(pop)
			}
		}
	}
	return s
}

func (s *Sum) add(p *Population) {
	s.Asked += p.Asked
	s.Attempts += p.Attempts
	for o := range p.Counts {
		s.Counts[o] += p.Counts[o]
	}
	for _, o := range []Outcome{OK, Late, Timeout} {
		s.Admitted.Merge(&p.Latency[o])
	}
}

// Success is the share of the requests that were answered in time; 1 when there were none.
func (s *Sum) Success() float64 {
	if s.Asked == 0 {
		return 1
	}
	return float64(s.Counts[OK]) / float64(s.Asked)
}

// Windows returns the points of the series in [start, end).
func (s *Series) Windows(start, end Micros) []Point {
	if s.Window <= 0 {
		return nil
	}
	n := Micros(len(s.Points))
	from, to := min((start+s.Window-1)/s.Window, n), min(end/s.Window, n)
	return s.Points[from:max(from, to)]
}
