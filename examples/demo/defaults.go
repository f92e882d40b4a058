package main

import (
	"time"

	"github.com/spillway-go/spillway/examples/demo/internal/web"
	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/concurrency"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/configfile"
)

// The features that the pumpkin can switch off.
const (
	featureReports = "reports"
	featureOrders  = "orders"
)

// pumpkinPath is where clients poll. The poll is no business of the shedder's at all: it must work while nothing else does.
const pumpkinPath = "/pumpkin.json"

// widgetPath is where pages load <pumpkin-banner> from. The demo's own page shows the document in its own way.
const widgetPath = "/pumpkin.js"

// program is the demo's own configuration; a file is laid over it. It is what an app would write down: who may do how much,
// what routes there are, how long one may wait.
func program() configfile.Config {
	return configfile.Config{
		Shed: shed.Config{
			Limits: []shed.Limit{
				{
					Name: "per-client",
					Rule: limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(5)},
				},
				{
					Name:   "smooth-orders",
					Rule:   limits.LeakyBucket{Capacity: 40, Leak: limits.PerSecond(20)},
					Excess: shed.Delay,
					Routes: []string{"orders"},
				},
			},
			Routes: append([]shed.Route{
				{Name: "items", Match: "GET /api/items"},
				{Name: "report", Match: "GET /api/report", Cost: 5, Priority: shed.Sheddable, Feature: featureReports},
				{Name: "orders", Match: "POST /api/orders", Feature: featureOrders},
				{Name: "events", Match: "GET /api/events", LongLived: 100},
			}, exemptRoutes()...),
			Concurrency: concurrency.Config{Algorithm: concurrency.Knee, Min: 4, Max: 500, Initial: 20},
			// 80 waiting are 100 ms of work: who could not start within 100 ms does not wait in vain.
			Queue: shed.Queue{Capacity: 80, MaxWait: 100 * time.Millisecond},
			// Short, so that pressure is there to see soon after the start.
			Health: health.Config{WarmUp: 5 * time.Second},
		},
		Pumpkin: configfile.Pumpkin{PollAfter: 5 * time.Second, AdminListen: configfile.DefaultAdminListen},
	}
}

// exemptRoutes are what is never charged, queued or shed by load: the probe, the metrics, and the live page with what it
// asks for, or nobody could watch an overload. A configuration file cannot take them away.
func exemptRoutes() []shed.Route {
	routes := []shed.Route{
		{Name: "healthz", Match: "GET /healthz", Exempt: true},
		{Name: "metrics", Match: "GET /metrics", Exempt: true},
		{Name: "demo-page", Match: "GET /{$}", Exempt: true},
		{Name: "demo-icon", Match: "GET " + web.Icon, Exempt: true},
		{Name: "demo-assets", Match: "GET /assets/", Exempt: true},
		{Name: "demo-stats", Match: "GET /demo/stats", Exempt: true},
		{Name: "pumpkin", Match: pumpkinPath, Exempt: true},
		{Name: "pumpkin-widget", Match: "GET " + widgetPath, Exempt: true},
	}
	for _, button := range buttons {
		routes = append(routes, shed.Route{Name: "demo-" + button, Match: "POST /demo/" + button, Exempt: true})
	}
	return routes
}
