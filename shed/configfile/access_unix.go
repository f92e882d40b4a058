//go:build unix

package configfile

import "syscall"

// What may be done with a file, as access(2) has it.
const (
	toEnter = 1
	toWrite = 2
	toRead  = 4
)

// may tells whether this user may do something with what is at path. It opens nothing.
func may(path string, what uint32) bool { return syscall.Access(path, what) == nil }
