package configfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/redisstore"
)

// node is a schema, as far as schema.json uses the language.
type node struct {
	Description       string              `json:"description"`
	Type              string              `json:"type"`
	Default           any                 `json:"default"`
	Examples          []any               `json:"examples"`
	Properties        map[string]*node    `json:"properties"`
	PatternProperties map[string]*node    `json:"patternProperties"`
	Required          []string            `json:"required"`
	Additional        *bool               `json:"additionalProperties"`
	MinProperties     int                 `json:"minProperties"`
	OneOf             []*node             `json:"oneOf"`
	DependentRequired map[string][]string `json:"dependentRequired"`
	Items             *node               `json:"items"`
	MinItems          int                 `json:"minItems"`
	MaxItems          *int                `json:"maxItems"`
	UniqueItems       bool                `json:"uniqueItems"`
	Enum              []string            `json:"enum"`
	Pattern           string              `json:"pattern"`
	MinLength         int                 `json:"minLength"`
	Minimum           *float64            `json:"minimum"`
	Maximum           *float64            `json:"maximum"`

	Schema string `json:"$schema"`
	ID     string `json:"$id"`
	Title  string `json:"title"`
}

// beside is where a file would stand whose API keys are in keys.yaml.
const beside = "testdata/keys/f"

func readSchema(t *testing.T) *node {
	t.Helper()
	var n node
	if err := json.Unmarshal(Schema(), &n); err != nil {
		t.Fatal(err)
	}
	return &n
}

func TestTheSchemaKnowsExactlyTheKeysOfTheDecoder(t *testing.T) {
	root := readSchema(t)
	if root.Schema != "https://json-schema.org/draft/2020-12/schema" {
		t.Errorf("$schema is %q", root.Schema)
	}
	for _, difference := range compare("file", &fileShape, root) {
		t.Error(difference)
	}
}

