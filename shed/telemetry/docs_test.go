package telemetry_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/shed/telemetry"
)

var update = flag.Bool("update", false, "write the table of docs/metrics.md anew")

const metricsDoc = "../../docs/metrics.md"

// table is what docs/metrics.md says about each metric.
func table() string {
	var b strings.Builder
	b.WriteString("| metric | kind | labels | meaning |\n|---|---|---|---|\n")
	for _, f := range telemetry.Families() {
		labels := "–"
		if len(f.Labels) > 0 {
			labels = "`" + strings.Join(f.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.Kind, labels, f.Help)
	}
	return b.String()
}

func TestTheDocumentListsEveryMetricAsItIs(t *testing.T) {
	const begin, end = "<!-- generated: go test ./shed/telemetry -update -->\n\n", "\n<!-- end of what is generated -->"
	text, err := os.ReadFile(metricsDoc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table, between %q and %q", metricsDoc, begin, end)
	}
	want := before + begin + table() + end + after
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s is not about the metrics as they are; go test ./shed/telemetry -update writes it anew", metricsDoc)
	}
	if err := os.WriteFile(metricsDoc, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
