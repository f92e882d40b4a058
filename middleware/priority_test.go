package middleware_test

import (
	"testing"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// The Priority field (RFC 9218) is a client's wish for the order of what it gets. It says nothing about who is shed first, or all would
// say that they are urgent.
func TestAClientsOwnPriorityCountsForNothing(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		var seen []shed.Priority
		s := open(t, 1, func(c *shed.Config) {
			c.Routes = []shed.Route{{Name: "all", Match: "/", Priority: shed.Sheddable}}
			c.Observer = shed.ObserverFunc(func(e shed.Event) { seen = append(seen, e.Priority) })
		})
		call(a.wrap(t, middleware.Config{Shedder: s}, ok), "GET", "/", "192.0.2.1:1", "Priority", "u=0", "X-Priority", "critical_plus")
		if len(seen) != 2 || seen[0] != shed.Sheddable || seen[1] != shed.Sheddable {
			t.Errorf("admitted and finished as %v", seen)
		}
	})
}
