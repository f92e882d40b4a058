package measure

import "fmt"

// Check tells whether a Run that was read from a file hangs together, so that whoever computes with it need not look.
func (r *Run) Check() error {
	if r.Series.Window < 0 || len(r.Series.Points) > 0 && r.Series.Window == 0 {
		return fmt.Errorf("series: a window of %d µs", r.Series.Window)
	}
	if r.Fine.Window < 0 || len(r.Fine.Asked) != len(r.Fine.OK) || len(r.Fine.Asked) > 0 && r.Fine.Window == 0 {
		return fmt.Errorf("fine: a window of %d µs, %d and %d counts", r.Fine.Window, len(r.Fine.Asked), len(r.Fine.OK))
	}
	for i := range r.Phases {
		ph := &r.Phases[i]
		if ph.Start < 0 || ph.End < ph.Start || len(ph.Populations) != len(r.Phases[0].Populations) {
			return fmt.Errorf("phase %q: from %d to %d µs with %d populations", ph.Name, ph.Start, ph.End, len(ph.Populations))
		}
	}
	for i, c := range r.Clients {
		if len(r.Phases) == 0 || c.Population < 0 || c.Population >= len(r.Phases[0].Populations) || len(c.Asked) != len(r.Phases) || len(c.OK) != len(r.Phases) {
			return fmt.Errorf("client %d: population %d, %d and %d counts for %d phases", i, c.Population, len(c.Asked), len(c.OK), len(r.Phases))
		}
	}
	return nil
}
