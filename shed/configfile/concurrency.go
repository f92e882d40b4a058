package configfile

import (
	"cmp"
	"fmt"

	"github.com/spillway-go/spillway/limits/concurrency"
)

const mostAtOnce = 1_000_000

var algorithms = concurrency.Algorithms()

var concurrencyShape = shape{keys: []key{
	{name: "algorithm", kind: kindWord, words: algorithms},
	{name: "min", kind: kindInteger, min: 1, max: mostAtOnce},
	{name: "max", kind: kindInteger, min: 1, max: mostAtOnce},
	{name: "initial", kind: kindInteger, min: 1, max: mostAtOnce},
	{name: "reserve", kind: kindNumber, min: 0, max: 900},
}}

// concurrencySection reads the section concurrency. An initial limit outside the bounds is a mistake, also where the bound
// is the default: a limit that is quietly moved is not the one that was asked for.
func concurrencySection(o object) concurrency.Config {
	c := concurrency.Config{Min: o.count("min"), Max: o.count("max"), Initial: o.count("initial")}
	if i, ok := o.word("algorithm"); ok {
		c.Algorithm = algorithms[i]
	}
	low, high := bounds(c)
	switch {
	case low > high:
		o.first("max", "min").fail(fmt.Sprintf("min %s is above max %s", told(c.Min, low), told(c.Max, high)),
			"set both, min at most max")
	case c.Initial > 0 && c.Initial < low:
		o.fields["initial"].fail(fmt.Sprintf("%d is below min %s", c.Initial, told(c.Min, low)),
			fmt.Sprintf("use %d or more, or set min lower", low))
	case c.Initial > high:
		o.fields["initial"].fail(fmt.Sprintf("%d is above max %s", c.Initial, told(c.Max, high)),
			fmt.Sprintf("use %d or less, or set max higher", high))
	}
	return c
}

// bounds returns the bounds that concurrency.Config means: its defaults give way to a fixed limit, and the lower one to a
// max that is set alone.
func bounds(c concurrency.Config) (low, high int) {
	low, high = concurrency.DefaultMin, concurrency.DefaultMax
	if initial := cmp.Or(c.Initial, concurrency.DefaultInitial); c.Algorithm == concurrency.Fixed {
		low, high = min(low, initial), max(high, initial)
	}
	high = cmp.Or(c.Max, high)
	return cmp.Or(c.Min, min(low, high)), high
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

// told prints a bound, and says so if it is the default.
func told(written, used int) string {
	if written == 0 {
		return fmt.Sprintf("%d (the default)", used)
	}
	return fmt.Sprint(used)
}
