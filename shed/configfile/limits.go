package configfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

const maxAmount = 1 << 53 // what every program that reads the file, in any language, can hold exactly

var (
	scopeWords     = []string{"client", "ip", "ip_prefix", "route", "client_route", "global"}
	scopes         = []shed.Scope{shed.PerClient, shed.PerIP, shed.PerIPPrefix, shed.PerRoute, shed.PerClientRoute, shed.Global}
	excessWords    = []string{"reject", "delay"}
	modeWords      = []string{"enforce", "shadow"}
	unitWords      = []string{shed.Requests, shed.RequestBytes, shed.ResponseBytes, shed.Messages}
	failureWords   = []string{"local", "open", "closed"}
	failures       = []limits.OnFailure{limits.Local, limits.Open, limits.Closed}
	guaranteeWords = []string{"strict"}
	sharingWords   = []string{"exact", "lease", "async"}
	sharings       = []limits.Sharing{limits.SharedExactly, limits.SharedByLease, limits.SharedAsync}
	countWords     = []string{"all", "successes", "failures"}
	counts         = []shed.Count{shed.CountAll, shed.CountSuccesses, shed.CountFailures}
)

// ownUnit is what a unit of the program's own looks like.
var ownUnit = regexp.MustCompile(`^[a-z_]{1,64}$`)

var limitShape = shape{
	keys: slices.Concat([]key{
		{name: "name", kind: kindText, required: "per-client"},
	}, ruleKeys, []key{
		{name: "per", kind: kindWord, words: scopeWords},
		{name: "excess", kind: kindWord, words: excessWords},
		{name: "max_wait", kind: kindDuration, min: int64(time.Millisecond), max: longestWait},
		{name: "routes", kind: kindTexts},
		{name: "unit", kind: kindText},
		{name: "min_size", kind: kindInteger, min: 1, max: maxAmount},
		{name: "count", kind: kindWord, words: countWords},
		{name: "for", kind: kindWords, words: identifyWords},
		{name: "plans", kind: kindNamed, in: &planShape},
		{name: "mode", kind: kindWord, words: modeWords},
		{name: "on_failure", kind: kindWord, words: failureWords},
		{name: "guarantee", kind: kindWord, words: guaranteeWords},
		{name: "sharing", kind: kindWord, words: sharingWords},
		{name: "sub_buckets", kind: kindInteger, min: 2, max: limits.MaxSubBuckets},
	}),
}

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
	l.Unit = o.unit("unit")
	o.bytes = l.Unit != "" && l.Unit != shed.Requests && l.Unit != shed.Messages
	if l.MinSize, _ = o.integer("min_size"); o.has("min_size") && l.Unit != shed.Messages {
		o.fields["min_size"].fail("has no meaning without unit: messages", "add unit: messages, or remove min_size")
	}
	if i, ok := o.word("count"); ok {
		l.Count = counts[i]
	}
	if i, ok := o.word("mode"); ok {
		l.Shadow = modeWords[i] == "shadow"
	}
	if l.Shadow && l.Excess == shed.Delay {
		o.fields["mode"].fail("a shadow cannot delay", "use excess: reject to see what it would not let pass at once")
	}
	if l.Count != shed.CountAll && (l.Unit != "" && l.Unit != shed.Requests || l.Excess == shed.Delay) {
		o.fields["count"].fail("is for limits on requests that reject", "remove the unit and excess: delay, or the count")
	}
	o.failure(&l)
	if n, ok := o.integer("sub_buckets"); ok {
		l.SubBuckets = int(n)
		if l.Per != shed.Global {
			o.fields["sub_buckets"].fail("divides one balance that all ask about", "add per: global, or remove sub_buckets")
			l.SubBuckets = 0
		}
	}
	l.For = o.words("for")
	l.Rule = o.checkedRule(&l)
	o.plans(&l)
	return l
}

// failure reads how a limit is shared, and what it does while the store cannot decide.
func (o object) failure(l *shed.Limit) {
	if i, ok := o.word("on_failure"); ok {
		l.OnFailure = failures[i]
	}
	if i, ok := o.word("sharing"); ok {
		l.Sharing = sharings[i]
	}
	if _, ok := o.word("guarantee"); !ok {
		return
	}
	if l.Sharing > limits.SharedExactly {
		o.fields["sharing"].fail(l.Sharing.String()+" contradicts guarantee: strict", "remove one of the two")
	}
	l.Strict = true
	if l.OnFailure == limits.Local || l.OnFailure == limits.Open {
		o.fields["on_failure"].fail(l.OnFailure.String()+" contradicts guarantee: strict", "remove one of the two")
	}
}

