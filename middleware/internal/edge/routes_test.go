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
