package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets the loopback comparison start this program again as its clients.
func TestMain(m *testing.M) {
	if os.Getenv(clientMark) != "" {
		if err := beClients(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestTheLoopbackComparison runs it once with runs that are far too short, to see that everybody is answered.
func TestTheLoopbackComparison(t *testing.T) {
	var out strings.Builder
	if err := loopback(&out, plan{rounds: 1, span: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "| "+own+" ") || !strings.Contains(out.String(), "| "+fieldsOnly+" ") || !strings.Contains(out.String(), "Mark: ") {
		t.Errorf("something is missing:\n%s", out.String())
	}
}

func TestClientsTellWhatWentWrong(t *testing.T) {
	c, err := startClients()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := c.ask("http://127.0.0.1:1/", 1); err == nil {
		t.Error("nobody listens there, and all is well")
	}
}

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
