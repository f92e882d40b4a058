// Package monitoring_test holds the dashboard and the alert rules against the metrics that exist.
package monitoring_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/spillway-go/spillway/shed/telemetry"
)

var (
	metricName = regexp.MustCompile(`\bspillway_[a-z_]+`)
	selector   = regexp.MustCompile(`\b(spillway_[a-z_]+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
	grouping   = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// mistakes says what is wrong with a PromQL expression, as far as names and brackets tell.
func mistakes(expr string) (wrong []string) {
	families := make(map[string]telemetry.Family)
	labels := []string{"job", "instance", "le"}
	for _, f := range telemetry.Families() {
		families[f.Name] = f
		labels = append(labels, f.Labels...)
	}
	for _, name := range metricName.FindAllString(expr, -1) {
		if _, ok := find(families, name); !ok {
			wrong = append(wrong, "no metric "+name)
		}
	}
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		f, _ := find(families, m[1])
		for _, label := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(append([]string{"job", "instance", "le"}, f.Labels...), label[1]) {
				wrong = append(wrong, fmt.Sprintf("%s has no label %s", m[1], label[1]))
			}
		}
	}
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for _, label := range strings.Split(m[1], ",") {
			if !slices.Contains(labels, strings.TrimSpace(label)) {
				wrong = append(wrong, "nothing has a label "+label)
			}
		}
	}
	var open []rune
	closes := map[rune]rune{')': '(', ']': '[', '}': '{'}
	quoted := false
	for _, r := range expr {
		switch {
		case r == '"':
			quoted = !quoted
		case quoted:
		case r == '(' || r == '[' || r == '{':
			open = append(open, r)
		case closes[r] != 0:
			if len(open) == 0 || open[len(open)-1] != closes[r] {
				return append(wrong, "brackets do not match")
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 || quoted {
		wrong = append(wrong, "brackets do not match")
	}
	return wrong
}

// find returns the family of a name, which for a histogram has an ending.
func find(families map[string]telemetry.Family, name string) (telemetry.Family, bool) {
	if f, ok := families[name]; ok {
		return f, f.Kind != "histogram"
	}
	for _, ending := range []string{"_bucket", "_sum", "_count"} {
		if base, cut := strings.CutSuffix(name, ending); cut && families[base].Kind == "histogram" {
			return families[base], true
		}
	}
	return telemetry.Family{}, false
}

func TestTheCheckFindsMistakes(t *testing.T) {
	for _, expr := range []string{
		`rate(spillway_admited_total[5m])`, `spillway_wait_seconds`, `spillway_limit_bucket`, `sum(spillway_limit`, `spillway_limit)`,
		`spillway_waiting{route="x"}`, `sum by (client) (spillway_limit)`, `rate(spillway_gone_total[5m)]`, `spillway_pressure{signal="cpu}`,
	} {
		if len(mistakes(expr)) == 0 {
			t.Errorf("nothing is found in %s", expr)
		}
	}
}

// panel is what the test reads of a Grafana panel.
type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct{ Expr, RefID string }
}

func TestTheDashboardAsksForWhatExistsAndForAllOfIt(t *testing.T) {
	text, err := os.ReadFile("grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Title  string
		Panels []panel
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	seen := make(map[int]bool)
	for i, p := range d.Panels {
		if seen[p.ID] || p.Title == "" || p.Type != "row" && p.Description == "" {
			t.Errorf("panel %d %q has no id of its own, no title or no description", p.ID, p.Title)
		}
		seen[p.ID] = true
		for _, target := range p.Targets {
			for _, wrong := range mistakes(target.Expr) {
				t.Errorf("panel %q: %s: %s", p.Title, target.Expr, wrong)
			}
		}
		for _, o := range d.Panels[:i] {
			a, b := p.GridPos, o.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("panels %q and %q lie on each other", p.Title, o.Title)
			}
		}
	}
	for _, f := range telemetry.Families() {
		if !strings.Contains(string(text), f.Name) {
			t.Errorf("%s is on no panel", f.Name)
		}
	}
}

func TestEveryAlertAsksForWhatExistsAndSaysWhatToDo(t *testing.T) {
	text, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	runbook, err := os.ReadFile("../../docs/production.md")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	alerts := 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			alerts++
			for _, wrong := range mistakes(rule.Expr) {
				t.Errorf("%s: %s", rule.Alert, wrong)
			}
			if s := rule.Labels["severity"]; s != "page" && s != "ticket" {
				t.Errorf("%s: severity %q", rule.Alert, s)
			}
			if rule.Annotations["summary"] == "" {
				t.Errorf("%s says nothing", rule.Alert)
			}
			if !strings.HasSuffix(rule.Annotations["runbook_url"], "docs/production.md#"+strings.ToLower(rule.Alert)) ||
				!strings.Contains(string(runbook), "\n### "+rule.Alert+"\n") {
				t.Errorf("%s: docs/production.md does not say what to do", rule.Alert)
			}
		}
	}
	if n := strings.Count(string(runbook), "\n### Spillway"); n != alerts || alerts < 10 {
		t.Errorf("%d alerts, %d of them in docs/production.md", alerts, n)
	}
}
