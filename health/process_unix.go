//go:build unix

package health

import (
	"fmt"
	"syscall"
	"time"
)

// processTime is the CPU time this process has used, user and system, over all threads; children are not in it.
func processTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
