package health

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const mib = 1 << 20

// statm is /proc/self/statm with so many bytes resident.
func statm(resident int) string {
	return fmt.Sprintf("999999 %d 300 20 0 500 0\n", resident/os.Getpagesize())
}

// memV2 is a cgroup v2 with these files below its mount, on a machine with 1 TiB.
func memV2(self string, resident int, more map[string]string) map[string]string {
	files := v2(self, more)
	files["/proc/self/statm"] = statm(resident)
	files["/proc/meminfo"] = "MemTotal:       1073741824 kB\nMemFree: 1 kB\n"
	return files
}

func memV1(self string, resident int, more map[string]string) map[string]string {
	files := map[string]string{"/proc/self/cgroup": "5:memory:" + self + "\n4:cpu,cpuacct:/elsewhere\n", "/proc/self/mountinfo": mountsV1,
		"/proc/self/statm": statm(resident), "/proc/meminfo": "MemTotal:       1048576 kB\n"}
	for name, text := range more {
		files["/sys/fs/cgroup/memory"+name] = text
	}
	return files
}

// newMemory is the signal on files, beside a runtime that says g.
func newMemory(files *tree, g goStats) *memory {
	return &memory{cgroups: cgroups{fsys: files, kind: memoryLimit}, runtime: &runtimeLook{read: func() goStats { return g }}}
}

func TestMemoryIsTheWorkingSetOfTheTightestLimitAboveUs(t *testing.T) {
	bytes := func(n int) string { return fmt.Sprintln(n * mib) }
	stat := func(inactive int) string {
		return fmt.Sprintf("anon 5\nfile 7\ninactive_anon 9\ninactive_file %d\nactive_file 3\n", inactive*mib)
	}
	for name, tc := range map[string]struct {
		files map[string]string
		want  float64 // negative: absent
		in    string
	}{
		"v2": {memV2("/app", 500*mib, map[string]string{"/app/memory.max": bytes(1000), "/app/memory.high": "max\n",
			"/app/memory.current": bytes(900), "/app/memory.stat": stat(200)}), 0.7, "cgroup /app, of 1000 MiB"},
		"v2 with memory.high below memory.max": {memV2("/app", 500*mib, map[string]string{"/app/memory.max": bytes(1000),
			"/app/memory.high": bytes(700), "/app/memory.current": bytes(900), "/app/memory.stat": stat(200)}), 1, "of 700 MiB"},
		"v2 with memory.high only": {memV2("/app", 500*mib, map[string]string{"/app/memory.max": "max\n",
			"/app/memory.high": bytes(1400), "/app/memory.current": bytes(700), "/app/memory.stat": stat(0)}), 0.5, "of 1400 MiB"},
		"v2 without memory.high": {memV2("/", 500*mib, map[string]string{"/memory.max": bytes(1000),
			"/memory.current": bytes(500), "/memory.stat": stat(0)}), 0.5, "cgroup /, of 1000 MiB"},
		"v2 with a leaf that says max below a tighter parent": {memV2("/pod/app", 500*mib, map[string]string{
			"/pod/memory.max": bytes(1000), "/pod/memory.current": bytes(600), "/pod/memory.stat": stat(0),
			"/pod/app/memory.max": "max\n", "/pod/app/memory.current": bytes(500), "/pod/app/memory.stat": stat(0)}), 0.6, "cgroup /pod, "},
		"v2 with equal limits: the nearer has less of others in it": {memV2("/pod/app", 500*mib, map[string]string{
			"/pod/memory.max": bytes(1000), "/pod/memory.current": bytes(600), "/pod/memory.stat": stat(0),
			"/pod/app/memory.max": bytes(1000), "/pod/app/memory.current": bytes(500), "/pod/app/memory.stat": stat(0)}), 0.5, "cgroup /pod/app, "},
		"v2 without a limit": {memV2("/app", 500*mib, map[string]string{"/app/memory.max": "max\n", "/app/memory.high": "max\n",
			"/app/memory.current": bytes(900), "/app/memory.stat": stat(200)}), -1, "no memory limit"},
		"a limit above what the machine has": {memV2("/app", 500*mib, map[string]string{"/app/memory.max": bytes(2 << 20),
			"/app/memory.current": bytes(900), "/app/memory.stat": stat(200)}), -1, "no memory limit"},
		"v2 at the root of the host": {memV2("/", 500*mib, map[string]string{"/memory.stat": stat(200)}), -1, "no memory limit"},
		"more cache than use":        {memV2("/", 5*mib, map[string]string{"/memory.max": bytes(1000), "/memory.current": bytes(5), "/memory.stat": stat(6)}), 0, ""},
		"v1": {memV1("/app", 500*mib, map[string]string{"/app/memory.limit_in_bytes": bytes(1000),
			"/app/memory.usage_in_bytes": bytes(900), "/app/memory.stat": "inactive_file 5\ntotal_inactive_file " + bytes(200)}), 0.7, "cgroup /app, of 1000 MiB"},
		"v1 without a limit": {memV1("/app", 500*mib, map[string]string{"/app/memory.limit_in_bytes": "9223372036854771712\n",
			"/app/memory.usage_in_bytes": bytes(900), "/app/memory.stat": "total_inactive_file 0\n"}), -1, "no memory limit"},
		"v1 with the machine's own size": {memV1("/app", 500*mib, map[string]string{"/app/memory.limit_in_bytes": bytes(1024),
			"/app/memory.usage_in_bytes": bytes(900), "/app/memory.stat": "total_inactive_file 0\n"}), -1, "no memory limit"},
		"hybrid: the controller is in v1, v2 has none of it": {func() map[string]string {
			files := memV1("/app", 500*mib, map[string]string{"/app/memory.limit_in_bytes": bytes(1000),
				"/app/memory.usage_in_bytes": bytes(500), "/app/memory.stat": "total_inactive_file 0\n"})
			files["/proc/self/cgroup"] += "0::/app\n"
			files["/proc/self/mountinfo"] += "40 30 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
			return files
		}(), 0.5, "cgroup /app, of 1000 MiB"},
		"no cgroup at all": {map[string]string{"/proc/self/statm": statm(1)}, -1, "no memory limit"},
	} {
		t.Run(name, func(t *testing.T) {
			files := plant(tc.files)
			m := newMemory(files, goStats{})
			for i := range 3 {
				x, _, err := m.measure(noon.Add(time.Duration(i) * interval))
				if tc.want < 0 {
					if !errors.Is(err, errNoLimit) {
						t.Errorf("it reads %v, %v, want no limit", x, err)
					}
				} else if err != nil || !near(x, tc.want, 1e-9) {
					t.Errorf("it reads %v, %v, want %v", x, err, tc.want)
				}
			}
			if !strings.Contains(m.source(), tc.in) {
				t.Errorf("the source is %q, want %q in it", m.source(), tc.in)
			}
			m.close()
			if n := files.openFiles(); n != 0 {
				t.Errorf("%d files are still open", n)
			}
		})
	}
}

