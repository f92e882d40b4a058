package spillway_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// kinds are those that the table of CONTRIBUTING.md has to know. Add one, and the table has to follow.
const kinds = `
permit-leak-panic double-release off-by-one
queue-abandoned-waiter queue-lost-wakeup queue-busy-loop queue-cancel slow-client-holds-permit long-lived reject-stalls
retry-after-wrong retry-after-zero retry-after-negative early-admit header-duplicate header-missing header-missing-concurrency
cors cors-preflight ip-spoof ip-empty ip-port ipv6-rotation
fractional-rate zero-limit state-on-deny clock-overflow negative-cost cost-over-burst ttl-unit window-stale race-check-then-act
idle-then-unlimited config-ignored runtime-limit instance-multiplied double-count key-growth key-collision race-map goroutine-leak
redis-no-ttl redis-outage-hang backend-parity
writer-flush writer-hijack echo-double-error health-shed retry-amplify`

var (
	kindRow = regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\| [^|]+ \\| (.+) \\|$")
	oneTest = regexp.MustCompile("^`([a-z0-9/]+)\\.((?:Test|Fuzz)[A-Za-z0-9]+)(?:/([^`]+))?`$")
)

// TestEveryKindOfDefectHasItsTests holds the table of kinds in CONTRIBUTING.md against the code.
func TestEveryKindOfDefectHasItsTests(t *testing.T) {
	page, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, kind := range strings.Fields(kinds) {
		known[kind] = false
	}
	for _, row := range kindRow.FindAllStringSubmatch(string(page), -1) {
		kind := row[1]
		if there, ok := known[kind]; !ok || there {
			t.Errorf("the table has %s, which this test does not know or the table has twice", kind)
		}
		known[kind] = true
		for name := range strings.SplitSeq(row[2], "<br>") {
			if why := missing(name); why != "" {
				t.Errorf("%s: %s", kind, why)
			}
		}
	}
	for kind, there := range known {
		if !there {
			t.Errorf("the table has no tests for %s", kind)
		}
	}
}

// A table that named tests which are not there would be found out.
func TestTheCheckOfKindsCanFail(t *testing.T) {
	for name, found := range map[string]bool{
		"`limits.TestKindWindowStale`":                                         true,
		"`limits.TestMemoryKeepsThePromisesOfAStore/a_refusal_writes_nothing`": true,
		"`limits.TestMemoryKeepsThePromisesOfAStore/a_refusal_writes_novels`":  false,
		"`limits.TestThatIsNotThere`":                                          false,
		"`nowhere.TestKindWindowStale`":                                        false,
		"`limits/TestKindWindowStale`":                                         false,
		"limits.TestKindWindowStale":                                           false,
		"`limits.TestKindWindow`":                                              false,
		"`shed.TestQueueBusyLoopIsNone`":                                       true,
		"`shed.ATestQueueBusyLoopIsNone`":                                      false,
		"`shed.FuzzThatIsNotThere`":                                            false,
		"`limits/redisstore.TestBreaker`":                                      false,
	} {
		if why := missing(name); (why == "") != found {
			t.Errorf("%s: %q, want found: %v", name, why, found)
		}
	}
}

// missing says why a test that the table names cannot be run, or nothing.
func missing(name string) string {
	m := oneTest.FindStringSubmatch(name)
	if m == nil {
		return name + " is not spelled `folder.TestName` or `folder.TestName/a_part`"
	}
	folder, test, part := m[1], m[2], m[3]
	inFolder := textOf(filepath.FromSlash(folder), "_test.go")
	if !strings.Contains(inFolder, "\nfunc "+test+"(") {
		return folder + " has no test " + test
	}
	// Parts of the suite of stores have their names there, those of other tests beside them.
	part = `"` + strings.ReplaceAll(part, "_", " ") + `"`
	if m[3] != "" && !strings.Contains(inFolder, part) && !strings.Contains(textOf("limits/storetest", ".go"), part) {
		return test + " has no part " + part
	}
	return ""
}

// textOf is the text of a folder's files whose names end so.
func textOf(folder, end string) string {
	var text strings.Builder
	names, _ := filepath.Glob(filepath.Join(folder, "*"+end))
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return ""
		}
		text.Write(b)
	}
	return text.String()
}
