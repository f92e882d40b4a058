package configfile

import (
	"fmt"

	"github.com/spillway-go/spillway/limits/concurrency"
)

const mostAtOnce = 1_000_000

var algorithms = []string{"gradient2", "fixed"}

var concurrencyShape = shape{keys: []key{
	{name: "algorithm", kind: kindWord, words: algorithms, later: map[string]string{
		"knee": "use gradient2", "vegas": "use gradient2", "aimd": "use gradient2",
	}},
	{name: "min", kind: kindInteger, min: 1, max: mostAtOnce},
	{name: "max", kind: kindInteger, min: 1, max: mostAtOnce},
	{name: "initial", kind: kindInteger, min: 1, max: mostAtOnce},
}}

// The bounds that concurrency.Config means by zero.
const (
	defaultMin = 4
	defaultMax = 500
)

// concurrencySection reads the section concurrency. Bounds that contradict each other are mistakes, also where one of them is
// the default: a limit that is quietly moved is not the one that was asked for.
func concurrencySection(o object) concurrency.Config {
	var c concurrency.Config
	if i, ok := o.word("algorithm"); ok {
		c.Algorithm = algorithms[i]
	}
	c.Min, c.Max, c.Initial = o.count("min"), o.count("max"), o.count("initial")
	low, high := c.Min, c.Max
	if c.Algorithm != "fixed" { // a fixed limit is bounded only by what is written
		low, high = orDefault(low, defaultMin), orDefault(high, defaultMax)
	}
	switch {
	case low > 0 && high > 0 && low > high:
		o.first("max", "min").fail(fmt.Sprintf("min %s is above max %s", told(c.Min, low), told(c.Max, high)), "set both, min at most max")
	case c.Initial == 0:
	case c.Initial < low:
		o.fields["initial"].fail(fmt.Sprintf("%d is below min %s", c.Initial, told(c.Min, low)), fmt.Sprintf("use %d or more, or lower min", low))
	case high > 0 && c.Initial > high:
		o.fields["initial"].fail(fmt.Sprintf("%d is above max %s", c.Initial, told(c.Max, high)), fmt.Sprintf("use %d or less, or raise max", high))
	}
	return c
}

// count returns the number under a key, or 0.
func (o object) count(name string) int {
	n, _ := o.integer(name)
	return int(n)
}

// first returns the value of the first of the keys that is there.
func (o object) first(names ...string) value {
	for _, name := range names {
		if v, there := o.fields[name]; there {
			return v
		}
	}
	return o.value
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// told prints a bound, and says so if it is the default.
func told(written, used int) string {
	if written == 0 {
		return fmt.Sprintf("%d (the default)", used)
	}
	return fmt.Sprint(used)
}
