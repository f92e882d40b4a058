package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// required are the scenarios that the claims of this project rest on.
var required = strings.Fields(`capacity sweep step ramp spike delay-not-drop soak herd retry-storm capacity-dip slow-dep noisy
	noisy-churn heavy-light priority deadline impatient overhead false-positive preproduction pumpkin`)

func TestEveryClaimHasItsScenario(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, s := range all {
		known[s.ID] = true
		if byName, err := Find(s.ID); err != nil || byName.ID != s.ID {
			t.Errorf("%s cannot be found by its name: %v", s.ID, err)
		}
	}
	for _, id := range required {
		if !known[id] {
			t.Errorf("there is no scenario %s", id)
		}
	}
}

// TestEveryScenarioCanFail: a scenario proves something only if an arm without protection comes out badly in it. Where
// nothing but the library is run, there is no such arm.
func TestEveryScenarioCanFail(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		controls, names := 0, make(map[string]bool)
		for _, c := range s.Pass {
			if c.Control {
				controls++
				if c.Arm == "spillway" || c.Pending != "" {
					t.Errorf("%s: %s: a control is about another arm, and must hold now", s.ID, c.Name)
				}
			}
			if names[c.Name] {
				t.Errorf("%s: two rows are called %q", s.ID, c.Name)
			}
			names[c.Name] = true
			if c.Plain == "" {
				t.Errorf("%s: %s: says nothing in plain words", s.ID, c.Name)
			}
		}
		if controls == 0 && s.Kind != "probe" && len(s.Arms) > 1 {
			t.Errorf("%s: no control", s.ID)
		}
	}
}

const good = `
id: test
app: {slots: 10, service: 20ms}
deadline: 200ms
phases: [{name: a, for: 10s}, {name: b, for: 5s, quick: 1s}]
populations: [{name: p, load: ["0.2..3", 1]}]
pass: [{name: row, metric: goodput, phase: b, min: 0.5}]
`

func TestDefaultsAndRamps(t *testing.T) {
	s, err := Parse("x.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	p := s.Populations[0]
	if p.Clients != 1 || p.Timeout != 200*time.Millisecond || p.Route != "api" || s.Static != 10 || s.App.Capacity() != 500 {
		t.Errorf("defaults: %+v", s)
	}
	if p.Load.In(0) != (Load{0.2, 3}) || p.Load.In(1) != (Load{1, 1}) {
		t.Errorf("loads %v", p.Load)
	}
	if s.Quicken(); s.Duration() != 11*time.Second {
		t.Errorf("quick it takes %v", s.Duration())
	}
}

func TestWhatIsWrongIsSaidInOneLine(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"id: test", "id: ''", "a scenario needs a name"},
		{"slots: 10", "slots: 0", "slots"},
		{"slots: 10", "slots: ten", "[3:14]"},
		{"deadline: 200ms", "deadline: 0s", "deadline"},
		{"deadline: 200ms", "deadline: 200ms\ndeadlin: 1s", "deadlin"},
		{"for: 10s", "for: -1s", "phases[0]"},
		{"for: 10s", "for: 100000h", "longer than"},
		{`"0.2..3", 1`, `"0.2..", 1`, "multiple of the capacity"},
		{`"0.2..3", 1`, `-1, 1`, "multiple of the capacity"},
		{`"0.2..3", 1`, `1, 1, 1`, "3 entries for 2 phases"},
		{"min: 0.5", "plain: x", "needs min or max"},
		{"min: 0.5", "min: 0.5, slack: 0.1", "slack_why"},
		{"min: 0.5", "min: 0.5, slack: -0.1, slack_why: x", "slack"},
		{"phase: b", "phase: c", `no phase "c"`},
		{"phase: b", "phase: b, arm: fancy", "fancy"},
		{"phase: b", "phase: b, of: [q]", `no population "q"`},
		{"{name: p,", "{name: p, clients: 1000000000,", "clients"},
		{"{name: p,", "{name: p, retry: {max: 3, policy: often},", "retry"},
		{"pass:", "disturb: [{at: 1s, for: 2s, every: 1s, stall: true}]\npass:", "disturb[0]"},
		{"pass:", "disturb: [{at: 1s, for: 2s, lost: 11}]\npass:", "slots that the app has"},
		{"pass:", "disturb: [{at: 1s, for: 2s, lost: 1, stall: true}]\npass:", "lost"},
		{"{name: p,", "{name: p, from: nowhere,", "nowhere"},
		{"{name: p,", "{name: p, from: \"::ffff:1.2.3.0/120\",", "from"},
		{"id: test", "id: [", "x.yaml"},
		{"{name: p,", "{name: p, polls: true,", "add a switch"},
		{"pass:", "switch: {feature: f, at: 1s, poll_after: 15s}\npass:", "switch: needs"},
		{"pass:", "switch: {feature: f, for: 1s, poll_after: 1s}\npass:", "5s to 10m"},
		{"pass:", "modes: [handler]\nswitch: {feature: f, for: 1s, poll_after: 15s}\npass:", "virtual time only"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		_, err := Parse("x.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "bench: x.yaml") {
			t.Errorf("%s: %v, want one line about %q", c.new, err, c.want)
		}
	}
}

func TestAFileOfOnesOwnIsReadLikeABuiltInOne(t *testing.T) {
	name := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(name, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Find(name); err != nil || s.ID != "test" {
		t.Errorf("%v, %v", s, err)
	}
	for _, missing := range []string{"nowhere", "nowhere.yaml", "../scenarios/step"} {
		if _, err := Find(missing); err == nil {
			t.Errorf("%s was found", missing)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("id: x\nkind: probe\nprobe: {capacity: 2, refill: 1}"))
	f.Add([]byte("populations: [{load: [[1]]}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := Parse("f.yaml", text); err == nil && s.Kind != "probe" {
			for i := range s.Phases { // every load is there
				for _, p := range s.Populations {
					p.Load.In(i)
				}
			}
		}
	})
}
