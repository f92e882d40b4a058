package edge

import (
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/spillway-go/spillway/shed"
)

// routes finds the configured route of a request by net/http patterns. A ServeMux does the matching, so that "most specific
// wins" means here what it means in the application's own mux; nothing is ever served from it.
type routes struct {
	mux       *http.ServeMux
	plain     map[plain]*route
	byPattern map[string]*route
	byName    map[string]*route
}

// plain is a pattern that is nothing but a method and a path. A request for just that needs no mux, which takes several times as long
// to find it: nothing is more specific, unless some pattern names a host.
type plain struct{ method, path string }

// plainOf returns what pattern is if it is plain, and whether it names a host. Paths that could be written in another way too, or that
// stand for all below them, are not plain.
func plainOf(pattern string) (p plain, ok, hosted bool) {
	method, rest, _ := strings.Cut(pattern, " ")
	if rest == "" {
		method, rest = "", method // for all methods
	}
	other := strings.Trim(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")
	return plain{method, rest}, method != "" && other == "" && len(rest) > 1 && path.Clean(rest) == rest, !strings.HasPrefix(rest, "/")
}

// route is what the edge needs to know about a shed.Route. It is a handler only to be found in the mux.
type route struct {
	name      string
	exempt    bool
	longLived bool
	patient   bool // bodies may come as slowly as they like
	says      int  // how long the path of its pattern is
	costField string
}

func (*route) ServeHTTP(http.ResponseWriter, *http.Request) {}

// unmatched is the default route.
var unmatched = &route{}

func newRoutes(list []shed.Route) (*routes, error) {
	t := &routes{http.NewServeMux(), make(map[plain]*route), make(map[string]*route), make(map[string]*route)}
	someHosted := false
	for _, r := range list {
		entry := &route{
			name: r.Name, exempt: r.Exempt, longLived: r.LongLived > 0, patient: r.LongLived > 0 || r.Shadow,
			costField: http.CanonicalHeaderKey(r.CostHeader),
		}
		t.byName[r.Name] = entry
		if r.Match == "" {
			continue // found by name only
		}
		if err := handle(t.mux, r.Match, entry); err != nil {
			return nil, fmt.Errorf("route %q: match %q: %w; write it as net/http does, e.g. \"POST /orders/{id}\"", r.Name, r.Match, err)
		}
		t.byPattern[r.Match] = entry
		p, ok, hosted := plainOf(r.Match)
		entry.says = len(p.path)
		if ok {
			t.plain[p] = entry
		}
		someHosted = someHosted || hosted
	}
	if someHosted {
		t.plain = nil
	}
	// With a pattern that takes the rest, the mux need not find out which methods it might have allowed. It is in the way
	// only where the configuration has one of its own.
	_ = handle(t.mux, "/", unmatched)
	return t, nil
}

// handle registers a pattern; what ServeMux panics with is an error here, for it comes from a configuration.
func handle(mux *http.ServeMux, pattern string, entry *route) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	mux.Handle(pattern, entry)
	return nil
}

// find returns the route of r.
func (t *routes) find(r *http.Request) *route {
	if len(t.byPattern) == 0 {
		return unmatched
	}
	if entry := t.plain[plain{r.Method, r.URL.Path}]; entry != nil && r.URL.RawPath == "" {
		return entry
	}
	if twofold(r) {
		return t.among(t.match(r), r)
	}
	return t.match(r)
}

// match asks the mux. A path that is not in canonical form ("//orders", "/a/../orders") belongs to the route of
// its canonical form, because something behind may clean it, with one exception: it never makes a request exempt, because
// something behind may not.
func (t *routes) match(r *http.Request) *route {
	handler, pattern := t.mux.Handler(r)
	if entry, ok := handler.(*route); ok {
		return entry
	}
	if entry := t.byPattern[pattern]; entry != nil && !entry.exempt {
		return entry
	}
	return unmatched
}

// named returns the route of that name; a name that is not configured is the default route by another label.
func (t *routes) named(name string) *route {
	if entry := t.byName[name]; entry != nil {
		return entry
	}
	return &route{name: name}
}
