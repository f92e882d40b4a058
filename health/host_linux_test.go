package health

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	machine "github.com/shirou/gopsutil/v3/cpu"
)

// procStat is a /proc/stat of two CPUs that have been busy for so many ticks, guests included, and idle for none since.
func procStat(ticks int) string {
	return fmt.Sprintf("cpu  %d 0 0 700 300 0 0 0 %d 0\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr %s\n", 2*ticks, ticks, strings.Repeat("0 ", 5000))
}

func TestAHostThatIsFullOfOthersIsShownAndCountsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := newService(2, 0, time.Now)
		sv.use(0.03, 0)
		began := time.Now()
		sv.serve("/proc/stat", func() string { return procStat(int(time.Since(began) / (10 * time.Millisecond))) })
		s := watch(t, sv, Config{HostCPU: Thresholds{0.75, 0.95}})
		pass(20 * time.Second)
		pressed(t, s, 0, "the process")
		if r := signalNamed(t, s, "host_cpu"); r.Role != Observing || r.Counts || r.Pressure != 1 || !near(r.Value, 1, 0.001) {
			t.Errorf("host_cpu reads %+v", r)
		}
	})
}

func TestProcStatIsBusyAndTotalWithoutCountingGuestsTwice(t *testing.T) {
	for _, tc := range []struct {
		text string
		want hostTimes
	}{
		{"cpu  10 2 5 700 300 1 1 1 4 2\ncpu0 1 1\n", hostTimes{busy: 20, total: 1020}},
		{"cpu  10 2 5 700\n", hostTimes{busy: 17, total: 717}}, // a very old kernel
		{procStat(50), hostTimes{busy: 100, total: 1100}},
	} {
		files := plant(map[string]string{"/proc/stat": tc.text})
		r := newHostReader(files)
		if got, err := r.read(); err != nil || got != tc.want {
			t.Errorf("%.40q: %+v, %v, want %+v", tc.text, got, err, tc.want)
		}
		for _, bad := range []string{"", "garbage\n", "cpu\n", "cpu  1 2 3\n", "cpu  1 2 x 4 5\n", "cpu0 1 2 3 4\n", "cpu  -1 2 3 4\n"} {
			files.write("/proc/stat", bad)
			if got, err := r.read(); reasonOf(err) != Malformed || got != (hostTimes{}) {
				t.Errorf("%q: %+v, %v", bad, got, err)
			}
		}
		files.refuse("/proc/stat", nil, syscall.EIO)
		if _, err := r.read(); reasonOf(err) != Unreadable {
			t.Errorf("unreadable: %v", err)
		}
		files.write("/proc/stat", tc.text)
		if got, err := r.read(); err != nil || got != tc.want {
			t.Errorf("readable again: %+v, %v", got, err)
		}
		r.close()
		if n := files.openFiles(); n != 0 {
			t.Errorf("%d files are still open", n)
		}
	}
}

// gopsutil's own percentage is shared by everybody who asks; the counters are the machine's.
func TestTheRealHostIsReadLikeGopsutilReadsIt(t *testing.T) {
	r := newHostReader(realSystem().files)
	defer r.close()
	before := must[hostTimes](t)(r.read())
	for range 100 {
		machine.Percent(0, false)
	}
	all, err := machine.Times(false)
	if err != nil || len(all) != 1 {
		t.Fatalf("gopsutil says %v, %v", all, err)
	}
	after := must[hostTimes](t)(r.read())
	c := all[0]
	total := c.User + c.Nice + c.System + c.Idle + c.Iowait + c.Irq + c.Softirq + c.Steal
	if ticks := 100 * total; ticks < before.total-1 || ticks > after.total+1 {
		t.Errorf("gopsutil says %v ticks, between our %v and %v", ticks, before.total, after.total)
	}
	if after.busy < before.busy || after.busy > after.total {
		t.Errorf("busy went from %v to %v of %v", before.busy, after.busy, after.total)
	}
}

func FuzzProcStatNeverPanicsOrIsBusierThanThereIsTime(f *testing.F) {
	f.Add(procStat(int(time.Second)))
	f.Add("cpu  1 2 3 4 5 6 7 8 9 10")
	f.Add("cpu 18446744073709551615 18446744073709551615 1 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseHostTimes([]byte(text))
		if err == nil && !(got.busy >= 0 && got.busy <= got.total) || err != nil && got != (hostTimes{}) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	})
}
