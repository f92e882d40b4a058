package health

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const statV2 = "usage_usec 5000000\nuser_usec 1\nsystem_usec 1\nnr_periods 50\nnr_throttled 47\nthrottled_usec 3\n"

func v2(self string, more map[string]string) map[string]string {
	files := map[string]string{"/proc/self/cgroup": "0::" + self + "\n", "/proc/self/mountinfo": mountsV2}
	for name, text := range more {
		files["/sys/fs/cgroup"+name] = text
	}
	return files
}

func v1(self string, more map[string]string) map[string]string {
	files := map[string]string{
		"/proc/self/cgroup":    "5:memory:/elsewhere\n4:cpu,cpuacct:" + self + "\n1:name=systemd:/init\n",
		"/proc/self/mountinfo": mountsV1,
	}
	for name, text := range more {
		files["/sys/fs/cgroup/cpu,cpuacct"+name] = text
	}
	return files
}

func TestTheTightestQuotaAboveUsIsFound(t *testing.T) {
	statV1 := "nr_periods 50\nnr_throttled 47\nthrottled_time 3\n"
	full := group{usage: 5 * time.Second, periods: 50, throttled: 47, hasUsage: true, hasStat: true}
	as := func(name string, cores float64) group { g := full; g.name, g.cores = "cgroup "+name, cores; return g }

	for name, tc := range map[string]struct {
		files map[string]string
		want  group
	}{
		"v2": {v2("/app", map[string]string{"/app/cpu.max": "20000 100000\n", "/app/cpu.stat": statV2}), as("/app", 0.2)},
		"v2 seen from its own namespace": {
			v2("/", map[string]string{"/cpu.max": "150000 100000\n", "/cpu.stat": statV2}), as("/", 1.5)},
		"v2 at the root of the host, which has no cpu.max": {v2("/", map[string]string{"/cpu.stat": statV2}), group{}},
		"v2 with a leaf that says max below a tighter parent": {
			v2("/pod/app", map[string]string{
				"/pod/cpu.max": "50000 100000\n", "/pod/cpu.stat": statV2,
				"/pod/app/cpu.max": "max 100000\n", "/pod/app/cpu.stat": "usage_usec 1\nnr_periods 0\nnr_throttled 0\n"}),
			as("/pod", 0.5)},
		"v2 with a leaf above a tighter parent": {
			v2("/pod/app", map[string]string{
				"/pod/cpu.max": "50000 100000\n", "/pod/cpu.stat": statV2,
				"/pod/app/cpu.max": "200000 100000\n", "/pod/app/cpu.stat": "usage_usec 1\nnr_periods 0\nnr_throttled 0\n"}),
			as("/pod", 0.5)},
		"v2 with equal quotas: the nearer has less of others in it": {
			v2("/pod/app", map[string]string{
				"/pod/cpu.max": "50000 100000\n", "/pod/cpu.stat": "usage_usec 1\nnr_periods 0\nnr_throttled 0\n",
				"/pod/app/cpu.max": "100000 200000\n", "/pod/app/cpu.stat": statV2}),
			as("/pod/app", 0.5)},
		"v2 without the cpu controller in the leaf": {
			v2("/pod/app", map[string]string{
				"/pod/cpu.max": "300000 100000\n", "/pod/cpu.stat": statV2, "/pod/app/cpu.stat": "usage_usec 1\n"}),
			as("/pod", 3)},
		"v2 without any quota": {v2("/app", map[string]string{"/app/cpu.max": "max 100000\n", "/app/cpu.stat": statV2}), group{}},
		"v2 mounted from a cgroup below the root": {
			map[string]string{
				"/proc/self/cgroup":              "0::/docker/4f/app\n",
				"/proc/self/mountinfo":           "30 24 0:27 /docker/4f /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
				"/sys/fs/cgroup/cpu.max":         "70000 100000\n",
				"/sys/fs/cgroup/cpu.stat":        "usage_usec 1\nnr_periods 0\nnr_throttled 0\n",
				"/sys/fs/cgroup/app/cpu.max":     "20000 100000\n",
				"/sys/fs/cgroup/app/cpu.stat":    statV2,
				"/sys/fs/cgroup/docker/4f/wrong": "",
			}, as("/docker/4f/app", 0.2)},
		"v2 with a cgroup outside of our namespace": {
			map[string]string{
				"/proc/self/cgroup":       "0::/../app\n",
				"/proc/self/mountinfo":    mountsV2,
				"/sys/fs/cgroup/cpu.max":  "20000 100000\n",
				"/sys/fs/cgroup/cpu.stat": statV2,
			}, as("/", 0.2)},
		"v2 mounted from outside of our namespace": {
			map[string]string{
				"/proc/self/cgroup":           "0::/../../app\n",
				"/proc/self/mountinfo":        "30 24 0:27 /../.. /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
				"/sys/fs/cgroup/app/cpu.max":  "20000 100000\n",
				"/sys/fs/cgroup/app/cpu.stat": statV2,
			}, as("/app", 0.2)},
		"v2 at a mount point with a space": {
			map[string]string{
				"/proc/self/cgroup":           "0::/a:b\n",
				"/proc/self/mountinfo":        `30 24 0:27 / /mnt/my\040cgroups rw - cgroup2 none rw` + "\n",
				"/mnt/my cgroups/a:b/cpu.max": "20000 100000\n", "/mnt/my cgroups/a:b/cpu.stat": statV2,
			}, as("/a:b", 0.2)},
		"v1": {v1("/app", map[string]string{"/app/cpu.cfs_quota_us": "20000\n", "/app/cpu.cfs_period_us": "100000\n",
			"/app/cpu.stat": statV1, "/app/cpuacct.usage": "5000000000\n"}), as("/app", 0.2)},
		"v1 in a container whose mount shows it as the root": {
			map[string]string{
				"/proc/self/cgroup": "4:cpu,cpuacct:/docker/4f\n",
				"/proc/self/mountinfo": "31 30 0:28 /docker/4f /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n" +
					"32 30 0:29 /docker/4f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
				"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "20000\n", "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
				"/sys/fs/cgroup/cpu,cpuacct/cpu.stat": statV1, "/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage": "5000000000\n",
			}, as("/docker/4f", 0.2)},
		"v1 nested with a tighter parent": {
			v1("/pod/app", map[string]string{
				"/pod/cpu.cfs_quota_us": "50000\n", "/pod/cpu.cfs_period_us": "100000\n", "/pod/cpu.stat": statV1,
				"/pod/cpuacct.usage": "5000000000\n", "/pod/app/cpu.cfs_quota_us": "-1\n",
				"/pod/app/cpu.cfs_period_us": "100000\n", "/pod/app/cpu.stat": statV1, "/pod/app/cpuacct.usage": "1\n",
			}), as("/pod", 0.5)},
		"v1 without bandwidth control": {v1("/app", map[string]string{"/app/cpuacct.usage": "1\n"}), group{}},
		"v1 with CPU time in a hierarchy of its own": {
			map[string]string{
				"/proc/self/cgroup": "2:cpuacct:/app\n1:cpu:/app\n0::/\n",
				"/proc/self/mountinfo": "31 30 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
					"32 30 0:29 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n",
				"/sys/fs/cgroup/cpu/app/cpu.cfs_quota_us": "20000\n", "/sys/fs/cgroup/cpu/app/cpu.cfs_period_us": "100000\n",
				"/sys/fs/cgroup/cpu/app/cpu.stat": statV1, "/sys/fs/cgroup/cpuacct/app/cpuacct.usage": "5000000000\n",
			}, as("/app", 0.2)},
		"v1 without accounting of the same cgroup": {
			map[string]string{
				"/proc/self/cgroup":                       "2:cpuacct:/\n1:cpu:/app\n",
				"/proc/self/mountinfo":                    "31 30 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
				"/sys/fs/cgroup/cpu/app/cpu.cfs_quota_us": "20000\n", "/sys/fs/cgroup/cpu/app/cpu.cfs_period_us": "100000\n",
			}, group{name: "cgroup /app", cores: 0.2}},
		"hybrid: the controller is in v1, v2 has none of it": {
			map[string]string{
				"/proc/self/cgroup": "4:cpu,cpuacct:/app\n0::/app\n",
				"/proc/self/mountinfo": mountsV1 +
					"40 30 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
				"/sys/fs/cgroup/unified/app/cpu.stat":                "usage_usec 99\n",
				"/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us":    "20000\n",
				"/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us":   "100000\n",
				"/sys/fs/cgroup/cpu,cpuacct/app/cpu.stat":            statV1,
				"/sys/fs/cgroup/cpu,cpuacct/app/cpuacct.usage":       "5000000000\n",
				"/sys/fs/cgroup/cpu,cpuacct/app/cpuacct.usage_user":  "1\n",
				"/sys/fs/cgroup/cpu,cpuacct/app/cgroup.clone_childs": "0\n",
			}, as("/app", 0.2)},
		"hybrid: the controller is in v2": {
			map[string]string{
				"/proc/self/cgroup":                   "5:memory:/app\n0::/app\n",
				"/proc/self/mountinfo":                mountsV1 + "40 30 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
				"/sys/fs/cgroup/unified/app/cpu.max":  "20000 100000\n",
				"/sys/fs/cgroup/unified/app/cpu.stat": statV2,
			}, as("/app", 0.2)},
		"no /proc":         {nil, group{}},
		"no cgroup mount":  {map[string]string{"/proc/self/cgroup": "0::/\n", "/proc/self/mountinfo": "24 1 0:22 / /proc rw - proc proc rw\n"}, group{}},
		"an empty listing": {map[string]string{"/proc/self/cgroup": "", "/proc/self/mountinfo": mountsV2}, group{}},
	} {
		t.Run(name, func(t *testing.T) {
			files := plant(tc.files)
			c := cgroups{fsys: files}
			for range 2 { // the second time from open descriptors
				if got := must[group](t)(c.read(noon)); got != tc.want {
					t.Fatalf("found %+v, want %+v", got, tc.want)
				}
			}
			c.close()
			if n := files.openFiles(); n != 0 {
				t.Errorf("%d files are still open after close", n)
			}
		})
	}
}

