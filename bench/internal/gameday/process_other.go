//go:build !linux

package gameday

import "syscall"

// ownGroup keeps a Ctrl-C at the terminal from the programs, which the day ends itself and in order.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
