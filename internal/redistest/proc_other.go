//go:build !linux

package redistest

import "os/exec"

// dieWithParent does nothing: only Linux can tie the life of a process to that of its parent.
func dieWithParent(*exec.Cmd) {}
