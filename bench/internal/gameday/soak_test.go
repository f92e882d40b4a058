package gameday

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/bench/internal/judge"
)

// The shortest soak: all programs start, gateways with the race detector among them, customers of every kind are served, nothing
// grows, and all is at rest and gone at the end.
func TestASoakInShort(t *testing.T) {
	var log strings.Builder
	report, err := Run(t.Context(), Options{Soak: 20 * time.Second, Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range report.scenes {
		for _, c := range s.checks {
			if c.Status == judge.Fail && !c.Timed { // time is for a machine that does nothing else
				t.Errorf("%s: %+v", s.act.name, c)
			}
		}
	}
	if report.Count(judge.Pass) == 0 || report.Partial || t.Failed() {
		t.Error(log.String())
	}
	var page bytes.Buffer
	if err := report.HTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Soak: 20s", "Quiet evening", "Goroutines", "Minute by minute", "<svg"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(page.String(), "http://") || strings.Contains(page.String(), "<script") {
		t.Error("the page loads something")
	}
}

func TestTheSoakAsksForWhatItSays(t *testing.T) {
	d := &day{stage: &stage{crowd: newCrowd()}}
	if rate := asked(d.soakLoad()); rate < .899*serviceCapacity || rate > .901*serviceCapacity {
		t.Errorf("%v a second of %v", rate, serviceCapacity)
	}
}

// Each thing that must not grow is noticed when it does: a goroutine or a descriptor for each 500 requests, 400 bytes for each.
func TestALeakIsNoticed(t *testing.T) {
	const requests, mib = 32_400, 1 << 20 // in ten minutes, in each of two gateways
	calm := resources{goroutines: 30, files: 60, heap: 5 * mib, resident: 120 * mib}
	for what, leak := range map[string]resources{
		"":                      {},
		"goroutines at rest":    {goroutines: requests / 500},
		"descriptors at rest":   {files: requests / 500},
		"live heap":             {heap: 400 * requests},
		"memory of the process": {resident: 3000 * requests},
	} {
		at := func(part float64) resources {
			r := calm
			r.goroutines += int(part * float64(leak.goroutines))
			r.files += int(part * float64(leak.files))
			r.heap += part * leak.heap
			r.resident += part * leak.resident
			return r
		}
		var all []level
		for i := range 300 {
			l := level{time.Duration(i) * 2 * time.Second, at(float64(i) / 300)}
			l.heap += float64(i%7) * mib // what collections have not come to yet
			l.goroutines += i % 50       // what is in flight
			all = append(all, l)
		}
		s := &scene{load: &load{}}
		s.steady("g", at(.2), at(1), all)
		for _, c := range s.checks {
			if want := c.What == "g: "+what; (c.Status == judge.Fail) != want {
				t.Errorf("a leak of %q: %+v", what, c)
			}
		}
	}
	s := &scene{load: &load{}}
	if s.steady("g", calm, calm, nil); s.checks[0].Status != judge.Fail {
		t.Errorf("nothing was seen: %+v", s.checks[0])
	}
}
