package main

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/demo/internal/tour"
)

// The steps whose checks hold on every machine run here for real; the others judge speed, and -tour plays them.
func TestTheTourPassesAgainstTheDemo(t *testing.T) {
	d := started(t)
	var out strings.Builder
	if code := tour.Run(t.Context(), d.target(), &out, "burst", "pumpkin", "admin"); code != 0 {
		t.Errorf("code %d\n%s", code, &out)
	}
	if !strings.HasSuffix(out.String(), " passed, 0 failed\n") {
		t.Errorf("the tour ends with\n%s", &out)
	}
}

// The control: the same steps against a demo that protects nothing must fail, each at what it is about.
func TestTheTourFailsAgainstADemoWithoutRules(t *testing.T) {
	d := started(t, "-config", written(t, "spillway.yaml", "routes:\n  - {name: items, match: \"GET /api/items\"}\n"))
	var out strings.Builder
	if code := tour.Run(t.Context(), d.target(), &out, "burst", "pumpkin"); code != 1 {
		t.Errorf("code %d\n%s", code, &out)
	}
	for _, want := range []string{"FAILED  20 pass, 5 are refused", "FAILED  a report is refused with 503"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no line begins with %q:\n%s", want, &out)
		}
	}
}
