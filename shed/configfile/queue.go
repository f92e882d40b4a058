package configfile

import (
	"time"

	"github.com/spillway-go/spillway/shed"
)

var queueShape = shape{keys: []key{
	{name: "capacity", kind: kindInteger, min: 0, max: 1_000_000},
	{name: "max_wait", kind: kindDuration, min: int64(time.Millisecond), max: longestWait},
}}

// queue reads the section queue.
func queue(o object) shed.Queue {
	q := shed.Queue{MaxWait: o.duration("max_wait")}
	if n, ok := o.integer("capacity"); ok {
		q.Capacity = int(n)
		if n == 0 {
			q.Capacity = -1 // in the file 0 means what it says; in shed.Queue the zero value is the default
		}
	}
	return q
}
