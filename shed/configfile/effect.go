package configfile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/internal/check"
)

// effects finds what each key alone cannot show: that it does nothing beside the others, or in this program. It is asked about a
// file without mistakes. What refuses every request of a route, or leaves open what a limit was written to close, is a mistake;
// what merely does nothing, and may be there for another program or for later, is a warning.
func (c *Config) effects(p *problems) {
	c.unasked(p)
	c.keysAndPlans(p)
	for i := range c.Shed.Limits {
		c.limitEffects(p, &c.Shed.Limits[i], fmt.Sprintf("limits[%d]", i))
	}
	for i := range c.Shed.Routes {
		c.routeEffects(p, &c.Shed.Routes[i], fmt.Sprintf("routes[%d]", i))
	}
	c.pairs(p)
	c.storeEffects(p)
	c.pumpkinEffects(p)
}

// at returns the key at a path, and whether the file has it.
func (p *problems) at(path string) (value, bool) {
	at, there := p.places[path]
	return value{problems: p, path: path, line: at}, there
}

// ways are those in which somebody can be known.
func (c *Config) ways() []string {
	if all := c.Shed.Clients.Identify; len(all) > 0 {
		return all
	}
	if c.Unaided {
		return []string{"api_key", "ip"}
	}
	return identifyWords
}

// unasked finds ways to learn who asks that are never tried.
func (c *Config) unasked(p *problems) {
	v, there := p.at("clients.identify")
	if !there {
		return
	}
	ways := c.Shed.Clients.Identify
	if i := slices.Index(ways, "ip"); i >= 0 && i < len(ways)-1 {
		v.warn("nearly everybody has an address, so that "+strings.Join(ways[i+1:], " and ")+" behind ip is hardly ever tried", "put ip last")
	}
	if !c.Unaided || !slices.Contains(ways, "principal") {
		return
	}
	// A file may be shared with programs in which somebody logs in.
	others := slices.DeleteFunc(slices.Clone(ways), func(way string) bool { return way == "principal" })
	if len(others) == 0 {
		v.fail("lists principal alone, which names nobody in this program, so that nobody would ever be known", "use api_key and ip")
		return
	}
	v.warn("lists principal, which names nobody in this program: the other ways are tried", "remove it, or leave it to programs in which somebody logs in")
	c.Shed.Clients.Identify = others
}

// keysAndPlans finds plans that nobody is on, and keys whose plan is nearly, and not quite, that of a limit.
func (c *Config) keysAndPlans(p *problems) {
	file, there := p.at("clients.api_keys_file")
	keys := c.Shed.Clients.APIKeys
	if there && len(keys) == 0 {
		file.warn(shown(c.APIKeysFile)+" lists no key, so that no key names anybody", "list some, or remove it")
	}
	held, wanted := map[string]bool{}, map[string]bool{}
	for _, k := range keys {
		held[k.Plan] = true
	}
	for i, l := range c.Shed.Limits {
		for _, plan := range slices.Sorted(maps.Keys(l.Plans)) {
			wanted[plan] = true
			v, written := p.at(join(fmt.Sprintf("limits[%d].plans", i), plan))
			switch meant := suggestion(plan, slices.Sorted(maps.Keys(held))); {
			case !written || held[plan]:
			case meant != "":
				v.warn("no key of "+shown(c.APIKeysFile)+" is on this plan", "did you mean "+meant+"?")
			case c.Unaided && keys == nil:
				v.warn("nobody is on a plan in this program without API keys", "name a file of them in clients.api_keys_file, or remove the plan")
			case c.Unaided:
				v.warn("no key of "+shown(c.APIKeysFile)+" is on this plan", "give it to one, or remove it")
			}
		}
	}
	for _, plan := range slices.Sorted(maps.Keys(held)) {
		if meant := suggestion(plan, slices.Sorted(maps.Keys(wanted))); there && plan != "" && meant != "" && !wanted[plan] && !held[meant] {
			file.warn("the plan "+bare(plan)+" of a key is in no limit", "did you mean "+meant+"?")
		}
	}
}

func (c *Config) limitEffects(p *problems, l *shed.Limit, path string) {
	c.nobodys(p, l, path)
	if v, there := p.at(path + ".unit"); there && c.Unaided && !slices.Contains(unitWords, l.Unit) {
		v.warn("nothing in this program counts "+l.Unit, "use "+either(unitWords))
	}
	if v, there := p.at(path + ".per"); there && len(c.Shed.Routes) == 0 && (l.Per == shed.PerRoute || l.Per == shed.PerClientRoute) {
		instead := map[shed.Scope]string{shed.PerRoute: "global", shed.PerClientRoute: "client"}[l.Per]
		v.warn("there are no routes that could have balances of their own", "name some under routes, or use per: "+instead)
	}
	if v, there := p.at(path + ".mode"); there && c.Shed.Shadow && !l.Shadow {
		v.warn("enforce does nothing while mode: shadow is set for everything", "remove one of the two")
	}
	if v, there := p.at(path + ".unit"); there && l.Unit == shed.RequestBytes && c.bodiless(l) {
		v.warn("counts bodies, and requests of these routes have none", "use response_bytes, or other routes")
	}
	c.unshared(p, path)
	c.tooDear(p, l, path)
}

// nobodys finds for whom a limit is, and nobody is ever known to be.
func (c *Config) nobodys(p *problems, l *shed.Limit, path string) {
	v, there := p.at(path + ".for")
	if !there {
		return
	}
	var missing []string
	for _, way := range l.For {
		if !slices.Contains(c.ways(), way) {
			missing = append(missing, way)
		}
	}
	_, listed := p.at("clients.identify")
	switch {
	case len(missing) == 0:
	case c.Unaided && slices.Contains(missing, "principal"):
		v.warn("nobody is known by principal in this program", "name api_key or ip, or leave it to programs in which somebody logs in")
	case len(missing) == len(l.For) && listed:
		v.fail("nobody is known by "+either(missing)+", which clients.identify does not list, so that the limit holds for nobody",
			"add it there, or name one that is there")
	default:
		v.warn("nobody is known by "+either(missing), "add it to clients.identify, or remove it")
	}
}