// pod is a process in a cgroup of 1000 MiB.
func pod(resident, used int) map[string]string {
	return memV2("/app", resident*mib, map[string]string{"/app/memory.max": fmt.Sprintln(1000 * mib),
		"/app/memory.current": fmt.Sprintln(used * mib), "/app/memory.stat": "inactive_file 0\n"})
}

func TestGarbageBelowGOMEMLIMITIsNoMemoryPressureAndALiveHeapIs(t *testing.T) {
	th, _ := DefaultThresholds("memory")
	for _, tc := range []struct {
		why  string
		g    goStats
		want float64
	}{
		{"GOGC high, garbage up to the limit", goStats{hasMemory: true, limit: 900 * mib, live: 100 * mib, used: 950 * mib}, 0},
		{"live heap at 95 %", goStats{hasMemory: true, limit: 900 * mib, live: 950 * mib, used: 950 * mib}, 1},
		{"without GOMEMLIMIT nothing bounds the garbage", goStats{hasMemory: true, live: 100 * mib, used: 950 * mib}, 1},
		{"an old runtime does not say", goStats{limit: 900 * mib}, 1},
	} {
		m := newMemory(plant(pod(950, 950)), tc.g)
		x, _, err := m.measure(noon)
		if p := th.Pressure(x); err != nil || p != tc.want {
			t.Errorf("%s: pressure %v (%v), error %v, want %v", tc.why, p, x, err, tc.want)
		}
	}
}

// What a sidecar holds stays when we shed. The control is the same memory as our own.
func TestTheMemoryOfOthersIsNoPressure(t *testing.T) {
	files := plant(pod(100, 980))
	m := newMemory(files, goStats{})
	now := noon
	for _, tc := range []struct {
		resident int
		ours     bool
	}{{100, false}, {550, false}, {600, true}, {500, true}, {480, false}, {550, false}, {980, true}} {
		files.write("/proc/self/statm", statm(tc.resident*mib))
		now = now.Add(interval)
		x, _, err := m.measure(now)
		if tc.ours && (err != nil || !near(x, 0.98, 1e-9)) || !tc.ours && !errors.Is(err, errNotOurMemory) {
			t.Errorf("with %d MiB of our own it reads %v, %v; ours: %v", tc.resident, x, err, tc.ours)
		}
	}
}

