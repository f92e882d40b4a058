package main

import (
	"io"
	"strings"
	"testing"
	"time"
)

// TestFixturesDoWhatTheyAreTimedFor asks each of them often enough to see that letting in leaves nothing behind and that who is used
// up goes on refusing, with the status that is expected.
func TestFixturesDoWhatTheyAreTimedFor(t *testing.T) {
	for _, c := range contenders {
		for _, wide := range []bool{true, false} {
			h, closing, err := c.open(wide)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if h == nil {
				continue
			}
			if err := asked(h, 200)(0, 1); err != nil {
				t.Errorf("%s, the first: %v", c.name, err)
			}
			status := 200
			if !wide && c.status != 0 {
				status = c.status
			}
			if err := asked(h, status)(0, 2000); err != nil {
				t.Errorf("%s, room for everybody %t: %v", c.name, wide, err)
			}
			closing()
		}
	}
}

func TestAnotherStatusIsAnError(t *testing.T) {
	if err := asked(handler, 429)(0, 1); err == nil {
		t.Error("a refusal that was none")
	}
}

// TestTheWholeTable runs everything once with runs that are far too short, to see that it runs.
func TestTheWholeTable(t *testing.T) {
	var out strings.Builder
	if err := run(&out, io.Discard, plan{rounds: 1, span: 10 * time.Microsecond}); err != nil {
		t.Fatal(err)
	}
	for _, c := range contenders {
		if !strings.Contains(out.String(), "| "+c.name+" ") {
			t.Errorf("%s is missing:\n%s", c.name, out.String())
		}
	}
}
