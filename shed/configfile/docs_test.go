package configfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const page = "../../docs/configuration.md"

// TestTheDocumentationListsEveryKeyAsTheSchemaHasIt compares the page's tables with the ones that decoder and schema give.
// Write them anew with -update.
func TestTheDocumentationListsEveryKeyAsTheSchemaHasIt(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text, root := string(data), readSchema(t)
	tables := map[string]string{}
	for _, k := range fileShape.keys {
		n := root.Properties[k.name]
		path := k.name
		if k.kind == kindSections {
			n, path = n.Items, path+"[]"
		}
		all := ""
		if k.in != nil {
			all = rows(path, k.in, n)
		} else {
			all = row(path, k, n)
		}
		tables[k.name] = "| key | type | default | meaning | example |\n|---|---|---|---|---|\n" + all
	}
	for name, want := range tables {
		mark := regexp.MustCompile(`(?s)(<!-- table: ` + name + ` -->\n)(.*?)(<!-- end -->)`)
		found := mark.FindStringSubmatch(text)
		if found == nil {
			t.Errorf("the page has no table %s", name)
			continue
		}
		if *update {
			text = strings.Replace(text, found[0], found[1]+want+found[3], 1)
		} else if found[2] != want {
			t.Errorf("table %s differs\ngot:\n%s\nwant:\n%s", name, found[2], want)
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// rows is the table of one mapping, deeper ones included.
func rows(path string, s *shape, n *node) string {
	var b strings.Builder
	for _, k := range s.keys {
		p := n.Properties[k.name]
		b.WriteString(row(path+"."+k.name, k, p))
		if k.kind == kindSection {
			b.WriteString(rows(path+"."+k.name, k.in, p))
		}
		if k.kind == kindSections {
			b.WriteString(rows(path+"."+k.name+"[]", k.in, p.Items))
		}
	}
	return b.String()
}

// row is the line of one key.
func row(path string, k key, p *node) string {
	example := ""
	if k.kind != kindSection {
		example = "`" + strings.ReplaceAll(flow(p.Examples[0]), "|", `\|`) + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", path, typeOf(k), defaultOf(k, p), p.Description, example)
}

func typeOf(k key) string {
	words := "`" + strings.Join(k.words, "`, `") + "`"
	bound := func(n int64) string {
		if n == maxAmount {
			return "2^53"
		}
		return fmt.Sprint(n)
	}
	switch k.kind {
	case kindText:
		return "text"
	case kindInteger:
		return "whole number, " + bound(k.min) + " to " + bound(k.max)
	case kindNumber:
		return fmt.Sprintf("number, %g to %g", float64(k.min)/1000, float64(k.max)/1000)
	case kindBoolean:
		return "true or false"
	case kindDuration:
		return "duration"
	case kindRate, kindQuota:
		return "rate"
	case kindNamed:
		return "mapping of names"
	case kindTextMap:
		return "mapping of names to text"
	case kindNumberMap:
		return fmt.Sprintf("mapping of names to numbers, %g to %g", float64(k.min)/1000, float64(k.max)/1000)
	case kindWord:
		return "one of " + words
	case kindWords:
		return "list of " + words
	case kindTexts:
		return "list of text"
	case kindSections:
		return "list of mappings"
	}
	return "mapping"
}

func defaultOf(k key, p *node) string {
	list, isList := p.Default.([]any)
	switch {
	case k.required != "":
		return "required"
	case p.Default == nil, isList && len(list) == 0:
		return "none"
	}
	return "`" + flow(p.Default) + "`"
}

// flow prints a value as YAML in one line.
func flow(v any) string {
	switch v := v.(type) {
	case []any:
		var all []string
		for _, item := range v {
			all = append(all, flow(item))
		}
		return "[" + strings.Join(all, ", ") + "]"
	case map[string]any:
		var all []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(all, name+": "+flow(v[name]))
		}
		return "{" + strings.Join(all, ", ") + "}"
	case string:
		if strings.ContainsAny(v, "{}: ") {
			v, _ := json.Marshal(v)
			return string(v)
		}
	}
	return fmt.Sprint(v)
}

func TestEveryExampleOfTheDocumentationIsAccepted(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(data), -1)
	if len(blocks) < 8 {
		t.Fatalf("only %d examples", len(blocks))
	}
	for _, block := range blocks {
		if _, err := Parse(beside, []byte(block[1]), forwarding()); err != nil {
			t.Errorf("%v\n%s", err, block[1])
		}
		for _, fault := range schemaFaults(t, []byte(block[1])) {
			t.Errorf("the schema refuses it: %s\n%s", fault, block[1])
		}
	}
}
