package main

import (
	"io"
	"strings"
	"testing"
	"time"
)

// TestFixturesDoWhatTheyAreTimedFor asks each of them often enough to see that passing leaves nothing behind and that
// whatever refuses goes on refusing.
func TestFixturesDoWhatTheyAreTimedFor(t *testing.T) {
	for _, c := range controls {
		for name, open := range map[string]opener{"pass": c.pass, "refuse": c.refuse} {
			if open == nil {
				continue
			}
			once, closing, err := open()
			if err != nil {
				t.Errorf("%s, %s: %v", c.name, name, err)
				continue
			}
			if err := repeat(once)(0, 5000); err != nil {
				t.Errorf("%s, %s: %v", c.name, name, err)
			}
			closing()
		}
	}
}

func TestAnOperationThatComesOutOtherwiseIsAnError(t *testing.T) {
	n := 0
	once := func() bool { n++; return n != 7 }
	if err := repeat(once)(0, 10); err == nil || !strings.Contains(err.Error(), "7 of 10") {
		t.Errorf("error %v", err)
	}
}

// TestTheWholeTable runs everything once with runs that are far too short, to see that it runs.
func TestTheWholeTable(t *testing.T) {
	var out strings.Builder
	if err := run(&out, io.Discard, plan{rounds: 1, span: 10 * time.Microsecond}); err != nil {
		t.Fatal(err)
	}
	for _, c := range controls {
		if !strings.Contains(out.String(), "| "+c.name+" ") {
			t.Errorf("no row for %s", c.name)
		}
	}
	if !strings.Contains(out.String(), "QUICK") || !strings.Contains(out.String(), "Noise:") {
		t.Errorf("the table does not say how rough it is:\n%s", out.String())
	}
}
