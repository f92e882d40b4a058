package gameday

import "syscall"

// ownGroup keeps a Ctrl-C at the terminal from the programs, which the day ends itself and in order; the kernel ends them
// when the day ends in any other way.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
