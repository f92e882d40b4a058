package main

import (
	"net/netip"
	"net/url"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/configfile"
)

// What the gateway answers itself, also while the upstream is dead.
const (
	pumpkinPath = "/pumpkin.json"
	widgetPath  = "/pumpkin.js"
)

// program is what holds without a file, and what a file is laid over. Of a service that nobody has described, this much can be said:
// no one address needs more than 50 requests a second for long, and how many it can do at once is found by measuring.
func program(o options) configfile.Config {
	c := configfile.Config{
		Shed: shed.Config{
			Limits: []shed.Limit{
				{Name: "per-ip", Per: shed.PerIP, Rule: limits.TokenBucket{Capacity: 200, Refill: limits.PerSecond(50)}},
			},
			Routes: []shed.Route{
				{Name: "pumpkin", Match: pumpkinPath, Exempt: true},
				{Name: "pumpkin-widget", Match: widgetPath, Exempt: true},
			},
		},
		Pumpkin:   configfile.Pumpkin{AdminListen: configfile.DefaultAdminListen},
		Upstreams: map[string]*url.URL{},
	}
	if o.checkListen != "" && o.config == "" { // who asks there is a proxy on this machine
		c.Shed.Clients.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	return c
}
