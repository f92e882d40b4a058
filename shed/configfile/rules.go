package configfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/limits"
)

// ruleKeys are the rules, of which each limit and each plan has one.
var ruleKeys = []key{
	{name: "token_bucket", kind: kindSection, in: &tokenBucketShape},
	{name: "leaky_bucket", kind: kindSection, in: &leakyBucketShape},
	{name: "burst", kind: kindSection, in: &burstShape},
	{name: "fixed_window", kind: kindSection, in: &windowShape},
	{name: "sliding_window", kind: kindSection, in: &windowShape},
	{name: "sliding_log", kind: kindSection, in: &windowShape},
	{name: "in_flight", kind: kindSection, in: &inFlightShape},
}

var ruleNames = (&shape{keys: ruleKeys}).names()

var planShape = shape{keys: ruleKeys}

var tokenBucketShape = shape{keys: []key{
	{name: "capacity", kind: kindInteger, min: 0, max: maxAmount, required: "20"},
	{name: "refill", kind: kindRate, required: "5/s"},
}}

var leakyBucketShape = shape{keys: []key{
	{name: "leak", kind: kindRate, required: "50/s"},
	{name: "capacity", kind: kindInteger, min: 0, max: maxAmount, required: "100"},
}}

var burstShape = shape{keys: []key{
	{name: "soft", kind: kindRate, required: "100/s"},
	{name: "hard", kind: kindRate, required: "200/s"},
	{name: "total", kind: kindRate},
}}

var windowShape = shape{keys: []key{
	{name: "quota", kind: kindQuota, required: "100/min"},
}}

var inFlightShape = shape{keys: []key{
	{name: "max", kind: kindInteger, min: 0, max: 1_000_000, required: "8"},
}}

// rule returns the one rule and where it stands. It is nil when it could not be read, which has been reported then.
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
	if len(written) == 0 {
		o.fail("has no rule", "add token_bucket: {capacity: 20, refill: 5/s}, or another one")
		return nil, o.value
	}
	if len(written) > 1 {
		slices.SortStableFunc(written, func(a, b string) int { return o.fields[a].line - o.fields[b].line })
		o.fields[written[1]].fail("is a second rule, beside "+written[0], "keep one, or make two limits")
		return nil, o.value
	}
	at := o.fields[written[0]]
	b, ok := o.section(written[0])
	if !ok {
		return nil, at
	}
	b.bytes = o.bytes
	return b.ruleNamed(written[0]), at
}

// ruleNamed reads the numbers of a rule; it is nil when one of them is missing or wrong.
func (o object) ruleNamed(name string) limits.Rule {
	right := true
	rate := func(name string) (r limits.Rate) {
		r, ok := o.rate(name)
		right = right && ok
		return r
	}
	integer := func(name string) int64 {
		n, ok := o.integer(name)
		right = right && ok
		return n
	}
	var r limits.Rule
	switch name {
	case "token_bucket":
		r = limits.TokenBucket{Capacity: integer("capacity"), Refill: rate("refill")}
	case "leaky_bucket":
		r = limits.LeakyBucket{Capacity: integer("capacity"), Leak: rate("leak")}
	case "burst":
		b := limits.Burst{Soft: rate("soft"), Hard: rate("hard")}
		if o.has("total") {
			b.Total = rate("total")
		}
		r = b
	case "fixed_window":
		r = limits.FixedWindow{Quota: rate("quota")}
	case "sliding_window":
		r = limits.SlidingWindow{Quota: rate("quota")}
	case "sliding_log":
		r = limits.SlidingLog{Quota: rate("quota")}
	case "in_flight":
		r = limits.InFlight{Max: integer("max")}
	}
	if !right {
		return nil
	}
	return r
}

// rate returns the rate under a key; it is false when there is none that is right.
func (o object) rate(name string) (limits.Rate, bool) {
	v, k, ok := o.at(name, kindRate, kindQuota)
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
	if strings.Contains(s.text, "B/") && !o.bytes {
		v.fail(shown(s.text)+" counts bytes, and this limit counts requests", "add unit: request_bytes or response_bytes, or count requests, such as 5/s")
		return limits.Rate{}, false
	}
	if strings.Contains(s.text, ".") {
		v.fail(shown(s.text)+" has a fraction", "lengthen the period instead: 0.5/s is 1/2s")
		return limits.Rate{}, false
	}
	text, none := s.text, k.kind == kindQuota && strings.HasPrefix(s.text, "0/")
	if none { // a window in which nothing passes
		text = "1" + text[1:]
	}
	r, err := limits.ParseRate(text)
	if none {
		r.Amount = 0
	}
	if err != nil {
		what, mend := split(err, "write it like 5/s, 10000/min or 1/13s", fmt.Sprintf("limits: rate %q", text))
		v.fail(shown(s.text)+": "+what, mend)
		return limits.Rate{}, false
	}
	return r, true
}
