//go:build !unix

package health

import (
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v3/process"
)

// self is made once: making it reads a lot more than the times.
var self = sync.OnceValues(func() (*process.Process, error) { return process.NewProcess(int32(os.Getpid())) })

// processTime is the CPU time this process has used, user and system, over all threads; children are not in it. Only the
// cumulative times are taken from gopsutil: its percentages are of one core, race between callers and jump when asked
// twice in a short time.
func processTime() (time.Duration, error) {
	p, err := self()
	if err != nil {
		return 0, fmt.Errorf("open this process: %w", err)
	}
	t, err := p.Times()
	if err != nil {
		return 0, fmt.Errorf("CPU times of this process: %w", err)
	}
	seconds := t.User + t.System
	if math.IsNaN(seconds) || seconds < 0 || seconds > math.MaxInt64/1e9 {
		return 0, &discard{reason: NotANumber, what: fmt.Sprintf("CPU times of this process: %v s", seconds)}
	}
	return time.Duration(seconds * 1e9), nil
}
