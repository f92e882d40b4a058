//go:build !linux

package health

import (
	"fmt"
	"io/fs"

	machine "github.com/shirou/gopsutil/v3/cpu"
)

// hostReader asks gopsutil for cumulative times, never for a percentage: that is one state for all its callers, and clamps
// what it can not tell to 0 or 100.
type hostReader struct{}

func newHostReader(fs.FS) *hostReader { return &hostReader{} }

func (*hostReader) read() (hostTimes, error) {
	all, err := machine.Times(false)
	if err != nil {
		return hostTimes{}, fmt.Errorf("CPU times of the machine: %w", err)
	}
	if len(all) != 1 { // an unreadable source gives an empty list and no error
		return hostTimes{}, malformed("CPU times of the machine: %d entries instead of one", len(all))
	}
	t := all[0]
	total := t.User + t.Nice + t.System + t.Idle + t.Iowait + t.Irq + t.Softirq + t.Steal
	return hostTimes{busy: total - t.Idle - t.Iowait, total: total}, nil
}

func (*hostReader) close() {}
