package main

import (
	"net/http"
	"net/netip"
	"net/url"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/configfile"
)

// What the gateway answers itself, also while the upstream is dead: no business of the Shedder's. They are no exempt routes, so
// that they are in the way of no pattern of a file.
const (
	pumpkinPath = "/pumpkin.json"
	widgetPath  = "/pumpkin.js"
)

// ours tells what the gateway answers itself.
func ours(r *http.Request) bool { return r.URL.Path == pumpkinPath || r.URL.Path == widgetPath }

// program is what holds without a file, and what a file is laid over. Of a service that nobody has described, this much can be said:
// no one address needs more than 50 requests a second for long, and how many it can do at once is found by measuring.
func program(o options) configfile.Config {
	c := configfile.Config{
		Shed: shed.Config{
			Limits: []shed.Limit{
				{Name: "per-ip", Per: shed.PerIP, Rule: limits.TokenBucket{Capacity: 200, Refill: limits.PerSecond(50)}},
			},
		},
		Pumpkin:   configfile.Pumpkin{AdminListen: configfile.DefaultAdminListen},
		Upstreams: map[string]*url.URL{},
		Unaided:   true, // nobody logs in here
	}
	if o.checkListen != "" && o.config == "" { // who asks there is a proxy on this machine
		c.Shed.Clients.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	return c
}
