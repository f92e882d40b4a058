//go:build !race

package identity

import (
	"testing"

	"github.com/spillway-go/spillway/shed"
)

// The race detector lets pools forget at random, so this says nothing there.
func TestLookingKeysUpDoesNotAllocate(t *testing.T) {
	r := resolver(t, shed.Clients{APIKeys: []shed.APIKey{{Name: "a", Digest: shed.DigestKey("k", "")}, {Name: "b", Digest: shed.DigestKey("l", salt)}}})
	if n := testing.AllocsPerRun(100, func() { r.keys.holder("l"); r.keys.holder("none") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
