package queue

// Resize changes how many waiters fit. Those who wait stay, also where there are more than fit now; until there are fewer,
// arrivals get in only in somebody's place. With a capacity of 0 or less nobody else can wait.
func (f *Fair) Resize(capacity int) {
	f.cap = max(capacity, 0)
	for i := range f.tiers {
		f.tiers[i].bound = f.cap
	}
}