func TestWhatIsNotInItsDocumentedFormIsNoLimitAndNoValue(t *testing.T) {
	good := v2("/app", map[string]string{"/app/cpu.max": "20000 100000\n", "/app/cpu.stat": statV2})
	goodV1 := v1("/app", map[string]string{"/app/cpu.cfs_quota_us": "20000\n", "/app/cpu.cfs_period_us": "100000\n",
		"/app/cpu.stat": "nr_periods 50\nnr_throttled 47\n", "/app/cpuacct.usage": "5000000000\n"})
	const cpu, cpuV1 = "/sys/fs/cgroup/app/", "/sys/fs/cgroup/cpu,cpuacct/app/"
	huge := strings.Repeat("9", 20_000)

	for _, tc := range []struct{ name, text, inError string }{
		{cpu + "cpu.max", "", "empty"},
		{cpu + "cpu.max", "\n", "not QUOTA PERIOD"},
		{cpu + "cpu.max", "20000\n", "not QUOTA PERIOD"},
		{cpu + "cpu.max", "max\n", "not QUOTA PERIOD"},
		{cpu + "cpu.max", "0 100000\n", "not QUOTA PERIOD"},
		{cpu + "cpu.max", "20000 0\n", "not QUOTA PERIOD"},
		{cpu + "cpu.max", "-20000 100000\n", "not QUOTA PERIOD"},
		{cpu + "cpu.max", "20000 100000 7\n", "not QUOTA PERIOD"},
		{cpu + "cpu.max", "18446744073709551616 100000\n", "not QUOTA PERIOD"},
		{cpu + "cpu.max", "\x00\xff\xfe", "not QUOTA PERIOD"},
		{cpu + "cpu.max", huge, "longer than 16383 bytes"},
		{cpu + "cpu.stat", "", "empty"},
		{cpu + "cpu.stat", huge, "longer than 16383 bytes"},
		{cpu + "cpu.stat", "usage_usec\n", "no usage_usec"},
		{cpu + "cpu.stat", "usage_usecs 5\nnr_periods 1\nnr_throttled 1\n", "no usage_usec"},
		{cpu + "cpu.stat", "usage_usec -5\nnr_periods 1\nnr_throttled 1\n", "not a number"},
		{cpu + "cpu.stat", "usage_usec 18446744073709551615\nnr_periods 1\nnr_throttled 1\n", "usage_usec is"},
		{cpu + "cpu.stat", "usage_usec 5\nnr_throttled 1\n", "no nr_periods"},
		{cpu + "cpu.stat", "usage_usec 5\nnr_periods 1\n", "no nr_throttled"},
		{cpuV1 + "cpu.cfs_quota_us", "0\n", "neither -1 nor"},
		{cpuV1 + "cpu.cfs_quota_us", "-2\n", "neither -1 nor"},
		{cpuV1 + "cpu.cfs_period_us", "0\n", "not a time in µs"},
		{cpuV1 + "cpu.cfs_period_us", "", "empty"},
		{cpuV1 + "cpuacct.usage", "1e9\n", "not a time in ns"},
		{cpuV1 + "cpuacct.usage", "9223372036854775808\n", "not a time in ns"},
		{"/proc/self/cgroup", "garbage\n", "not ID:CONTROLLERS:PATH"},
		{"/proc/self/cgroup", "0::relative\n", "not ID:CONTROLLERS:PATH"},
		{"/proc/self/mountinfo", "garbage\n", "not a mount"},
		{"/proc/self/mountinfo", strings.Repeat("x", maxText+1), "longer than"},
	} {
		t.Run(fmt.Sprintf("%s says %.20q", tc.name, tc.text), func(t *testing.T) {
			files := plant(good)
			if strings.Contains(tc.name, "cpuacct") {
				files = plant(goodV1)
			}
			c := cgroups{fsys: files}
			if strings.HasPrefix(tc.name, "/sys") { // it is noticed from the start, and when a good file turns bad
				must[group](t)(c.read(noon))
			}
			files.write(tc.name, tc.text)
			g, err := c.read(noon)
			fresh := cgroups{fsys: files}
			if _, early := fresh.read(noon); early == nil || err == nil || early.Error() != err.Error() {
				t.Errorf("from the start the error is %v, later it is %v", early, err)
			}
			if err == nil || !strings.Contains(err.Error(), tc.inError) {
				t.Fatalf("error %v, want one with %q (group %+v)", err, tc.inError, g)
			}
			if g != (group{}) {
				t.Errorf("with the error came %+v", g)
			}
			if got := reasonOf(err); got != Malformed {
				t.Errorf("reason %q, want %q", got, Malformed)
			}
			fresh.close()
			c.close()
			if n := files.openFiles(); n != 0 {
				t.Errorf("%d files are still open", n)
			}
		})
	}
}

