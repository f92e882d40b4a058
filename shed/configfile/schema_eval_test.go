package configfile

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

// schemaFaults evaluates schema.json for a file.
func schemaFaults(t *testing.T, data []byte) []string {
	t.Helper()
	var tree any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	// JSON's types are the ones that a schema speaks of.
	plain, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(plain, &tree); err != nil {
		t.Fatal(err)
	}
	return readSchema(t).faults("file", tree)
}

func (n *node) faults(path string, v any) (all []string) {
	fault := func(format string, args ...any) { all = append(all, path+": "+fmt.Sprintf(format, args...)) }
	if len(n.Enum) > 0 {
		if s, _ := v.(string); !slices.Contains(n.Enum, s) {
			fault("%v is none of %v", v, n.Enum)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		all = append(all, n.objectFaults(path, v)...)
	case []any:
		if n.Type != "array" || len(v) < n.MinItems || n.MaxItems != nil && len(v) > *n.MaxItems {
			fault("a list of %d", len(v))
		}
		seen := map[string]bool{}
		for i, item := range v {
			if s := fmt.Sprint(item); n.UniqueItems && seen[s] {
				fault("%s is there twice", s)
			} else {
				seen[s] = true
			}
			if n.Items != nil {
				all = append(all, n.Items.faults(fmt.Sprintf("%s[%d]", path, i), item)...)
			}
		}
	case string:
		if n.Type != "string" && n.Type != "" || utf8.RuneCountInString(v) < n.MinLength || !regexp.MustCompile(n.Pattern).MatchString(v) {
			fault("the text %q", v)
		}
	case float64:
		whole := v == math.Trunc(v)
		if n.Type != "number" && (n.Type != "integer" || !whole) || n.Minimum != nil && v < *n.Minimum || n.Maximum != nil && v > *n.Maximum {
			fault("the number %v", v)
		}
	case bool:
		if n.Type != "boolean" {
			fault("a boolean")
		}
	default:
		fault("null")
	}
	return all
}

func (n *node) objectFaults(path string, v map[string]any) (all []string) {
	fault := func(format string, args ...any) { all = append(all, path+": "+fmt.Sprintf(format, args...)) }
	if n.Type != "object" || len(v) < n.MinProperties {
		fault("a mapping of %d keys", len(v))
	}
	for _, name := range n.Required {
		if _, there := v[name]; !there {
			fault("%s is missing", name)
		}
	}
	for name, below := range v {
		for _, also := range n.DependentRequired[name] {
			if _, there := v[also]; !there {
				fault("%s needs %s", name, also)
			}
		}
		p := n.Properties[name]
		for pattern, named := range n.PatternProperties {
			if regexp.MustCompile(pattern).MatchString(name) {
				p = named
			}
		}
		if p != nil {
			all = append(all, p.faults(path+"."+name, below)...)
		} else if n.Additional != nil {
			fault("unknown key %s", name)
		}
	}
	fitting := 0
	for _, one := range n.OneOf {
		if _, there := v[one.Required[0]]; there {
			fitting++
		}
	}
	if len(n.OneOf) > 0 && fitting != 1 {
		fault("%d of the alternatives hold", fitting)
	}
	return all
}
