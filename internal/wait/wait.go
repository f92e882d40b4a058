// Package wait is for tests with real processes and real time, in which a state comes by itself and nothing announces it. A test that can
// run in virtual time (testing/synctest) does not need it.
package wait

import (
	"testing"
	"time"
)

// Patience is how long a state is waited for. It is long because the machine may be busy: how soon it comes decides nothing.
const Patience = time.Minute

// Until returns when done is true, and fails the test if it does not become so; what says what is waited for.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for begin := time.Now(); !done(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > Patience {
			t.Fatalf("does not come within %v: %s", Patience, what)
		}
	}
}