func TestAFileThatCanNotBeReadIsAnErrorUnlessTheSystemDoesNotHaveIt(t *testing.T) {
	good := v2("/app", map[string]string{"/app/cpu.max": "20000 100000\n", "/app/cpu.stat": statV2})
	for name, tc := range map[string]struct {
		openErr, readErr error
		fails            bool
	}{
		"permission":                              {openErr: syscall.EACCES, fails: true},
		"too many open files":                     {openErr: syscall.EMFILE, fails: true},
		"input/output":                            {readErr: syscall.EIO, fails: true},
		"switched off when opened":                {openErr: syscall.EOPNOTSUPP},
		"switched off and only says so when read": {readErr: syscall.EOPNOTSUPP},
		"not built in":                            {openErr: syscall.ENOENT},
	} {
		t.Run(name, func(t *testing.T) {
			files := plant(good)
			files.refuse("/sys/fs/cgroup/app/cpu.max", tc.openErr, tc.readErr)
			c := cgroups{fsys: files}
			g, err := c.read(noon)
			if (err != nil) != tc.fails || g != (group{}) {
				t.Errorf("group %+v, error %v", g, err)
			}
			if tc.fails && reasonOf(err) != Unreadable {
				t.Errorf("reason %q, want %q", reasonOf(err), Unreadable)
			}
		})
	}
}