func TestADifferenceBetweenSchemaAndDecoderIsFound(t *testing.T) {
	spoil := map[string]func(*node){
		"key missing":       func(n *node) { delete(n.Properties["queue"].Properties, "capacity") },
		"key too many":      func(n *node) { n.Properties["queue"].Properties["more"] = &node{} },
		"word missing":      func(n *node) { n.Properties["concurrency"].Properties["algorithm"].Enum = []string{"fixed"} },
		"other bound":       func(n *node) { *n.Properties["queue"].Properties["capacity"].Maximum = 7 },
		"other type":        func(n *node) { n.Properties["queue"].Properties["capacity"].Type = "string" },
		"unknown keys pass": func(n *node) { n.Properties["queue"].Additional = nil },
		"not required":      func(n *node) { n.Properties["limits"].Items.Required = nil },
		"no description":    func(n *node) { n.Properties["queue"].Description = "" },
	}
	for name, spoiled := range spoil {
		root := readSchema(t)
		spoiled(root)
		if len(compare("file", &fileShape, root)) == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}

// compare lists the differences between a shape and its schema.
func compare(path string, s *shape, n *node) (all []string) {
	differ := func(format string, args ...any) { all = append(all, path+": "+fmt.Sprintf(format, args...)) }
	if n.Type != "object" || n.Additional == nil || *n.Additional {
		differ("must be an object without additional properties")
	}
	var required []string
	for _, k := range s.keys {
		p := n.Properties[k.name]
		if p == nil {
			differ("the schema has no %s", k.name)
			continue
		}
		if k.required != "" {
			required = append(required, k.name)
		}
		all = append(all, compareKey(path+"."+k.name, k, p)...)
	}
	for name := range n.Properties {
		if _, known := s.key(name); !known {
			differ("the decoder has no %s", name)
		}
	}
	if !slices.Equal(required, n.Required) {
		differ("required is %v in the schema, %v in the decoder", n.Required, required)
	}
	return all
}

func compareKey(path string, k key, p *node) (all []string) {
	differ := func(format string, args ...any) { all = append(all, path+": "+fmt.Sprintf(format, args...)) }
	types := map[kind]string{
		kindText: "string", kindInteger: "integer", kindNumber: "number", kindBoolean: "boolean", kindDuration: "string",
		kindRate: "string", kindWord: "string", kindWords: "array", kindTexts: "array", kindSection: "object", kindSections: "array",
		kindQuota: "string", kindNamed: "object", kindTextMap: "object", kindNumberMap: "object",
	}
	if p.Type != types[k.kind] {
		differ("type is %s in the schema, %s in the decoder", p.Type, types[k.kind])
	}
	if p.Description == "" {
		differ("has no description")
	}
	switch k.kind {
	case kindSection:
		return append(all, compare(path, k.in, p)...)
	case kindSections:
		if p.MaxItems == nil || int64(*p.MaxItems) != k.max {
			differ("the decoder allows %d items", k.max)
		}
		return append(all, compare(path+"[]", k.in, p.Items)...)
	case kindNamed:
		for _, below := range p.PatternProperties {
			all = append(all, compare(path+".NAME", k.in, below)...)
		}
		if len(p.PatternProperties) != 1 || p.Additional == nil || *p.Additional || len(p.Properties) > 0 {
			differ("must be an object with one pattern of names")
		}
	case kindTextMap, kindNumberMap:
		if len(p.PatternProperties) != 1 || p.Additional == nil || *p.Additional || len(p.Properties) > 0 || p.MinProperties != 1 {
			differ("must be an object with one pattern of names, not empty")
		}
		below := key{name: k.name, kind: kindText, min: k.min, max: k.max}
		if k.kind == kindNumberMap {
			below.kind = kindNumber
		}
		for _, of := range p.PatternProperties {
			of.Examples = p.Examples
			all = append(all, compareKey(path+".NAME", below, of)...)
		}
	case kindInteger, kindNumber:
		unit := map[kind]float64{kindInteger: 1, kindNumber: 1000}[k.kind]
		if p.Minimum == nil || p.Maximum == nil || *p.Minimum*unit != float64(k.min) || *p.Maximum*unit != float64(k.max) {
			differ("bounds are %d to %d in the decoder", k.min, k.max)
		}
	case kindWord:
		if !slices.Equal(p.Enum, k.words) {
			differ("words are %v in the schema, %v in the decoder", p.Enum, k.words)
		}
	case kindWords:
		if p.Items == nil || !slices.Equal(p.Items.Enum, k.words) {
			differ("words are not %v in the schema", k.words)
		}
	case kindDuration, kindRate, kindQuota:
		if p.Pattern == "" {
			differ("has no pattern")
		}
	}
	if len(p.Examples) == 0 && k.kind != kindWords {
		differ("has no example")
	}
	return all
}

// withKey returns the smallest file that sets one key of the schema to v: what is required around it has its example.
func withKey(root *node, path []string, v any) map[string]any {
	file := map[string]any{}
	at, n := file, root
	for i, step := range path {
		if n.Type == "array" {
			n = n.Items
		}
		fill(n, at)
		n = n.Properties[step]
		switch {
		case i == len(path)-1:
			at[step] = v
		case n.Type == "array":
			entry := map[string]any{}
			at[step] = []any{entry}
			at = entry
		default:
			delete(at, "token_bucket") // a limit has one rule
			entry := map[string]any{}
			at[step] = entry
			at = entry
		}
	}
	return file
}

func fill(n *node, into map[string]any) {
	for _, name := range n.Required {
		into[name] = n.Properties[name].Examples[0]
	}
	if len(n.OneOf) > 0 {
		entry := map[string]any{}
		fill(n.Properties["token_bucket"], entry)
		into["token_bucket"] = entry
	}
}

// leaves calls visit for every key of the schema that holds a value.
func leaves(n *node, path []string, visit func(path []string, n *node)) {
	if n.Type == "array" && n.Items.Properties != nil {
		n = n.Items
	}
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		p := n.Properties[name]
		below := append(slices.Clone(path), name)
		if p.Properties != nil || p.Items != nil && p.Items.Properties != nil {
			leaves(p, below, visit)
			continue
		}
		visit(below, p)
	}
}

