package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/bench/internal/measure"
)

// TestAGeneratorThatIsTooSlowIsNoPass: the rate alone says nothing; what leaves late was not sent when it should have been.
func TestAGeneratorThatIsTooSlowIsNoPass(t *testing.T) {
	s := fastScenario(50_000, 1, 20*time.Microsecond, time.Second)
	if c := s.Requests(1); c < 49_999 || c > 50_001 {
		t.Errorf("it asks for %v requests", c)
	}
	run := measure.NewRecorder(s, "none", "remote", 1, 1).Finish()
	run.Generator = measure.Generator{Asked: 50_000, Sent: 50_000, LagP99: 26_000}
	for invalid, want := range map[string]int{"": exitPass, "the generator was late itself": exitInvalid} {
		run.Invalid = invalid
		var out bytes.Buffer
		if code := printSpeed(&out, "in process", run, time.Second); code != want || !strings.Contains(out.String(), "50000 of 50000") || !strings.Contains(out.String(), invalid) {
			t.Errorf("%q: exit %d, %s", invalid, code, out.String())
		}
	}
}
