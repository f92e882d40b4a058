package configfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/shed"
)

// Each row is a file that does not do what it says, what is said about that, and a file next to it that is in order and about
// which nothing may be said. A message with "error: " in front refuses the file.
func TestWhatCanNeverApplyIsSaid(t *testing.T) {
	folder := t.TempDir()
	keys := "- {name: alice, digest: \"" + shed.DigestKey("alice", "").String() + "\", plan: premium}\n"
	for name, text := range map[string]string{"keys.yaml": keys, "none.yaml": "[]\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	aided, unaided := Config{}, Config{Unaided: true}
	const bucket = "token_bucket: {capacity: 4, refill: 1/s}"
	limit := func(more string) string { return "limits: [{name: a, " + bucket + more + "}]\n" }
	routes := func(more string) string { return "routes: [{name: x, match: /x" + more + "}]\n" }
	for what, c := range map[string]struct {
		program   Config
		bad, says string
		good      string
	}{
		"a way behind ip":         {aided, "clients: {identify: [ip, api_key]}", "clients.identify: nearly everybody has an address", "clients: {identify: [api_key, ip]}"},
		"principals beside":       {unaided, "clients: {identify: [principal, ip]}", "clients.identify: lists principal, which names nobody", "clients: {identify: [api_key, ip]}"},
		"principals alone":        {unaided, "clients: {identify: [principal]}", "error: clients.identify: lists principal alone", "clients: {identify: [ip]}"},
		"principals of a program": {unaided, "clients: {identify: [principal]}", "error: clients.identify: lists principal alone", ""},
		"a header without keys":   {aided, "clients: {identify: [ip], api_key_header: X-Key}", "clients.api_key_header: does nothing", "clients: {identify: [api_key], api_key_header: X-Key}"},
		"keys that nobody reads":  {aided, "clients: {identify: [ip], api_keys_file: keys.yaml}", "clients.api_keys_file: does nothing", "clients: {api_keys_file: keys.yaml}"},
		"no keys":                 {aided, "clients: {api_keys_file: none.yaml}", "clients.api_keys_file: \"" + filepath.Join(folder, "none.yaml") + "\" lists no key", ""},
		"keys in Host":            {aided, "clients: {api_key_header: host}", "error: clients.api_key_header: host is about the connection", "clients: {api_key_header: X-Host}"},
		"keys in a Bearer":        {aided, "clients: {api_key_header: Authorization, api_keys_file: keys.yaml}", "clients.api_key_header: the whole value is the key", "clients: {api_key_header: Authorization}"},
		"an address in Cookie":    {aided, "clients: {forwarded: Cookie, trusted_proxies: [10.0.0.0/8]}", "error: clients.forwarded: Cookie says something else", "clients: {forwarded: X-Real-IP, trusted_proxies: [10.0.0.0/8]}"},
		"one header for two":      {aided, "clients: {forwarded: x-api-key, trusted_proxies: [10.0.0.0/8]}", "error: clients.forwarded: x-api-key is the header of API keys", ""},
		"forwarded by nobody":     {aided, "clients: {forwarded: x_forwarded_for}", "clients.forwarded: is believed from nobody", "clients: {forwarded: x_forwarded_for, trusted_proxies: [10.0.0.0/8]}"},
		"trusting in two halves":  {aided, "clients: {trusted_proxies: [0.0.0.0/1, 128.0.0.0/1]}", "error: clients.trusted_proxies: trusts a quarter", "clients: {trusted_proxies: [10.0.0.0/8, 172.16.0.0/12, \"fd00::/8\"]}"},
		"exempting everybody":     {aided, "clients: {exempt_from: [0.0.0.0/0]}", "clients.exempt_from: frees a quarter", "clients: {exempt_from: [127.0.0.0/8]}"},

		"for principals":         {unaided, limit(", for: [principal]"), "limits[0].for: nobody is known by principal in this program", limit(", for: [api_key]")},
		"for a way not listed":   {aided, "clients: {identify: [ip]}\n" + limit(", for: [api_key]"), "error: limits[0].for: nobody is known by api_key", "clients: {identify: [api_key, ip]}\n" + limit(", for: [api_key]")},
		"also for such a way":    {aided, "clients: {identify: [ip]}\n" + limit(", for: [api_key, ip]"), "limits[0].for: nobody is known by api_key", limit(", for: [principal, api_key, ip]")},
		"for what a program has": {Config{Shed: shed.Config{Clients: shed.Clients{Identify: []string{"ip"}}}}, limit(", for: [api_key]"), "limits[0].for: nobody is known by api_key", limit(", for: [ip]")},
		"a plan without keys":    {unaided, limit(", plans: {gold: {" + bucket + "}}"), "limits[0].plans.gold: nobody is on a plan in this program", limit("")},
		"a plan that no key has": {unaided, "clients: {api_keys_file: keys.yaml}\n" + limit(", plans: {gold: {"+bucket+"}}"), "limits[0].plans.gold: no key of", "clients: {api_keys_file: keys.yaml}\n" + limit(", plans: {premium: {"+bucket+"}}")},
		"a plan misspelt":        {aided, "clients: {api_keys_file: keys.yaml}\n" + limit(", plans: {premum: {"+bucket+"}}"), "limits[0].plans.premum: no key of", "clients: {api_keys_file: keys.yaml}\n" + limit(", plans: {gold: {"+bucket+"}}")},
		"a key's plan misspelt":  {unaided, "clients: {api_keys_file: keys.yaml}\n" + limit(", plans: {premiums: {"+bucket+"}}"), "clients.api_keys_file: the plan premium of a key is in no limit; did you mean premiums?", ""},
		"a unit of nobody":       {unaided, limit(", unit: rows"), "limits[0].unit: nothing in this program counts rows", limit(", unit: messages")},
		"a unit of the program":  {unaided, limit(", unit: rows"), "limits[0].unit: nothing in this program counts rows", ""},
		"per route without any":  {aided, limit(", per: client_route"), "limits[0].per: there are no routes", limit(", per: client_route") + routes("")},
		"enforced in a shadow":   {aided, "mode: shadow\n" + limit(", mode: enforce"), "limits[0].mode: enforce does nothing", "mode: shadow\n" + limit(", mode: shadow")},
		"bodies of GET":          {aided, "routes: [{name: x, match: GET /x}]\n" + limit(", unit: request_bytes, routes: [x]"), "limits[0].unit: counts bodies", "routes: [{name: x, match: POST /x}]\n" + limit(", unit: request_bytes, routes: [x]")},
		"too dear":               {unaided, limit("") + routes(", cost: 5"), "error: routes[0].cost: cost 5 is more than limit a lets through at any time, which is 4, so that every", limit("") + routes(", cost: 4")},
		"too dear in a program":  {aided, limit("") + routes(", cost: 5"), "routes[0].cost: cost 5 is more than limit a", limit(", unit: messages") + routes(", cost: 5")},
		"too dear for some":      {unaided, limit(", for: [ip]") + routes(", cost: 5"), "routes[0].cost: cost 5 is more than limit a", "limits: [{name: a, token_bucket: {capacity: 0, refill: 1/s}}]\n" + routes(", cost: 5")},
		"too dear in a shadow":   {unaided, limit(", mode: shadow") + routes(", cost: 5"), "routes[0].cost: cost 5 is more than limit a", limit(", plans: {big: {token_bucket: {capacity: 5, refill: 1/s}}}\nclients: {}")[:0] + limit("")},
		"too dear for a window":  {unaided, "limits: [{name: a, burst: {soft: 4/s, hard: 9/s, total: 8/min}}]\n" + routes(", cost: 9"), "error: routes[0].cost: cost 9 is more than limit a lets through at any time, which is 8", "limits: [{name: a, in_flight: {max: 1}}]\n" + routes(", cost: 9")},
		"too dear for a part":    {unaided, "limits: [{name: a, fixed_window: {quota: 9/s}, per: global, sub_buckets: 3}]\nstore: {redis: {url: \"redis+cluster://h:1\", instances: 2}}\n" + routes(", cost: 4"), "error: routes[0].cost: cost 4 is more than limit a", "limits: [{name: a, fixed_window: {quota: 9/s}, per: global, sub_buckets: 3}]\nstore: {redis: {url: \"redis+cluster://h:1\", instances: 2}}\n" + routes(", cost: 3")},
		"too dear elsewhere":     {unaided, limit("") + routes(", cost: 5"), "error: routes[0].cost: ", limit(", routes: [y]") + "routes: [{name: x, match: /x, cost: 5}, {name: y, match: /y}]"},
		"a route of the program": {Config{Unaided: true, Shed: shed.Config{Routes: []shed.Route{{Name: "dear", Cost: 5}}}}, limit(""), "error: limits[0].name: the cost of route dear, 5, is more", "limits: [{name: a, token_bucket: {capacity: 5, refill: 1/s}}]"},

		"an unknown method":        {aided, `routes: [{name: x, match: "NOTIFY /x"}]`, "routes[0].match: NOTIFY is no registered method", `routes: [{name: x, match: "PROPFIND /x"}]`},
		"a method misspelt":        {aided, `routes: [{name: x, match: "PSOT /x"}]`, "error: routes[0].match: \"PSOT /x\" is not a route pattern: there is no method PSOT, did you mean POST?", `routes: [{name: x, match: "POST /x"}]`},
		"a host in capitals":       {aided, `routes: [{name: x, match: "Example.com/x"}]`, "routes[0].match: \"Example.com\" is matched to the letter", `routes: [{name: x, match: "example.com/X"}]`},
		"a path never clean":       {aided, `routes: [{name: x, match: /a//b}]`, "error: routes[0].match: \"/a//b\" is not a route pattern: paths are matched without", `routes: [{name: x, match: /a/b/}]`},
		"an enforced route":        {aided, "mode: shadow\n" + routes(", mode: enforce"), "routes[0].mode: enforce does nothing", routes(", mode: enforce")},
		"a stream's priority":      {aided, routes(", priority: sheddable, long_lived: {max: 1}"), "routes[0].priority: does nothing on a long-lived route", routes(", priority: sheddable")},
		"everything exempt":        {aided, `routes: [{name: x, match: "GET /", exempt: true}]`, "routes[0].exempt: exempts every request", `routes: [{name: x, match: "GET /{$}", exempt: true}]`},
		"the rest exempt":          {aided, `routes: [{name: x, match: "/{all...}", exempt: true}]`, "routes[0].exempt: exempts every request", `routes: [{name: x, match: "/a/{all...}", exempt: true}]`},
		"a cost in a cookie":       {aided, routes(", cost_header: Set-Cookie"), "error: routes[0].cost_header: Set-Cookie says something else", routes(", cost_header: X-Cost")},
		"fields that are hidden":   {aided, "answers: {rate_limit: false, legacy: ratelimit_delta}", "answers.legacy: does nothing", "answers: {rate_limit: false, legacy: none}"},
		"a pace for nobody":        {aided, "bodies: {slow: allow, grace: 3s}", "bodies.grace: does nothing", "bodies: {slow: end, grace: 3s}"},
		"waiting where none do":    {aided, "queue: {capacity: 0, max_wait: 1s}", "queue.max_wait: does nothing", "queue: {capacity: 1, max_wait: 1s}"},
		"a bound of what is fixed": {aided, "concurrency: {algorithm: fixed, max: 30}", "concurrency.max: does nothing", "concurrency: {algorithm: fixed, min: 3, initial: 9}"},
		"a reserve from nobody":    {aided, "concurrency: {reserve: 0.2}\n" + routes(""), "concurrency.reserve: does nothing", "concurrency: {reserve: 0.2}\n" + routes(", priority: sheddable")},

		"a lease of nothing":    {aided, "store: {redis: {url: \"redis://h:1\", lease: 1s}}\n" + limit(""), "store.redis.lease: does nothing", "store: {redis: {url: \"redis://h:1\", lease: 1s}}\n" + limit(", sharing: lease")},
		"merging nothing":       {aided, "store: {redis: {url: \"redis://h:1\", merge_every: 1s}}\n" + limit(""), "store.redis.merge_every: does nothing", "store: {redis: {url: \"redis://h:1\", merge_every: 1s, sharing: async}}\n" + limit("")},
		"a store of nothing":    {aided, "store: {redis: {url: \"redis://h:1\"}}\nlimits: [{name: a, in_flight: {max: 1}}]", "store: keeps nothing", "store: {redis: {url: \"redis://h:1\"}}\n" + limit("")},
		"a signal not watched":  {aided, "pumpkin: {auto: [{id: i, template: degraded, when: {memory_stall: {high: 0.9, low: 0.1}}}]}", "pumpkin.auto[0].when.memory_stall: is not watched", "health: {memory_stall: {}}\npumpkin: {auto: [{id: i, template: degraded, when: {memory_stall: {high: 0.9, low: 0.1}}}]}"},
		"a line that is not":    {aided, "queue: {capacity: 0}\npumpkin: {auto: [{id: i, template: degraded, when: {queue: {high: 0.9, low: 0.1}}}]}", "pumpkin.auto[0].when.queue: never rises", "pumpkin: {auto: [{id: i, template: degraded, when: {queue: {high: 0.9, low: 0.1}}}]}"},
		"health that is off":    {Config{Shed: shed.Config{Health: health.Config{Off: true}}}, "pumpkin: {auto: [{id: i, template: degraded, when: {cpu: {high: 0.9, low: 0.1}}}]}", "pumpkin.auto[0].when.cpu: is not watched", "health: {}\npumpkin: {auto: [{id: i, template: degraded, when: {cpu: {high: 0.9, low: 0.1}}}]}"},
		"a feature of no route": {aided, "pumpkin: {templates: {t: {severity: major, message: {en: x}, features: {serch: 1}}}}\n" + routes(", feature: search"), "pumpkin.templates.t.features: serch is the feature of no route", "pumpkin: {templates: {t: {severity: major, message: {en: x}, features: {search: 1, \"*\": 0.5}}}}\n" + routes(", feature: search")},
	} {
		said := func(text string) []string {
			got, err := Parse(filepath.Join(folder, "f.yaml"), []byte(text), c.program)
			var all []string
			if err != nil {
				for line := range strings.Lines(err.Error()) {
					all = append(all, "error: "+strings.TrimSpace(line))
				}
			} else {
				all = got.Warnings
			}
			for i := range all {
				refused := strings.HasPrefix(all[i], "error: ")
				if line := strings.TrimPrefix(all[i], "error: "); !oneLine.MatchString(line) {
					t.Errorf("%s: not of the form: %s", what, line)
				}
				_, all[i], _ = strings.Cut(all[i], "f.yaml:")
				_, all[i], _ = strings.Cut(all[i], ": ")
				if refused {
					all[i] = "error: " + all[i]
				}
			}
			return all
		}
		found := false
		for _, line := range said(c.bad) {
			found = found || strings.HasPrefix(line, c.says)
		}
		if !found {
			t.Errorf("%s: nobody says %q, but %q", what, c.says, said(c.bad))
		}
		if c.good != "" {
			if all := said(c.good); len(all) > 0 {
				t.Errorf("%s: the control: %q", what, all)
			}
		}
	}
}

// A program may have functions for what the file says nothing about: then nobody is warned.
func TestAProgramMayKnowWhatItsFileDoesNot(t *testing.T) {
	const file = `
clients: {identify: [principal]}
limits:
  - {name: a, token_bucket: {capacity: 4, refill: 1/s}, for: [principal], plans: {gold: {token_bucket: {capacity: 9, refill: 1/s}}}}
  - {name: b, token_bucket: {capacity: 4, refill: 1/s}, unit: rows}
`
	c, err := Parse("f", []byte(file), Config{})
	if err != nil || len(c.Warnings) > 0 || len(c.Shed.Clients.Identify) != 1 {
		t.Errorf("%v %v", c, err)
	}
	if _, err = Parse("f", []byte(file), Config{Unaided: true}); err == nil {
		t.Error("the control: a program without such functions takes it")
	}
}
