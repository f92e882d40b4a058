package edge

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/shed"
)

var shop = []shed.Route{
	{Name: "write", Match: "POST /orders/{id}"},
	{Name: "reports", Match: "/reports/"},
	{Name: "probe", Match: "GET /healthz", Exempt: true},
	{Name: "admin", Match: "admin.example.com/"},
	{Name: "by-name-only"},
}

func TestRoutesAreFoundAsServeMuxFindsThem(t *testing.T) {
	table, err := newRoutes(shop)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ method, target, want string }{
		{"POST", "/orders/7", "write"},
		{"GET", "/orders/7", ""}, // another method
		{"POST", "/orders/7/items", ""},
		{"POST", "/orders/a%2Fb", "write"}, // an escaped slash is no slash
		{"GET", "/reports/2026?x=1", "reports"},
		{"BREW", "/reports/2026", "reports"},
		{"HEAD", "/healthz", "probe"},
		{"POST", "/healthz", ""},
		{"GET", "http://admin.example.com:8080/healthz", "admin"},
		{"GET", "/", ""},
		{"GET", "/nowhere", ""},
		{"CONNECT", "/reports/x", "reports"},
		// Not canonical: the route of the canonical form, for something behind may clean it ...
		{"POST", "/orders//7", "write"},
		{"POST", "/x/../orders/7", "write"},
		{"GET", "//reports/2026", "reports"},
		// ... but never an exempt one, for something behind may not: /api/../healthz could be served by /api/.
		{"GET", "//healthz", ""},
		{"GET", "/api/../healthz", ""},
		{"GET", "/./healthz", ""},
	} {
		r := httptest.NewRequest(row.method, row.target, nil)
		if got := table.find(r).name; got != row.want {
			t.Errorf("%s %s is on route %q, want %q", row.method, row.target, got, row.want)
		}
		if r.Pattern != "" {
			t.Errorf("%s %s: looking left the pattern %q on the request", row.method, row.target, r.Pattern)
		}
	}
}