func TestAQuotaThatVanishesIsNotReadAsNoQuota(t *testing.T) {
	for _, gone := range []string{
		"/sys/fs/cgroup/app/cpu.max", "/sys/fs/cgroup/app/cpu.stat", "/sys/fs/cgroup/app", "/sys", "/proc", "/",
	} {
		t.Run(gone, func(t *testing.T) {
			files := plant(v2("/app", map[string]string{
				"/cpu.stat": "usage_usec 1\n", "/app/cpu.max": "20000 100000\n", "/app/cpu.stat": statV2}))
			c := cgroups{fsys: files}
			want := must[group](t)(c.read(noon))

			taken := files.remove(gone)
			if gone != "/proc" { // descriptors of the cgroup go on working without it
				for i := range 300 {
					if g, err := c.read(noon.Add(time.Duration(i) * time.Second)); err == nil {
						t.Fatalf("after %d s without %s: %+v and no error", i, gone, g)
					}
				}
			}
			files.restore(taken)
			if got := must[group](t)(c.read(noon.Add(301 * time.Second))); got != want {
				t.Errorf("after it returned: %+v, want %+v", got, want)
			}
			c.close()
			if n := files.openFiles(); n != 0 {
				t.Errorf("%d files are still open", n)
			}
		})
	}
}

