package table

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Machine returns one line that says where the figures come from: processor, cores, Go, and how busy the machine is now.
// Files that only Linux has are left out elsewhere.
func Machine() string {
	line := fmt.Sprintf("%s, %d cores, %s %s/%s", processor(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if load := Load(); load != "" {
		line += ", load average " + load
	}
	return line + ", " + time.Now().UTC().Format("2006-01-02")
}

// Load returns the load average of the last minute, or "" where the system does not tell. It is what says whether others
// used the machine too.
func Load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}

func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer f.Close() //nolint:errcheck // it was only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, found := strings.Cut(lines.Text(), ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// spillway is the module under test; it comes from this tree, not from a release.
const spillway = "github.com/spillway-go/spillway"

// Version returns the version of a module as the running binary was built with it: "this tree" for Spillway, and
// "unknown" for a module that is not in the binary, which is how a wrong path shows.
func Version(module string) string {
	if module == spillway {
		return "this tree"
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path != module {
			continue
		}
		if m.Replace != nil {
			return m.Replace.Version
		}
		return m.Version
	}
	return "unknown"
}