// TestAPathThatCanBeReadInTwoWays: whatever is behind makes of a path, nobody gets past the limits of a route by how it is written, and
// nothing becomes exempt.
func TestAPathThatCanBeReadInTwoWays(t *testing.T) {
	table, err := newRoutes([]shed.Route{
		{Name: "assets", Match: "GET /assets/", Exempt: true},
		{Name: "probe", Match: "/healthz", Exempt: true},
		{Name: "orders", Match: "/orders/"},
		{Name: "project", Match: "/projects/{id}/files"},
		{Name: "a-long-name", Match: "/reports-of-long-ago/"},
		{Name: "home", Match: "/home/{rest...}"},
		{Name: "icon", Match: "/icons/{name}", Exempt: true},
		{Name: "icons", Match: "/icons/a/"},
		{Name: "exactly", Match: "/exactly/{$}"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ target, want string }{
		// steps that only decoding shows
		{"/assets/%2e%2e/orders/1", "orders"},
		{"/assets/.%2e/orders/1", "orders"},
		{"/assets/%2E./orders/1", "orders"},
		{"/assets/..%2forders/1", "orders"},
		{"/assets/..%2Forders%2F1", "orders"},
		{"/assets/..%5corders/1", "orders"},
		{"/assets/..;/orders/1", "orders"},
		{"/assets/..;x=1;y/orders/1", "orders"},
		{"/nowhere/%2e%2e/orders/1", "orders"},
		{"/reports-of-long-ago/%2e%2e/orders/1", "orders"},
		{"/orders%2f%2f1", "orders"},
		{"/orders/%2e%2e/healthz", ""},
		{"/orders/..;/healthz", ""},
		{"/assets/x/%2e%2e/y.png", ""},
		{"/%2e%2e/%2e%2e/orders/", "orders"},
		// slashes that only decoding shows, or what others take for one
		{"/orders%2f1", "orders"},
		{"/orders%5C1", "orders"},
		{"/orders;a=b/1", "orders"},
		{"/orders/a%2Fb", "orders"},
		{"/projects/group%2Fproject/files", "project"}, // as GitLab has them
		{"/home/%2forders%2f1", "home"},
		{"/reports-of-long-ago/a%2Fb", "a-long-name"},
		{"/healthz;v=1", ""}, // as one reads it no probe
		{"/healthz%2f", ""},
		{"/assets/a%2Fb.png", "assets"}, // exempt however one reads it
		{"/assets/a;v=1.png", "assets"},
		{"/assets%2fa.png", ""},
		{"/%61ssets/a.png", "assets"}, // no other path, only written oddly
		{"/orders/%C3%A9;", "orders"},
		{"/nowhere;/x%2fy", ""},
		{"/icons/a%2Fb", "icons"}, // exempt in one reading only, though that pattern says more
		{"/exactly%2f", "exactly"},
		{"/x;/../exactly%2f", "exactly"},
	} {
		if got := table.find(httptest.NewRequest("GET", row.target, nil)).name; got != row.want {
			t.Errorf("%s is on route %q, want %q", row.target, got, row.want)
		}
	}
	connect := httptest.NewRequest("CONNECT", "/assets/%2e%2e/orders/1", nil)
	if got := table.find(connect).name; got != "" {
		t.Errorf("CONNECT is on route %q", got)
	}
}

// TestPlainRoutesAreThoseOfTheMux asks tables of random patterns about random requests, with the short way and without.
func TestPlainRoutesAreThoseOfTheMux(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	short := 0
	for range 2000 {
		table, err := newRoutes(nil)
		var list []shed.Route
		hosts := [][]string{{""}, {"", "", "", "example.com", "other.com"}}[rng.IntN(2)]
		for i := range 1 + rng.IntN(6) {
			pattern := pick("", "GET ", "GET ", "POST ", "HEAD ", "CONNECT ", "GET  ", "GET\t") + pick(hosts...) +
				pick("/", "/a", "/a/", "/a/b", "/a/{x}", "/{x}/b", "/{x...}", "/{$}", "/a/b/", "/a//b", "/a/../b", "/a%20b", "/a/{$}", "/b.c")
			wider := append(list, shed.Route{Name: fmt.Sprint(i), Match: pattern, Exempt: rng.IntN(4) == 0})
			if next, e := newRoutes(wider); e == nil { // others contradict each other
				table, list = next, wider
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		slow := *table
		slow.plain = nil
		for range 40 {
			r := httptest.NewRequest(pick("GET", "POST", "HEAD", "CONNECT", "BREW"), pick("http://example.com", "http://other.com:80", "")+
				pick("/", "/a", "/a/", "/a/b", "/a/b/", "/a//b", "/%61", "/a%2Fb", "/a%20b", "/a%2520b", "/x/b", "/a/./b", "/b", "/b.c", "/b.c?d=/a"), nil)
			got, want := table.find(r), slow.find(r)
			if got != want {
				t.Fatalf("%v: %s %s is on route %q, want %q", list, r.Method, r.URL, got.name, want.name)
			}
			if table.plain[plain{r.Method, r.URL.Path}] != nil {
				short++
			}
		}
	}
	if short < 100 {
		t.Errorf("only %d requests were on plain routes", short)
	}
}

func TestPatternsOfTheConfigurationMayTakeEverything(t *testing.T) {
	for _, all := range []string{"/", "/{rest...}"} {
		table, err := newRoutes([]shed.Route{{Name: "all", Match: all}})
		if err != nil {
			t.Fatal(err)
		}
		if got := table.find(httptest.NewRequest("GET", "/x/y", nil)).name; got != "all" {
			t.Errorf("%s: route %q", all, got)
		}
	}
}

func TestBadPatternsAreErrorsThatSayHowToMendThem(t *testing.T) {
	for _, routes := range [][]shed.Route{
		{{Name: "a", Match: "orders"}},
		{{Name: "a", Match: "GET  /x/{"}},
		{{Name: "a", Match: "/x/{id}"}, {Name: "b", Match: "/x/{name}"}},
		{{Name: "a", Match: "/x/{id}/y"}, {Name: "b", Match: "/x/z/{id}"}},
	} {
		_, err := newRoutes(routes)
		if err == nil || !strings.Contains(err.Error(), `route "`+routes[len(routes)-1].Name) || !strings.Contains(err.Error(), "POST /orders/{id}") {
			t.Errorf("%v: %v", routes, err)
		}
	}
}

func TestUnknownNamesAreLabelsOfTheDefaultRoute(t *testing.T) {
	table, err := newRoutes(shop)
	if err != nil {
		t.Fatal(err)
	}
	if r := table.named("probe"); !r.exempt {
		t.Errorf("by name: %+v", r)
	}
	if r := table.named("/users/:id"); r.exempt || r.longLived || r.name != "/users/:id" {
		t.Errorf("by label: %+v", r)
	}
}
