package configfile

import (
	"time"

	"github.com/spillway-go/spillway/shed"
)

var slowWords = []string{"end", "allow"}

var bodiesShape = shape{keys: []key{
	{name: "min_rate", kind: kindRate},
	{name: "grace", kind: kindDuration, min: int64(100 * time.Millisecond), max: longestWait},
	{name: "gather", kind: kindInteger, min: 0, max: 1 << 20},
	{name: "slow", kind: kindWord, words: slowWords},
}}

// bodies reads the section bodies.
func bodies(o object) shed.Bodies {
	o.bytes = true
	b := shed.Bodies{Grace: o.duration("grace")}
	b.MinRate, _ = o.rate("min_rate")
	if n, ok := o.integer("gather"); ok {
		b.Gather = int(n)
		if n == 0 {
			b.Gather = -1 // in the file 0 means what it says; in shed.Bodies the zero value is the default
		}
	}
	i, ok := o.word("slow")
	b.Unwatched = ok && slowWords[i] == "allow"
	return b
}
