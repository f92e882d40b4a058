package configfile_test

import (
	"fmt"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/configfile"
)

// A file is laid over what the program says itself: the limits are the file's alone, the exempt route stays.
func ExampleParse() {
	program := configfile.Config{Shed: shed.Config{
		Limits: []shed.Limit{{Name: "built-in", Rule: limits.TokenBucket{Capacity: 1, Refill: limits.PerSecond(1)}}},
		Routes: []shed.Route{{Name: "probes", Match: "GET /healthz", Exempt: true}},
		Queue:  shed.Queue{Capacity: 80},
	}}
	c, err := configfile.Parse("service.yaml", []byte(`
limits:
  - name: per-client
    token_bucket: {capacity: 20, refill: 5/s}
routes:
  - {name: reports, match: "POST /reports", cost: 5, priority: sheddable}
`), program)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range c.Shed.Limits {
		fmt.Println("limit", l.Name, l.Rule)
	}
	for _, r := range c.Shed.Routes {
		fmt.Println("route", r.Name, r.Match, r.Priority, r.Exempt)
	}
	fmt.Println("queue", c.Shed.Queue.Capacity)
	// Output:
	// limit per-client token_bucket: {capacity: 20, refill: 5/s}
	// route reports POST /reports sheddable false
	// route probes GET /healthz critical true
	// queue 80
}

// All mistakes are reported together, each with its line and the way out, and then there is no configuration.
func ExampleParse_mistakes() {
	_, err := configfile.Parse("service.yaml", []byte(`
limits:
  - name: per-client
    token_bucket: {capacity: -20, refill: 5/s}
  - name: site
    burst: {soft: 100/s, hard: 600/min}
queue: {capcity: 200}
`), configfile.Config{})
	fmt.Println(err)
	// Output:
	// service.yaml:4: limits[0].token_bucket.capacity: -20 is out of range; use 0 to 9007199254740992
	// service.yaml:6: limits[1].burst: soft 100/s and hard 600/min have different periods; write both as N/s, for rates are not converted
	// service.yaml:7: queue.capcity: unknown key; did you mean capacity?
}

// A file that is not there is one line too; programs print it and exit with status 2.
func ExampleLoad() {
	_, err := configfile.Load("absent.yaml", configfile.Config{})
	fmt.Println(err)
	// Output:
	// absent.yaml: there is no such file; check the path, or run without a file
}
