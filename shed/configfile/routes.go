package configfile

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/internal/check"
)

var (
	priorityWords = []string{"critical_plus", "critical", "sheddable_plus", "sheddable"}
	priorities    = []shed.Priority{shed.CriticalPlus, shed.Critical, shed.SheddablePlus, shed.Sheddable}
)

var routeShape = shape{
	keys: []key{
		{name: "name", kind: kindText, required: "reports"},
		{name: "match", kind: kindText, required: `"POST /reports"`},
		{name: "cost", kind: kindInteger, min: 1, max: maxAmount},
		{name: "cost_header", kind: kindText},
		{name: "priority", kind: kindWord, words: priorityWords},
		{name: "deadline", kind: kindDuration, min: int64(time.Millisecond), max: longestWait},
		{name: "feature", kind: kindText},
		{name: "long_lived", kind: kindSection, in: &longLivedShape},
		{name: "mode", kind: kindWord, words: modeWords},
		{name: "exempt", kind: kindBoolean},
		{name: "upstream", kind: kindText},
	},
}

var longLivedShape = shape{keys: []key{
	{name: "max", kind: kindInteger, min: 1, max: mostAtOnce, required: "100"},
}}

// routeList reads the section routes and adds the program's exempt routes to it, for those always hold: a file that forgets
// the probes must not make them wait.
func routeList(all []object, program []shed.Route) []shed.Route {
	exempt := slices.Clone(program)
	exempt = slices.DeleteFunc(exempt, func(r shed.Route) bool { return !r.Exempt })
	table := newPatterns(exempt)
	names := map[string]int{}
	var list []shed.Route
	for _, o := range all {
		r := route(o)
		o.unique(r.Name, names)
		if r.Match != "" {
			table.add(o, r)
		}
		// The same exempt route under the file's own words takes the place of the program's.
		exempt = slices.DeleteFunc(exempt, func(e shed.Route) bool { return r.Exempt && r.Match == e.Match })
		list = append(list, r)
	}
	for _, e := range exempt {
		if i := slices.IndexFunc(list, func(r shed.Route) bool { return r.Name == e.Name }); i >= 0 {
			all[i].fields["name"].fail(
				fmt.Sprintf("%s is the name of the program's exempt route %q, which always holds", bare(e.Name), e.Match),
				"choose another name")
		}
	}
	return append(list, exempt...)
}

func route(o object) shed.Route {
	r := shed.Route{Name: o.name("name"), Match: o.text("match"), Feature: o.feature("feature"), Exempt: o.boolean("exempt")}
	if i, ok := o.word("priority"); ok {
		r.Priority = priorities[i]
	}
	if i, ok := o.word("mode"); ok {
		r.Shadow = modeWords[i] == "shadow"
	}
	r.Cost, _ = o.integer("cost")
	if r.CostHeader = o.header("cost_header"); check.CostHeader(r.CostHeader) != "" {
		o.fields["cost_header"].fail(bare(r.CostHeader)+" "+check.CostHeader(r.CostHeader), "use a field of its own, such as X-Request-Cost")
	}
	r.Deadline = o.duration("deadline")
	if long, ok := o.section("long_lived"); ok {
		r.LongLived = long.count("max")
		if r.Deadline > 0 {
			o.fields["deadline"].fail("has no meaning on a long-lived route, for its requests never wait", "remove one of the two")
		}
	}
	if r.Exempt {
		for _, name := range []string{"cost", "cost_header", "priority", "deadline", "feature", "long_lived", "mode"} {
			if o.has(name) {
				o.fields[name].fail("has no meaning on an exempt route", "remove it, or remove exempt")
			}
		}
	}
	return r
}

// featureName is what the pumpkin can name in a document.
var featureName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func (o object) feature(name string) string {
	s := o.text(name)
	if s != "" && !featureName.MatchString(s) {
		o.fields[name].fail(shown(s)+" cannot be the name of a feature", "use up to 64 letters, digits, dots, dashes and underscores")
		return ""
	}
	return s
}
