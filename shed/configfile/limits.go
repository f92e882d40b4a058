package configfile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

const (
	useBucket = "use token_bucket or leaky_bucket"
	maxAmount = 1 << 53 // what every program that reads the file, in any language, can hold exactly
)

var (
	scopeWords  = []string{"client", "ip", "ip_prefix", "route", "client_route", "global"}
	scopes      = []shed.Scope{shed.PerClient, shed.PerIP, shed.PerIPPrefix, shed.PerRoute, shed.PerClientRoute, shed.Global}
	excessWords = []string{"reject", "delay"}
	ruleNames   = []string{"token_bucket", "leaky_bucket", "burst", "fixed_window", "sliding_log", "sliding_window", "in_flight"}
)

var limitShape = shape{
	keys: []key{
		{name: "name", kind: kindText, required: "per-client"},
		{name: "token_bucket", kind: kindSection, in: &tokenBucketShape},
		{name: "leaky_bucket", kind: kindSection, in: &leakyBucketShape},
		{name: "per", kind: kindWord, words: scopeWords},
		{name: "excess", kind: kindWord, words: excessWords},
		{name: "max_wait", kind: kindDuration, min: int64(time.Millisecond), max: longestWait},
		{name: "routes", kind: kindTexts},
	},
	later: map[string]string{
		"burst":          useBucket,
		"fixed_window":   useBucket,
		"sliding_log":    useBucket,
		"sliding_window": useBucket,
		"in_flight":      "use the section concurrency, or long_lived on a route",
		"plans":          "remove it: one rule holds for all clients",
		"unit":           "remove it: limits count requests, weighed by the route's cost",
		"for":            "remove it, or use per: ip for clients without a key",
		"guarantee":      "remove it: balances are exact in one process",
		"mode":           "remove it: a limit always acts",
		"on_failure":     "remove it: a store in memory does not fail",
	},
}

var tokenBucketShape = shape{keys: []key{
	{name: "capacity", kind: kindInteger, min: 0, max: maxAmount, required: "20"},
	{name: "refill", kind: kindRate, required: "5/s"},
}}

var leakyBucketShape = shape{keys: []key{
	{name: "leak", kind: kindRate, required: "50/s"},
	{name: "capacity", kind: kindInteger, min: 0, max: maxAmount, required: "100"},
}}

// limitList reads the section limits. Routes are those of the whole configuration, for limits to refer to; nil means that
// they are not known, because their section is wrong itself.
func limitList(all []object, routes *[]shed.Route) []shed.Limit {
	var list []shed.Limit
	names := map[string]int{}
	for _, o := range all {
		name := o.name("name")
		o.unique(name, names)
		list = append(list, limit(o, name, routes))
	}
	return list
}

func limit(o object, name string, routes *[]shed.Route) shed.Limit {
	l := shed.Limit{Name: name, MaxWait: o.duration("max_wait"), Routes: o.routes(routes)}
	if i, ok := o.word("per"); ok {
		l.Per = scopes[i]
	}
	if i, ok := o.word("excess"); ok && excessWords[i] == "delay" {
		l.Excess = shed.Delay
	}
	if o.has("max_wait") && l.Excess != shed.Delay {
		o.fields["max_wait"].fail("has no meaning without excess: delay", "add excess: delay, or remove max_wait")
	}
	rule, at := o.rule()
	if rule == nil {
		return l
	}
	l.Rule = rule
	// Building the policy finds what only the arithmetic knows, such as a bucket that would take longer than time itself.
	built := rule
	if l.Excess == shed.Delay {
		built = limits.Delay{Rule: rule, MaxWait: l.MaxWait}
	}
	if _, err := limits.NewPolicy("limit", built); err != nil {
		at.fail(split(err, "use a smaller capacity", `limits: policy "limit"`, "excess: delay", "token_bucket", "leaky_bucket"))
	}
	return l
}

// rule returns the limit's one rule and where it stands. It is nil when it could not be read, which has been reported then.
func (o object) rule() (limits.Rule, value) {
	if slices.ContainsFunc(ruleNames, func(name string) bool { return o.absent[name] }) {
		return nil, o.value // there is a rule, and it has been refused
	}
	var written []string
	for _, name := range ruleNames {
		if o.has(name) {
			written = append(written, name)
		}
	}
	switch len(written) {
	case 0:
		o.fail("has no rule", "add token_bucket: {capacity: 20, refill: 5/s}, or a leaky_bucket")
		return nil, o.value
	case 2:
		slices.SortFunc(written, func(a, b string) int { return o.fields[a].line - o.fields[b].line })
		o.fields[written[1]].fail("is a second rule, beside "+written[0], "keep one, or make two limits")
		return nil, o.value
	}
	at := o.fields[written[0]]
	b, ok := o.section(written[0])
	if !ok {
		return nil, at
	}
	capacity, haveCapacity := b.integer("capacity")
	switch written[0] {
	case "token_bucket":
		if refill, ok := b.rate("refill"); ok && haveCapacity {
			return limits.TokenBucket{Capacity: capacity, Refill: refill}, at
		}
	case "leaky_bucket":
		if leak, ok := b.rate("leak"); ok && haveCapacity {
			return limits.LeakyBucket{Capacity: capacity, Leak: leak}, at
		}
	}
	return nil, at
}

