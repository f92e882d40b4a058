package main

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spillway-go/spillway/bench/scenarios"
)

// What the estimate of a suite reckons with: requests that a core simulates in a second where it has other things to do as well, and what a run in real time takes beside its
// schedule (the last clients give up, the simulation that it is held against).
const (
	simulatedPerSecond = 600_000
	beside             = 1500 * time.Millisecond
)

// quietPeak is up to how many attempts a second the two forms of a scenario are played side by side: together they then take a part of
// one core, and what the one does cannot delay the other by more than a part of a millisecond.
const quietPeak = 2000

// plan says what will be played, how long that takes, and why it is as long as it is.
func (su *suite) plan() {
	simulated, real := 0.0, time.Duration(0)
	var table, virtual strings.Builder
	for _, s := range su.chosen {
		simulated += su.simulated(s)
		modes := su.realModes(s)
		if len(modes) == 0 {
			if s.Virtual != "" {
				fmt.Fprintf(&virtual, "bench:   %-20s %s\n", s.ID, s.Virtual)
			}
			continue
		}
		short := s.InRealTime()
		took := time.Duration(len(short.Levels)) * (short.Duration() + beside)
		how := strings.Join(modes, " and ")
		switch {
		case len(modes) > 1 && sideBySide(short):
			how += ", side by side"
		case len(modes) > 1:
			took *= 2
			how += ", one after the other"
		}
		real += took
		fmt.Fprintf(&table, "bench:   %-20s %4.0f s  %s; %s\n", s.ID, took.Seconds(), how, cmp.Or(s.Length, "its own length"))
	}
	cpu := time.Duration(simulated / simulatedPerSecond / float64(runtime.GOMAXPROCS(0)) * float64(time.Second))
	fmt.Fprintf(su.log, "bench: %d scenarios; in virtual time %.1f million requests, some %v\n", len(su.chosen), simulated/1e6, cpu.Round(time.Second))
	if real == 0 {
		return
	}
	fmt.Fprintf(su.log, "bench: in real time, with Spillway in front, %v:\n%s", real.Round(time.Second), table.String())
	if virtual.Len() > 0 {
		fmt.Fprintf(su.log, "bench: in virtual time only:\n%s", virtual.String())
	}
	end := time.Now().Add(cpu + real)
	fmt.Fprintf(su.log, "bench: all in all some %v, until %s; a run that the generator spoils is played once more\n", (cpu + real).Round(time.Minute), end.Format("15:04"))
}

// simulated is how many requests of s are simulated.
func (su *suite) simulated(s *scenarios.Scenario) (requests float64) {
	if s.Kind == "probe" || s.Kind == "overhead" {
		return 0
	}
	if su.quick {
		s = s.Quick()
	}
	for _, level := range s.Levels {
		requests += s.Requests(level) * float64(len(s.Arms)*su.seeds(s))
	}
	if s.Kind == "bisect" {
		requests *= bisections + 1
	}
	return requests
}

// sideBySide tells that the forms of s do not disturb each other. A burst would: all of it comes in one instant.
func sideBySide(s *scenarios.Scenario) bool {
	for i := range s.Populations {
		if b := s.Populations[i].Bursts; b != nil && b.Size*s.Deadline.Seconds()*s.App.Capacity() > quietPeak/10 {
			return false
		}
	}
	for _, level := range s.Levels {
		if s.Peak(level) > quietPeak {
			return false
		}
	}
	return true
}
