package configfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway-go/spillway/shed"
)

// owning is a program with these exempt routes and one of its own.
func owning(exempt ...shed.Route) Config {
	for i := range exempt {
		exempt[i].Exempt = true
	}
	return Config{Shed: shed.Config{Routes: append(exempt, shed.Route{Name: "own", Match: "GET /own"})}}
}

func TestTheProgramsExemptRoutesAlwaysHold(t *testing.T) {
	health, assets := shed.Route{Name: "health", Match: "GET /healthz"}, shed.Route{Name: "assets", Match: "GET /assets/"}
	item, spaced := shed.Route{Name: "item", Match: "GET /items/{id}"}, shed.Route{Name: "spaced", Match: "GET /a%20b"}
	const rest = "assets GET /assets/ exempt, item GET /items/{id} exempt, spaced GET /a%20b exempt"
	for _, row := range []struct {
		why, routes string
		want        []string // the table as "name match [exempt]", or the error
	}{
		{"no routes in the file", `[]`,
			[]string{"health GET /healthz exempt", rest}},
		{"other routes come first, the program's own route is replaced", `[{name: a, match: "GET /a"}]`,
			[]string{"a GET /a", "health GET /healthz exempt", rest}},
		{"the same route under another name", `[{name: probes, match: "GET /healthz", exempt: true}]`,
			[]string{"probes GET /healthz exempt", rest}},
		{"the same route under the same name", `[{name: health, match: "GET /healthz", exempt: true}]`,
			[]string{"health GET /healthz exempt", rest}},
		{"a wider route takes nothing away", `[{name: all, match: /}]`,
			[]string{"all /", "health GET /healthz exempt", rest}},
		{"another method takes nothing away", `[{name: put, match: "PUT /items/{id}"}]`,
			[]string{"put PUT /items/{id}", "health GET /healthz exempt", rest}},
		{"the path beside a subtree is not in it", `[{name: a, match: "GET /assets"}]`,
			[]string{"a GET /assets", "health GET /healthz exempt", rest}},
		{"an exempt route inside an exempt one", `[{name: a, match: "GET /assets/a", exempt: true}]`,
			[]string{"a GET /assets/a exempt", "health GET /healthz exempt", rest}},

		{"the same pattern", `[{name: a, match: "GET /healthz"}]`, []string{`"GET /healthz" would take`}},
		{"a narrower method", `[{name: a, match: "HEAD /healthz"}]`, []string{`"HEAD /healthz" would take`}},
		{"a narrower host", `[{name: a, match: "GET example.com/healthz"}]`, []string{`"GET example.com/healthz" would take`}},
		{"a narrower path", `[{name: a, match: "GET /assets/{file}"}]`, []string{`"GET /assets/{file}" would take`}},
		{"a narrower subtree", `[{name: a, match: "GET /assets/big/{rest...}"}]`, []string{`"GET /assets/big/{rest...}" would take`}},
		{"the subtree's own page", `[{name: a, match: "GET /assets/{$}"}]`, []string{`"GET /assets/{$}" would take`}},
		{"one value of a wildcard", `[{name: a, match: "GET /items/new"}]`, []string{`"GET /items/new" would take`}},
		{"a value with an escape", `[{name: a, match: "GET /items/a%20b"}]`, []string{`"GET /items/a%20b" would take`}},
		{"an escape, narrower by its host", `[{name: a, match: "GET example.com/a%20b"}]`, []string{`"GET example.com/a%20b" would take`}},
		{"an overlap", `[{name: a, match: "GET /{x}/new"}]`, []string{`conflicts with "GET /assets/" of route assets of the program`}},
		{"the name of one", `[{name: health, match: "GET /b"}]`, []string{`health is the name of the program's exempt route "GET /healthz"`}},
	} {
		c, err := Parse("f", []byte("routes: "+row.routes), owning(health, assets, item, spaced))
		if err != nil {
			if len(row.want) != 1 || !strings.Contains(err.Error(), row.want[0]) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: got %v\nwant %q", row.why, err, row.want)
			}
			continue
		}
		if diff := cmp.Diff(strings.Join(row.want, ", "), strings.Join(table(c), ", ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.why, diff)
		}
	}
}

// table prints the routes.
func table(c *Config) (all []string) {
	for _, r := range c.Shed.Routes {
		s := r.Name + " " + r.Match
		if r.Exempt {
			s += " exempt"
		}
		all = append(all, s)
	}
	return all
}

func TestLimitsReferToTheRoutesThatHold(t *testing.T) {
	limit := `limits: [{name: l, token_bucket: {capacity: 1, refill: 1/s}, routes: [%s]}]` + "\n"
	over := owning(shed.Route{Name: "health", Match: "GET /healthz"})
	for _, row := range []struct{ route, routes, want string }{
		{"own", "", ""},
		{"own", "routes: []", `there is no route "own"`},
		{"a", "routes: [{name: a, match: /a}]", ""},
		{"health", "", "route health is exempt"},
		{"health", "routes: [{name: a, match: /a}]", "route health is exempt"},
	} {
		_, err := Parse("f", []byte(fmt.Sprintf(limit, row.route)+row.routes), over)
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s with %q: %v, want %q", row.route, row.routes, err, row.want)
		}
	}
}

func TestAMistakeInRoutesIsNotBlamedOnTheLimitsToo(t *testing.T) {
	got := refused(t, `
limits: [{name: l, token_bucket: {capacity: 1, refill: 1/s}, routes: [a]}]
routes: [{name: "a b", match: /a}]
`)
	if want := `f:3: routes[0].name: "a b" cannot be a name; use up to 64 letters, digits, dashes and underscores`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
