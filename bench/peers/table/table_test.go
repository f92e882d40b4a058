package table

import (
	"os"
	"strings"
	"testing"
)

func ExampleTable() {
	t := Table{Left: 1, Header: []string{"limiter", "ns", "ratio"}}
	t.Add("Spillway", "60", "")
	t.Add("a peer", "103", "0.58×")
	t.Add("another peer", "7")
	_ = t.Markdown(os.Stdout)
	// Output:
	// | limiter      |  ns | ratio |
	// |--------------|----:|------:|
	// | Spillway     |  60 |       |
	// | a peer       | 103 | 0.58× |
	// | another peer |   7 |       |
}

func TestARowThatIsTooLongShows(t *testing.T) {
	table := Table{Left: 1, Header: []string{"a"}}
	table.Add("x", "lost?")
	var b strings.Builder
	if err := table.Markdown(&b); err != nil || !strings.Contains(b.String(), "lost?") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestTheMachineIsNamed(t *testing.T) {
	if line := Machine(); !strings.Contains(line, " cores, go") {
		t.Errorf("%q names neither cores nor Go", line)
	}
}

func TestAModuleThatIsNotBuiltInIsUnknown(t *testing.T) {
	if got := Version("example.com/nobody"); got != "unknown" {
		t.Errorf("version %q", got)
	}
	if got := Version(spillway); got != "this tree" {
		t.Errorf("Spillway's version is %q", got)
	}
}
