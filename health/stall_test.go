package health

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const pressureFile = "/sys/fs/cgroup/pod/app/memory.pressure"

// stalled is a memory.pressure with a total of full stalls; the kernel's own averages say something else.
func stalled(total time.Duration) string {
	return fmt.Sprintf("some avg10=99.00 avg60=99.00 avg300=99.00 total=%d\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n",
		2*total.Microseconds()+5, total.Microseconds())
}

// stalling is a service whose tasks all wait for memory for so many percent of the time.
func stalling(percent *atomic.Int64) *service {
	sv := newService(2, 0, time.Now)
	sv.write("/sys/fs/cgroup/pod/app/cgroup.events", "populated 1\nfrozen 0\n")
	total, at := time.Duration(0), time.Now()
	sv.serve(pressureFile, func() string {
		now := time.Now()
		total += now.Sub(at) * time.Duration(percent.Load()) / 100
		at = now
		return stalled(time.Hour + total)
	})
	return sv
}

func TestMemoryStallIsTheShareOfTheLastTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var percent atomic.Int64
		s := watch(t, stalling(&percent), Config{MemoryStall: Thresholds{0.10, 0.25}})
		pass(20*time.Second + interval/2)
		pressed(t, s, 0, "without stalls")
		percent.Store(35)
		pass(5 * time.Second)
		pressed(t, s, 0.5, "for half of the window 0.35")
		pass(20 * time.Second)
		pressed(t, s, 1, "for all of it")
		if r := signalNamed(t, s, "memory_stall"); !near(r.Value, 0.35, 0.001) || !strings.Contains(r.Source, "/pod/app") {
			t.Errorf("it reads %+v", r)
		}
		percent.Store(0)
		pass(20 * time.Second)
		pressed(t, s, 0, "after it")
	})
}

func TestPressureInformationThatIsNotThereIsAbsent(t *testing.T) {
	for why, change := range map[string]func(*service){
		"before 4.20":               func(sv *service) { sv.remove(pressureFile) },
		"disabled, seen on opening": func(sv *service) { sv.refuse(pressureFile, syscall.EOPNOTSUPP, nil) },
		"disabled, seen on reading": func(sv *service) { sv.refuse(pressureFile, nil, syscall.EOPNOTSUPP) },
		"v1":                        func(sv *service) { sv.write("/proc/self/mountinfo", mountsV1) },
		"the host's own, at the root": func(sv *service) {
			sv.remove("/sys/fs/cgroup/pod/app/cgroup.events")
		},
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var percent atomic.Int64
				percent.Store(100)
				sv := stalling(&percent)
				change(sv)
				s := watch(t, sv, Config{MemoryStall: Thresholds{0.10, 0.25}})
				pass(20 * time.Second)
				pressed(t, s, 0, "without it")
				if r := signalNamed(t, s, "memory_stall"); r.State != Absent || r.Error == "" {
					t.Errorf("it reads %+v", r)
				}
			})
		})
	}
}

func TestMemoryStallIsOffUnlessAskedFor(t *testing.T) {
	s := must[*Sampler](t)(New(Config{}))
	for _, tr := range s.latest.Load().tracks {
		if tr.name == "memory_stall" || tr.name == "host_cpu" {
			t.Errorf("%s is watched", tr.name)
		}
	}
}

func TestStallsThatCanNotBeRatedAreDiscarded(t *testing.T) {
	files := plant(v2("/pod/app", map[string]string{"/pod/app/cgroup.events": "populated 1\n", "/pod/app/memory.pressure": stalled(time.Minute)}))
	m := newMemoryStall(files)
	now := noon
	look := func() (float64, error) {
		now = now.Add(time.Second)
		x, _, err := m.measure(now)
		return x, err
	}
	for range 2 {
		if _, err := look(); !errors.Is(err, errNoNews) {
			t.Errorf("with less than 2 s seen: %v", err)
		}
	}
	if x, err := look(); err != nil || x != 0 {
		t.Errorf("with 2 s seen: %v, %v", x, err)
	}
	for text, reason := range map[string]Reason{
		"": Malformed, "garbage": Malformed, "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n": Malformed,
		"full avg10=0.00\n": Malformed, "full total=-5\n": Malformed, "full total=9223372036854775807\n": Malformed,
		strings.Repeat("full", 10_000): Malformed, stalled(time.Second): CounterFell,
	} {
		files.write(pressureFile, stalled(time.Minute))
		look()
		files.write(pressureFile, text)
		if x, err := look(); err == nil || reasonOf(err) != reason {
			t.Errorf("%.40q: %v, %v, want %v", text, x, err, reason)
		}
	}
	files.write(pressureFile, stalled(time.Minute))
	now = now.Add(time.Hour)
	look()
	files.write(pressureFile, stalled(time.Hour)) // more than passed: all of it
	look()
	if x, err := look(); err != nil || x != 1 {
		t.Errorf("more stall than time: %v, %v", x, err)
	}
	m.cgroups.close()
}

func FuzzPressureFilesNeverPanicOrMintATime(f *testing.F) {
	f.Add(stalled(time.Second))
	f.Add("full avg10=0.00 avg60=0.00 avg300=0.00 total=\n")
	f.Add("full total=18446744073709551615\nfull total=1\n")
	f.Add("full \n")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseStall([]byte(text))
		if d < 0 || err != nil && (d != 0 || reasonOf(err) != Malformed) {
			t.Errorf("%v, %v", d, err)
		}
		if err == nil && !strings.Contains(text, fmt.Sprint(d.Microseconds())) {
			t.Errorf("%v µs are not in it", d.Microseconds())
		}
	})
}
