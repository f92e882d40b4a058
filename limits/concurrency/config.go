package concurrency

import (
	"fmt"
	"slices"
	"strings"
)

// The algorithms that exist. Config.Algorithm takes these words.
const (
	Knee      = "knee"      // throughput times the latency without queueing, and a reserve
	Gradient2 = "gradient2" // latency without queueing over latency now, from go-concurrency-limits
	Vegas     = "vegas"     // how many wait inside the backend, from go-concurrency-limits
	AIMD      = "aimd"      // one more until too much is dropped, from go-concurrency-limits
	Fixed     = "fixed"     // stays at Initial
)

// Algorithms lists the words that Config.Algorithm takes; the first is the default.
func Algorithms() []string { return []string{Knee, Gradient2, Vegas, AIMD, Fixed} }

// Defaults of Config.
const (
	DefaultMin     = 4
	DefaultMax     = 500
	DefaultInitial = 20
)

// Config chooses how the limit on concurrent work is found. The zero value is Knee between 4 and 500, starting at 20.
type Config struct {
	// Algorithm is one of Algorithms; empty means knee.
	Algorithm string
	// Min and Max bound the limit; zero means 4 and 500. A fixed limit is Initial.
	Min, Max int
	// Initial is where the limit starts; zero means 20, moved into [Min, Max]. For a fixed limit, bounds that are zero give
	// way to Initial: a fixed limit of 2 or of 1000 needs nothing else.
	Initial int
}

// resolve returns c with its zero fields filled, or says what is wrong with it.
func (c Config) resolve() (Config, error) {
	if c.Algorithm == "" {
		c.Algorithm = Knee
	}
	switch {
	case !slices.Contains(Algorithms(), c.Algorithm):
		return c, fmt.Errorf("concurrency: unknown algorithm %q; use one of %s", c.Algorithm, strings.Join(Algorithms(), ", "))
	case c.Min < 0:
		return c, fmt.Errorf("concurrency: min is %d; it must be at least 1, or 0 for the default of %d", c.Min, DefaultMin)
	case c.Max < 0:
		return c, fmt.Errorf("concurrency: max is %d; it must be at least 1, or 0 for the default of %d", c.Max, DefaultMax)
	case c.Initial < 0:
		return c, fmt.Errorf("concurrency: initial is %d; it must be at least 1, or 0 for the default of %d", c.Initial, DefaultInitial)
	}
	if c.Initial == 0 {
		c.Initial = DefaultInitial
	}
	low, high := DefaultMin, DefaultMax
	if c.Algorithm == Fixed {
		low, high = min(low, c.Initial), max(high, c.Initial)
	}
	if c.Min == 0 && c.Max == 0 {
		c.Min, c.Max = low, high
	}
	if c.Min == 0 {
		c.Min = min(low, c.Max) // who only sets a max of 2 means it
	}
	if c.Max == 0 {
		c.Max = high
	}
	if c.Min > c.Max {
		return c, fmt.Errorf("concurrency: min %d is above max %d; lower min or raise max (which is %d unless set)", c.Min, c.Max, DefaultMax)
	}
	c.Initial = min(max(c.Initial, c.Min), c.Max)
	return c, nil
}
