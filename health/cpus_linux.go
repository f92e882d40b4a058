package health

import (
	"math/bits"
	"os"
	"syscall"
	"unsafe"
)

// affinity is the kernel's mask of the CPUs a thread may run on; the size is that of the Go runtime, 64 Ki CPUs.
type affinity [(64 << 10) / 8]byte

// allowedCPUs is the number of CPUs in the affinity mask of this process's main thread, 0 if the kernel does not say.
// runtime.NumCPU would answer from the start of the program; taskset, a cpuset or hotplug may have changed it since.
func (a *affinity) allowedCPUs() int {
	n, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, uintptr(os.Getpid()), unsafe.Sizeof(*a),
		uintptr(unsafe.Pointer(a)))
	if errno != 0 {
		return 0
	}
	count := 0
	for _, b := range a[:min(len(a), int(n))] {
		count += bits.OnesCount8(b)
	}
	return count
}