func TestAHierarchyThatIsUnmountedIsNotReadAsNoQuota(t *testing.T) {
	files := plant(v2("/app", map[string]string{"/app/cpu.max": "20000 100000\n", "/app/cpu.stat": statV2}))
	c := cgroups{fsys: files}
	must[group](t)(c.read(noon))
	files.write("/proc/self/mountinfo", "24 1 0:22 / /proc rw - proc proc rw\n")
	files.remove("/sys")
	for range 3 {
		if g, err := c.read(noon); err == nil {
			t.Errorf("after it was unmounted: %+v and no error", g)
		}
	}
}

func TestAQuotaThatIsLiftedIsNoLimitAtOnce(t *testing.T) {
	files := plant(v2("/app", map[string]string{"/app/cpu.max": "20000 100000\n", "/app/cpu.stat": statV2}))
	c := cgroups{fsys: files}
	must[group](t)(c.read(noon))
	files.write("/sys/fs/cgroup/app/cpu.max", "max 100000\n")
	if got := must[group](t)(c.read(noon)); got != (group{}) {
		t.Errorf("found %+v, want none", got)
	}
}

func TestAProcessThatMovesIsFoundAgainWithinAMinute(t *testing.T) {
	files := plant(v2("/old", map[string]string{
		"/old/cpu.max": "20000 100000\n", "/old/cpu.stat": statV2,
		"/new/cpu.max": "40000 100000\n", "/new/cpu.stat": statV2}))
	c := cgroups{fsys: files}
	must[group](t)(c.read(noon))
	files.write("/proc/self/cgroup", "0::/new\n")
	if got := must[group](t)(c.read(noon.Add(59 * time.Second))); got.cores != 0.2 {
		t.Errorf("before the refresh: %+v", got)
	}
	if got := must[group](t)(c.read(noon.Add(60 * time.Second))); got.cores != 0.4 {
		t.Errorf("after the refresh: %+v, want 0.4 cores", got)
	}
	files.write("/proc/self/cgroup", "0::/old\n")
	files.remove("/sys/fs/cgroup/new")
	if got := must[group](t)(c.read(noon.Add(61 * time.Second))); got.cores != 0.2 {
		t.Errorf("after the other cgroup was removed: %+v, want 0.2 cores", got)
	}
}

func TestARefreshThatFailsKeepsTheOldDescriptors(t *testing.T) {
	files := plant(v2("/app", map[string]string{"/app/cpu.max": "20000 100000\n", "/app/cpu.stat": statV2}))
	c := cgroups{fsys: files}
	want := must[group](t)(c.read(noon))
	files.refuse("/sys/fs/cgroup/app/cpu.stat", syscall.EMFILE, nil)
	if got := must[group](t)(c.read(noon.Add(2 * time.Minute))); got != want {
		t.Errorf("found %+v, want %+v", got, want)
	}
}

func FuzzCgroupFilesNeverPanicOrMintALimit(f *testing.F) {
	f.Add("0::/app\n", mountsV2, "20000 100000\n", statV2)
	f.Add("4:cpu,cpuacct:/app\n", mountsV1, "-1\n", "nr_periods 1\n")
	f.Add("0::/../x\n", "30 24 0:27 /.. /sys/fs/cgroup rw - cgroup2 c rw\n", "max 1\n", "")
	f.Add(":::\n", " - \n", "1 0\n", "usage_usec 99999999999999999999\n")
	f.Fuzz(func(t *testing.T, self, mounts, quota, stat string) {
		files := plant(map[string]string{"/proc/self/cgroup": self, "/proc/self/mountinfo": mounts})
		if at, err := cpuQuota.locate(files); err == nil {
			for _, p := range at.dirs {
				for _, name := range []string{"/cpu.max", "/cpu.cfs_quota_us", "/cpu.cfs_period_us"} {
					files.write("/"+p.dir+name, quota)
				}
				files.write("/"+p.dir+"/cpu.stat", stat)
			}
		}
		c := cgroups{fsys: files}
		g, err := c.read(noon)
		if err == nil && g.name != "" && !(g.cores > 0) {
			t.Errorf("a limit of %v cores", g.cores)
		}
		if err != nil && errors.Is(err, errAbsent) {
			t.Errorf("an unreadable limit counts as none: %v", err)
		}
		c.close()
		if n := files.openFiles(); n != 0 {
			t.Errorf("%d files are still open", n)
		}
	})
}
