package measure

// mostBars is how many clients a Run keeps; of larger populations it keeps cohorts.
const mostBars = 200

// cohorts is into how many groups a population is split that has too many clients to keep each.
const cohorts = 20

// keptClients returns all clients, or cohorts of them where there are too many: the i-th client belongs to cohort i modulo
// the number of cohorts, so that fairness can still be seen.
func (r *Recorder) keptClients() []Client {
	total := 0
	for _, all := range r.clients {
		total += len(all)
	}
	var kept []Client
	for p, all := range r.clients {
		groups := len(all)
		if total > mostBars {
			groups = min(groups, cohorts)
		}
		first := len(kept)
		for range groups {
			kept = append(kept, Client{Population: p, Asked: make([]int64, len(r.ends)), OK: make([]int64, len(r.ends))})
		}
		for i, c := range all {
			for phase := range c.Asked {
				kept[first+i%groups].Asked[phase] += c.Asked[phase]
				kept[first+i%groups].OK[phase] += c.OK[phase]
			}
		}
	}
	return kept
}