// rate returns the rate under a key; it is false when there is none that is right.
func (o object) rate(name string) (limits.Rate, bool) {
	v, _, ok := o.at(name, kindRate)
	if !ok {
		return limits.Rate{}, false
	}
	s, ok := v.scalar("a rate", "a rate such as 5/s")
	if !ok {
		return limits.Rate{}, false
	}
	if wholeNumber.MatchString(s.text) {
		amount := strings.TrimPrefix(s.short(), "-")
		v.fail(s.short()+" does not say in which time", "write "+amount+"/s or "+amount+"/min")
		return limits.Rate{}, false
	}
	if len(s.text) > 64 {
		v.fail(shown(s.text)+" is not a rate", "write it like 5/s, 10000/min or 1/13s")
		return limits.Rate{}, false
	}
	if strings.Contains(s.text, "B/") {
		v.fail(shown(s.text)+" counts bytes, and limits of bytes are not available in this version", "count requests, such as 5/s")
		return limits.Rate{}, false
	}
	if strings.Contains(s.text, ".") {
		v.fail(shown(s.text)+" has a fraction", "lengthen the period instead: 0.5/s is 1/2s")
		return limits.Rate{}, false
	}
	r, err := limits.ParseRate(s.text)
	if err != nil {
		what, mend := split(err, "write it like 5/s, 10000/min or 1/13s", fmt.Sprintf("limits: rate %q", s.text))
		v.fail(shown(s.text)+": "+what, mend)
		return limits.Rate{}, false
	}
	return r, true
}

// routes returns the names of routes that the limit is bound to.
func (o object) routes(routes *[]shed.Route) []string {
	if routes == nil {
		return nil
	}
	known := *routes
	var names, list []string
	for i := range known {
		names = append(names, known[i].Name)
	}
	for _, item := range o.texts("routes") {
		s, ok := item.text()
		if !ok {
			continue
		}
		i := slices.Index(names, s)
		switch {
		case i < 0 && len(names) == 0:
			item.fail("there is no route "+shown(s), "define it under routes")
		case i < 0 && len(names) > 12 && suggestion(s, names) == "":
			item.fail("there is no route "+shown(s), "define it under routes, or name one that is there")
		case i < 0:
			item.fail("there is no route "+shown(s), didYouMean(s, names))
		case known[i].Exempt:
			item.fail("route "+bare(s)+" is exempt, so that no limit applies to it", "remove it here")
		case slices.Contains(list, s):
			item.fail("route "+bare(s)+" is in the list twice", "keep one of them")
		default:
			list = append(list, s)
		}
	}
	return list
}

// name returns the name under a key: it goes into headers, metrics and logs, so it is short printable ASCII.
func (o object) name(key string) string {
	s := o.text(key)
	for _, r := range s {
		if r <= ' ' || r > '~' || r == '"' || r == '\\' || len(s) > 64 {
			o.fields[key].fail(shown(s)+" cannot be a name", "use up to 64 letters, digits, dashes and underscores")
			return ""
		}
	}
	return s
}

// unique reports a name that an earlier entry of the list has.
func (o object) unique(name string, lines map[string]int) {
	if name == "" {
		return
	}
	if first, taken := lines[name]; taken {
		o.fields["name"].fail(fmt.Sprintf("%s is already the name in line %d", bare(name), first), "give each its own")
		return
	}
	lines[name] = o.fields["name"].line
}

// split parts an error of limits, "limits: subject: what; how to mend", into its two halves. The subject is left out, for
// the path of the key says it already; otherwise is the way out of an error that has none.
func split(err error, otherwise string, subjects ...string) (what, mend string) {
	s := strings.ReplaceAll(err.Error(), "\n", " ")
	for _, subject := range subjects {
		s = strings.TrimPrefix(s, subject+": ")
	}
	what, mend, found := strings.Cut(s, "; ")
	if !found {
		mend = otherwise
	}
	return what, strings.ReplaceAll(mend, ";", ",")
}
