package main

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/configfile"
)

// table finds out where a request goes. It is made of one configuration and never changed; a reload puts another in its place.
type table struct {
	mux     *http.ServeMux // of the routes' patterns; nothing is served from it
	targets map[string]target
	other   target
}

// target is where the requests of a route go.
type target struct {
	route     string
	upstream  *url.URL // nil: nowhere
	longLived bool
}

// ServeHTTP is never called: a target is a handler only to be found in the mux.
func (target) ServeHTTP(http.ResponseWriter, *http.Request) {}

// newTable makes the table of a configuration that Parse or a Shedder has found in order.
func newTable(routes []shed.Route, upstreams map[string]*url.URL) *table {
	fallback := upstreams[configfile.DefaultUpstream]
	t := &table{mux: http.NewServeMux(), targets: map[string]target{}, other: target{upstream: fallback}}
	for _, r := range routes {
		if r.Match == "" {
			continue
		}
		to := target{route: r.Name, upstream: upstreams[r.Name], longLived: r.LongLived > 0}
		if to.upstream == nil {
			to.upstream = fallback
		}
		t.mux.Handle(r.Match, to)
		t.targets[r.Match] = to
	}
	return t
}

// find goes by the pattern, so that a path that is not in canonical form goes where its canonical form goes, as it is: what
// is behind decides what it means.
func (t *table) find(r *http.Request) target {
	if _, pattern := t.mux.Handler(r); pattern != "" {
		if to, ok := t.targets[pattern]; ok {
			return to
		}
	}
	return t.other
}

// lines says where everything goes, one line for each upstream that is named.
func (t *table) lines() []string {
	var all []string
	for _, to := range t.targets {
		if to.upstream != nil && to.upstream != t.other.upstream {
			all = append(all, fmt.Sprintf("route %s goes to %s", to.route, to.upstream))
		}
	}
	slices.Sort(all)
	switch {
	case t.other.upstream != nil:
		all = append(all, fmt.Sprintf("everything else goes to %s", t.other.upstream))
	case len(all) > 0:
		all = append(all, "everything else goes nowhere and is answered 404")
	}
	return all
}
