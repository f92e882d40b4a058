package concurrency

import (
	"fmt"
	"slices"
	"strings"
)

// The algorithms that exist. Config.Algorithm takes these words.
const (
	Gradient2 = "gradient2"
	Fixed     = "fixed"
)

// planned names algorithms that the configuration knows as words but this version does not have.
var planned = []string{"knee", "vegas", "aimd"}

// Defaults of Config.
const (
	DefaultMin     = 4
	DefaultMax     = 500
	DefaultInitial = 20
)

// Config chooses how the limit on concurrent work is found. The zero value is Gradient2 between 4 and 500, starting at 20.
type Config struct {
	// Algorithm is "gradient2" or "fixed"; empty means gradient2.
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
		c.Algorithm = Gradient2
	}
	switch {
	case slices.Contains(planned, c.Algorithm):
		return c, fmt.Errorf("concurrency: algorithm %q is not in this version; use one of %s", c.Algorithm, existing())
	case c.Algorithm != Gradient2 && c.Algorithm != Fixed:
		return c, fmt.Errorf("concurrency: unknown algorithm %q; use one of %s", c.Algorithm, existing())
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

func existing() string { return strings.Join([]string{Gradient2, Fixed}, ", ") }