// bodiless tells whether requests of all routes of a limit come without a body.
func (c *Config) bodiless(l *shed.Limit) bool {
	if len(l.Routes) == 0 {
		return false
	}
	for _, r := range c.Shed.Routes {
		method, _, _ := strings.Cut(r.Match, " ")
		if slices.Contains(l.Routes, r.Name) && method != "GET" && method != "HEAD" {
			return false
		}
	}
	return true
}

// tooDear finds routes whose requests weigh more than a limit ever lets through.
func (c *Config) tooDear(p *problems, l *shed.Limit, path string) {
	if _, counted := l.Rule.(limits.InFlight); counted || l.Unit != "" && l.Unit != shed.Requests {
		return
	}
	most := int64(0)
	for _, rule := range append(slices.Collect(maps.Values(l.Plans)), l.Rule) {
		most = max(most, c.most(l, rule))
	}
	if most == 0 { // refuses everything, and is meant to
		return
	}
	for i, r := range c.Shed.Routes {
		if r.Cost <= most || r.Exempt || len(l.Routes) > 0 && !slices.Contains(l.Routes, r.Name) {
			continue
		}
		v, there := p.at(fmt.Sprintf("routes[%d].cost", i))
		who := "cost " + strconv.FormatInt(r.Cost, 10)
		if !there { // the route is the program's
			v, _ = p.at(path + ".name")
			who = fmt.Sprintf("the cost of route %s, %d,", bare(r.Name), r.Cost)
		}
		what := fmt.Sprintf("%s is more than limit %s lets through at any time, which is %d", who, bare(l.Name), most)
		mend := fmt.Sprintf("use a cost of at most %d, or a larger limit", most)
		if c.Unaided && len(l.For) == 0 && !l.Shadow && !r.Shadow && !c.Shed.Shadow {
			v.fail(what+", so that every request is refused", mend)
		} else { // for some clients, or not in fact; and a program may have a cost function
			v.warn(what, mend)
		}
	}
}

// most returns what a rule of a limit lets through at once at most.
func (c *Config) most(l *shed.Limit, rule limits.Rule) int64 {
	if l.Excess == shed.Delay {
		rule = limits.Delay{Rule: rule, MaxWait: l.MaxWait}
	}
	parts := l.SubBuckets
	if c.Store.Redis.URL == "" {
		parts = 0
	}
	policy, err := limits.NewPolicy("limit", rule, limits.InSubBuckets(parts))
	if err != nil {
		return 0 // a limit of the program's, which it will hear about
	}
	most := policy.Quota()
	for i, part := range policy.SubBuckets() {
		if i == 0 {
			most = 0
		}
		most = max(most, part.Quota())
	}
	return most
}

func (c *Config) routeEffects(p *problems, r *shed.Route, path string) {
	if v, there := p.at(path + ".mode"); there && c.Shed.Shadow && !r.Shadow {
		v.warn("enforce does nothing while mode: shadow is set for everything", "remove one of the two")
	}
	if v, there := p.at(path + ".priority"); there && r.LongLived > 0 {
		v.warn("does nothing on a long-lived route, whose requests never wait", "remove one of the two")
	}
	if v, there := p.at(path + ".exempt"); there && r.Exempt && everything(r.Match) {
		v.warn("exempts every request that no other route takes: nothing limits them", "name the paths of probes and metrics")
	}
}

// everything tells whether a pattern takes all that no other takes.
func everything(pattern string) bool {
	if _, rest, found := strings.Cut(pattern, " "); found {
		pattern = strings.TrimLeft(rest, " \t")
	}
	return pattern == "/" || strings.HasPrefix(pattern, "/{") && strings.HasSuffix(pattern, "...}") && strings.Count(pattern, "/") == 1
}

// pairs finds keys that do nothing beside another one of their section.
func (c *Config) pairs(p *problems) {
	idle := func(path string, does bool, beside, mend string) {
		if v, there := p.at(path); there && !does {
			v.warn("does nothing "+beside, mend)
		}
	}
	a := c.Shed.Answers
	idle("answers.legacy", !a.HideRateLimit || a.Legacy == "", "beside rate_limit: false, which hides all of these fields", "remove one of the two")
	for _, key := range []string{"min_rate", "grace", "gather"} {
		idle("bodies."+key, !c.Shed.Bodies.Unwatched, "beside slow: allow, which lets bodies be as slow as they like", "remove one of the two")
	}
	idle("queue.max_wait", c.Shed.Queue.Capacity >= 0, "beside capacity: 0, with which nobody waits", "remove one of the two")
	idle("concurrency.max", c.Shed.Concurrency.Algorithm != "fixed", "beside algorithm: fixed, which stays at initial", "remove one of the two")
	lower := slices.ContainsFunc(c.Shed.Routes, func(r shed.Route) bool { return r.Priority < shed.Critical && !r.Exempt && r.LongLived == 0 })
	idle("concurrency.reserve", c.Shed.Reserve == 0 || lower, "while every route is critical", "give the less important ones priority: sheddable")
	if c.APIKeysFile != "" && check.HasScheme(c.Shed.Clients.APIKeyHeader) {
		v, _ := p.at("clients.api_key_header")
		v.line = p.places.around(v.path)
		v.warn("the whole value is the key, so that its digest is that of what clients send, such as Bearer and all",
			"use a header of its own, such as X-API-Key")
	}
}
