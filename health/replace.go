package health

import "time"

// Warmed returns c for a Sampler that takes the place of another in a process that has been running for so long: what is left
// of the warm-up, or none.
func (c Config) Warmed(running time.Duration) Config {
	whole := c.WarmUp
	if whole == 0 {
		whole = defaultWarmUp
	}
	if c.WarmUp = whole - running; c.WarmUp <= 0 {
		c.WarmUp = -1
	}
	return c
}