// plans reads the rules of plans.
func (o object) plans(l *shed.Limit) {
	names, all := o.named("plans")
	if len(names) == 0 {
		return
	}
	if l.Per != shed.PerClient && l.Per != shed.PerClientRoute {
		o.fields["plans"].fail("plans need a balance that belongs to one client", "use per: client or per: client_route")
	}
	l.Plans = make(map[string]limits.Rule, len(names))
	for i, plan := range all {
		plan.bytes = o.bytes
		rule := plan.checkedRule(l)
		if rule == nil {
			continue
		}
		_, counts := rule.(limits.InFlight)
		if _, all := l.Rule.(limits.InFlight); l.Rule != nil && all != counts {
			plan.fail("only all rules of a limit can be in_flight, or none", "make two limits")
		}
		l.Plans[names[i]] = rule
	}
}

// checkedRule returns the one rule of a limit, or of a plan, if l can have it; otherwise it is nil, and that has been
// reported.
func (o object) checkedRule(l *shed.Limit) limits.Rule {
	rule, at := o.rule()
	if rule == nil {
		return nil
	}
	built := rule
	switch rule.(type) {
	case limits.TokenBucket, limits.LeakyBucket:
		if l.Excess == shed.Delay {
			built = limits.Delay{Rule: rule, MaxWait: l.MaxWait}
		}
	case limits.InFlight:
		if l.Unit != "" && l.Unit != shed.Requests {
			at.fail("counts requests, and not "+l.Unit, "remove the unit")
			return nil
		}
		if l.Strict || l.OnFailure != limits.AsTheStore {
			at.fail("is counted in this process, whose memory does not fail", "remove on_failure and guarantee")
			return nil
		}
		if l.Count != shed.CountAll {
			at.fail("counts what runs, however it ends", "remove the count")
			return nil
		}
	}
	if _, drains := built.(limits.Delay); l.Sharing > limits.SharedExactly && (drains || !isBucket(rule)) {
		what := map[limits.Sharing]string{limits.SharedByLease: "cannot be taken ahead", limits.SharedAsync: "cannot be counted afterwards"}
		at.fail(what[l.Sharing], "use token_bucket or leaky_bucket without excess: delay, or remove sharing: "+l.Sharing.String())
		return nil
	}
	if built == rule && l.Excess == shed.Delay {
		at.fail("cannot delay", "use token_bucket or leaky_bucket, or remove excess: delay")
		return nil
	}
	// Building the policy finds what only the arithmetic knows, such as a bucket that would take longer than time itself.
	if _, err := limits.NewPolicy("limit", built); err != nil {
		at.fail(split(err, "use a smaller capacity", append([]string{`limits: policy "limit"`, "excess: delay"}, ruleNames...)...))
		return nil
	}
	if _, err := limits.NewPolicy("limit", built, limits.InSubBuckets(l.SubBuckets)); err != nil {
		o.fields["sub_buckets"].fail(split(err, "use fewer", append([]string{`limits: policy "limit"`}, ruleNames...)...))
		return nil
	}
	return rule
}

func isBucket(rule limits.Rule) bool {
	switch rule.(type) {
	case limits.TokenBucket, limits.LeakyBucket:
		return true
	}
	return false
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

// unit returns what a limit counts. A word that is none of those with a meaning of their own is a unit that the program counts, so
// one that looks like a slip is refused: nothing would ever count it.
func (o object) unit(name string) string {
	s := o.text(name)
	if s == "" || slices.Contains(unitWords, s) {
		return s
	}
	v := o.fields[name]
	switch meant := suggestion(s, unitWords); {
	case meant != "":
		v.fail(bare(s)+" is not known here", "did you mean "+meant+"? units of the program's own need names that are less like it")
	case s == "bytes":
		v.fail("bytes does not say of what", "use request_bytes or response_bytes")
	case !ownUnit.MatchString(s):
		v.fail(shown(s)+" cannot be a unit", "use "+either(unitWords)+", or a word of small letters and underscores that the program counts")
	default:
		return s
	}
	return ""
}

// name returns the name under a key: it goes into headers, metrics and logs, so it is short printable ASCII.
func (o object) name(key string) string {
	s := o.text(key)
	if s != "" && !isName(s) {
		o.fields[key].fail(shown(s)+" cannot be a name", "use up to 64 letters, digits, dashes and underscores")
		return ""
	}
	return s
}

func isName(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
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
