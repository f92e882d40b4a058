package redistest

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel end the process when the test binary ends, however that happens.
func dieWithParent(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