func TestMemoryFilesThatAreNotInTheirDocumentedFormAreNoValue(t *testing.T) {
	const app = "/sys/fs/cgroup/app/"
	for _, tc := range []struct{ name, text, inError string }{
		{app + "memory.max", "", "empty"},
		{app + "memory.max", "0\n", "not a number of bytes above 0"},
		{app + "memory.max", "-1\n", "not a number of bytes"},
		{app + "memory.max", "1e9\n", "not a number of bytes"},
		{app + "memory.max", strings.Repeat("9", 20_000), "longer than"},
		{app + "memory.high", "none\n", "not a number of bytes"},
		{app + "memory.current", "x\n", "not a number of bytes"},
		{app + "memory.current", "18446744073709551616\n", "not a number of bytes"},
		{app + "memory.stat", "anon 5\n", "no inactive_file"},
		{app + "memory.stat", "inactive_file x\n", "not a number"},
		{app + "memory.stat", "inactive_files 5\n", "no inactive_file"},
		{"/proc/self/statm", "5", "no number of resident pages"},
		{"/proc/self/statm", "5 x 3\n", "no number of resident pages"},
		{"/proc/self/statm", "5 9223372036854775807 3\n", "no number of resident pages"},
		{"/proc/self/statm", "", "empty"},
	} {
		good := pod(900, 900)
		good["/sys/fs/cgroup/app/memory.high"] = "max\n"
		files := plant(good)
		m := newMemory(files, goStats{})
		must[float64](t)(read(m.measure(noon)))
		files.write(tc.name, tc.text)
		x, _, err := m.measure(noon.Add(interval))
		if err == nil || !strings.Contains(err.Error(), tc.inError) || reasonOf(err) != Malformed {
			t.Errorf("%s with %.20q: %v, %v, want an error with %q", tc.name, tc.text, x, err, tc.inError)
		}
		files.write(tc.name, good[tc.name])
		if _, _, err := m.measure(noon.Add(2 * interval)); err != nil {
			t.Errorf("%s after it was right again: %v", tc.name, err)
		}
		m.close()
		if n := files.openFiles(); n != 0 {
			t.Errorf("%d files are still open", n)
		}
	}
}

// read drops the time of a measurement.
func read(x float64, _ time.Duration, err error) (float64, error) { return x, err }

func TestAMemoryLimitThatVanishesHoldsThenIsNeutral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := newService(2, 0, time.Now)
		for name, text := range pod(900, 900) {
			if name != "/proc/self/cgroup" && name != "/proc/self/mountinfo" {
				sv.write(strings.Replace(name, "/app", "/pod/app", 1), text)
			}
		}
		s := watch(t, sv, Config{})
		pass(10*time.Second + interval/2)
		pressed(t, s, 0.5, "at 90 %")
		taken := sv.remove("/sys/fs/cgroup/pod/app/memory")
		pass(5 * time.Second)
		pressed(t, s, 0.5, "while it holds")
		if r := signalNamed(t, s, "memory"); r.State != Stale || r.Discarded[Unreadable] != 20 {
			t.Errorf("memory reads %+v", r)
		}
		pass(5 * time.Second)
		pressed(t, s, 0, "without it")
		sv.restore(taken)
		pass(time.Second)
		pressed(t, s, 0.5, "after it returned")
	})
}

func FuzzMemoryFilesNeverPanicOrMintAValue(f *testing.F) {
	f.Add("0::/app\n", mountsV2, "1000\n", "900\n", "inactive_file 200\n", "5 6 7\n")
	f.Add("5:memory:/app\n", mountsV1, "9223372036854771712\n", "5\n", "total_inactive_file 1\n", "1 1\n")
	f.Add("0::/\n", mountsV2, "max\n", "", "inactive_file 99999999999999999999\n", "")
	f.Add("0::/\n", mountsV2, "0\n", "0\n", "inactive_file \n", " 1 ")
	f.Fuzz(func(t *testing.T, self, mounts, limit, used, stat, statm string) {
		files := plant(map[string]string{"/proc/self/cgroup": self, "/proc/self/mountinfo": mounts, "/proc/self/statm": statm})
		if at, err := memoryLimit.locate(files); err == nil {
			for _, p := range at.dirs {
				for _, name := range []string{"/memory.max", "/memory.high", "/memory.limit_in_bytes"} {
					files.write("/"+p.dir+name, limit)
				}
				files.write("/"+p.dir+"/memory.current", used)
				files.write("/"+p.dir+"/memory.usage_in_bytes", used)
				files.write("/"+p.dir+"/memory.stat", stat)
			}
		}
		m := newMemory(files, goStats{})
		x, _, err := m.measure(noon)
		if err == nil && !(x >= 0) {
			t.Errorf("it reads %v", x)
		}
		if err != nil && x != 0 {
			t.Errorf("with the error %v it reads %v", err, x)
		}
		m.close()
		if n := files.openFiles(); n != 0 {
			t.Errorf("%d files are still open", n)
		}
	})
}
