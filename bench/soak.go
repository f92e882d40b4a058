package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/internal/results"
	"github.com/spillway-go/spillway/bench/scenarios"
)

func soakCommand(ctx context.Context, args []string, out, log io.Writer) (int, error) {
	var o outputs
	f := flags("soak")
	o.flags(f)
	length := f.Duration("duration", 10*time.Minute, "how long, after the warm-up")
	mode := f.String("mode", "socket", "how the built-in app is called: handler or socket")
	if err := parse(f, args, 0); err != nil {
		return exitUsage, err
	}
	switch {
	case *length < time.Second || *length > 24*time.Hour:
		return exitUsage, usagef("-duration %v is not from 1s to 24h", *length)
	case *mode != "handler" && *mode != "socket":
		return exitUsage, usagef("-mode %q is neither handler nor socket", *mode)
	}
	s, err := soakScenario(*length)
	if err != nil {
		return exitInvalid, err
	}
	fmt.Fprintf(log, "bench: soak at 0.9 of the capacity, %s, until %s\n", *mode, time.Now().Add(s.Duration()).Format("15:04:05"))
	run, err := soak(ctx, s, *mode, log)
	if err != nil {
		return exitInvalid, err
	}
	file := &results.File{Command: "soak", Env: results.ReadEnv(), Partial: run.Partial, Runs: []*measure.Run{run}}
	file.Verdicts = verdicts(s, *mode, s.Arms, file.Runs)
	return conclude(file, &o, out)
}

// soakWarmup is how long connections, pools and the gate take to get used to the load, and the recorder to have a histogram for each of
// the last 62 seconds.
const soakWarmup = 65 * time.Second

// soakScenario is the day of the scenario soak, as long as there is time for, with the criteria of a process that must not grow.
func soakScenario(length time.Duration) (*scenarios.Scenario, error) {
	s, err := scenarios.Find("soak")
	if err != nil {
		return nil, err
	}
	s.Phases = []scenarios.Phase{{Name: "warmup", For: min(soakWarmup, length/2), Warmup: true}, {Name: "soak", For: length}}
	upTo := func(max float64) *float64 { return &max }
	for i := range s.Pass {
		if s.Pass[i].Metric == "slope" {
			s.Pass[i].Max = upTo(0.25) // by chance alone a quarter of ten minutes is a tenth off: the queue remembers seconds
		}
	}
	for _, c := range []scenarios.Criterion{
		{Name: "the heap does not grow", Metric: "heap_growth", Max: upTo(1.25), Plain: "Live heap in the last quarter over that in the first."},
		{Name: "goroutines do not pile up", Metric: "goroutine_growth", Max: upTo(1.25), Plain: "Goroutines in the last quarter over those in the first."},
		{Name: "descriptors do not pile up", Metric: "descriptor_growth", Max: upTo(1.25), Plain: "Open files and sockets in the last quarter over those in the first."},
		{Name: "goroutines end", Metric: "goroutines_left", Max: upTo(0), Plain: "Goroutines that are still there when app, server and clients are closed."},
	} {
		c.Arm = "spillway"
		s.Pass = append(s.Pass, c)
	}
	return s, nil
}

// soak plays s and watches the process meanwhile.
func soak(ctx context.Context, s *scenarios.Scenario, mode string, log io.Writer) (*measure.Run, error) {
	before := runtime.NumGoroutine()
	watched := new(vitals)
	l := local{scenario: s, arm: "spillway", mode: mode, level: 1, seed: 1}
	l.progress = func(second int, p measure.Point, inFlight int) {
		watched.look()
		if second%60 == 0 {
			v := watched.all[len(watched.all)-1]
			fmt.Fprintf(log, "bench: %3d min: heap %.1f MiB, %.0f goroutines, %.0f descriptors, %d requests in flight\n", second/60, v[heap]/(1<<20), v[goroutines], v[descriptors], inFlight)
		}
	}
	run, err := l.run(ctx)
	if err != nil {
		return nil, err
	}
	after := time.Duration(0)
	for ; runtime.NumGoroutine() > before && after < 5*time.Second; after += 50 * time.Millisecond {
		time.Sleep(50 * time.Millisecond)
	}
	run.Extra["goroutines_left"] = float64(max(0, runtime.NumGoroutine()-before))
	warm := int(s.Phases[0].For.Seconds())
	for what, name := range []string{"heap_growth", "goroutine_growth", "descriptor_growth"} {
		run.Extra[name] = watched.growth(what, warm)
	}
	return run, nil
}

// What is watched.
const (
	heap = iota // live bytes, as the last collection of garbage found them
	goroutines
	descriptors
)

// vitals are what a process uses, once a second.
type vitals struct{ all [][3]float64 }

func (v *vitals) look() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	open, _ := os.ReadDir("/proc/self/fd") // where there is none, none are counted
	v.all = append(v.all, [3]float64{float64(sample[0].Value.Uint64()), float64(runtime.NumGoroutine()), float64(len(open))})
}

// growth is the mean of the last quarter over that of the first, after so many seconds of warm-up.
func (v *vitals) growth(what, warm int) float64 {
	all := v.all[min(warm, len(v.all)):]
	quarter := len(all) / 4
	if quarter == 0 {
		return 1
	}
	first, last := 0.0, 0.0
	for i := range quarter {
		first += all[i][what]
		last += all[len(all)-1-i][what]
	}
	if first == 0 {
		return 1
	}
	return last / first
}