func TestEveryExampleAndDefaultOfTheSchemaIsAccepted(t *testing.T) {
	root := readSchema(t)
	leaves(root, nil, func(path []string, n *node) {
		values := n.Examples
		if list, isList := n.Default.([]any); n.Default != nil && (!isList || len(list) > 0) {
			values = append(values, n.Default)
		}
		for _, v := range values {
			file := withKey(root, path, v)
			if len(path) == 3 && path[1] == "regions" {
				file["store"].(map[string]any)["regions"].(map[string]any)["weights"] = map[string]any{"eu": 2, "us": 1}
			}
			switch path[len(path)-1] {
			case "max_wait":
				if path[0] == "limits" {
					file["limits"].([]any)[0].(map[string]any)["excess"] = "delay"
				}
			case "sub_buckets":
				entry := file["limits"].([]any)[0].(map[string]any)
				entry["per"], entry["token_bucket"].(map[string]any)["capacity"] = "global", 100
			case "min_size":
				file["limits"].([]any)[0].(map[string]any)["unit"] = "messages"
			case "routes":
				file["routes"] = []any{map[string]any{"name": "write", "match": "/w"}}
			}
			data, err := json.Marshal(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Parse(beside, data, forwarding()); err != nil {
				t.Errorf("%v: %v\n%s", path, err, data)
			}
			for _, fault := range schemaFaults(t, data) {
				t.Errorf("%v: the schema refuses its own example: %s", path, fault)
			}
		}
	})
}

func TestEveryDefaultOfTheSchemaIsTheLibrarysOwn(t *testing.T) {
	root := readSchema(t)
	want := map[string]any{
		"clients.ipv6_prefix": 64.0, "clients.forwarded": "x_forwarded_for", "clients.api_key_header": "X-API-Key",
		"clients.unknown": "refuse", "concurrency.min": 4.0, "concurrency.max": 500.0, "concurrency.initial": 20.0, "concurrency.reserve": 0.0,
		"concurrency.algorithm": "knee", "answers.rate_limit": true, "answers.legacy": "none", "answers.html": true, "bodies.min_rate": "240B/s", "bodies.grace": "5s", "bodies.gather": 16384.0, "bodies.slow": "end", "queue.max_wait": "500ms",
		"health.scheduling.low": "20ms", "health.scheduling.high": "100ms", "health.timer_lag.low": "50ms",
		"health.timer_lag.high": "100ms", "pumpkin.poll_after": "15s", "pumpkin.poll_idle": "1m",
		"store.redis.prefix": redisstore.DefaultPrefix, "store.redis.on_failure": limits.Local.String(), "store.redis.instances": 1.0,
		"store.redis.heartbeat": false, "store.redis.cache_refusals": false, "store.redis.sharing": limits.SharedExactly.String(), "store.redis.lease": redisstore.DefaultLease.String(), "store.regions.prefix": homePrefix, "store.regions.lease": redisstore.DefaultLease.String(), "store.regions.timeout": redisstore.DefaultTimeout.String(), "store.redis.merge_every": redisstore.DefaultMergeEvery.String(), "store.redis.timeout": redisstore.DefaultTimeout.String(), "pumpkin.default_lang": "en",
		"pumpkin.auto.enter_for": "10s", "pumpkin.auto.exit_for": "1m", "pumpkin.auto.min_hold": "2m", "pumpkin.auto.step": "30s", "pumpkin.auto.ttl": "5m", "pumpkin.redis.namespace": "default",
		"pumpkin.admin.listen": DefaultAdminListen,
		"limits.per":           "client", "limits.excess": "reject", "limits.max_wait": "2s", "limits.unit": "requests", "limits.mode": "enforce", "limits.count": "all", "routes.cost": 1.0,
		"routes.priority": "critical", "routes.exempt": false, "routes.mode": "enforce",
	}
	for _, signal := range []string{"cpu", "throttle", "memory", "heap", "memory_stall", "host_cpu"} {
		t, _ := health.DefaultThresholds(signal)
		want["health."+signal+".low"], want["health."+signal+".high"] = t.Low, t.High
	}
	leaves(root, nil, func(path []string, n *node) {
		name := dotted(path)
		if _, isList := n.Default.([]any); isList {
			return
		}
		if !reflect.DeepEqual(n.Default, want[name]) {
			t.Errorf("%s: default is %v, want %v", name, n.Default, want[name])
		}
	})
}

func dotted(path []string) string {
	s := ""
	for i, p := range path {
		if i > 0 {
			s += "."
		}
		s += p
	}
	return s
}

func TestEverythingSetsEveryKeyAndEveryKeyHasAnEffect(t *testing.T) {
	data, err := os.ReadFile("testdata/good/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := Parse(beside, data, forwarding())
	if err != nil {
		t.Fatal(err)
	}
	for path, without := range eachKeyRemoved(t, data) {
		c, err := Parse(beside, without, forwarding())
		if err == nil && reflect.DeepEqual(c, whole) {
			t.Errorf("%s: the configuration is the same with and without it", path)
		}
	}
	leaves(readSchema(t), nil, func(path []string, _ *node) {
		var tree any
		if err := yaml.Unmarshal(data, &tree); err != nil {
			t.Fatal(err)
		}
		if !reaches(tree, path) {
			t.Errorf("everything.yaml does not set %s", dotted(path))
		}
	})
}

func reaches(tree any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	switch tree := tree.(type) {
	case map[string]any:
		below, there := tree[path[0]]
		return there && reaches(below, path[1:])
	case []any:
		return slices.ContainsFunc(tree, func(below any) bool { return reaches(below, path) })
	}
	return false
}

// eachKeyRemoved returns the file once without each of its keys.
func eachKeyRemoved(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	var whole any
	if err := yaml.Unmarshal(data, &whole); err != nil {
		t.Fatal(err)
	}
	var walk func(tree any, path string)
	walk = func(tree any, path string) {
		switch tree := tree.(type) {
		case map[string]any:
			for name, v := range tree {
				delete(tree, name)
				without, err := json.Marshal(whole)
				if err != nil {
					t.Fatal(err)
				}
				all[path+"."+name] = without
				tree[name] = v
				walk(v, path+"."+name)
			}
		case []any:
			for i, v := range tree {
				walk(v, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}
	walk(whole, "")
	return all
}
