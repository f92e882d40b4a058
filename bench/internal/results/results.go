// Package results reads and writes result files: JSON with a version, the runs, and the verdicts.
package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
)

// Schema is the version of the files that this program writes, and the newest that it reads.
const Schema = 1

// File is one result file.
type File struct {
	Schema  int    `json:"schema"`
	Command string `json:"command"`
	// Partial says that the command was broken off.
	Partial bool `json:"partial,omitempty"`
	// Env is where it ran. Simulations have none: their results depend on nothing of the machine.
	Env      *Env              `json:"env,omitempty"`
	Settings map[string]string `json:"settings,omitempty"`
	Verdicts []judge.Verdict   `json:"verdicts"`
	Runs     []*measure.Run    `json:"runs"`
	Map      *Map              `json:"map,omitempty"`
	// Agreements hold real and virtual time against each other, in suites that play both.
	Agreements []Agreement `json:"agreements,omitempty"`
}

// Agreement is one scenario at one level in its forms: the same seed in virtual time, in process, and over sockets.
type Agreement struct {
	Scenario string       `json:"scenario"`
	Level    float64      `json:"level"`
	Margin   judge.Number `json:"margin"` // how far the goodput in real time may be from that in virtual time
	// Criteria is how many criteria the scenario has for Spillway; 0 where they are about several levels and counted with the last.
	Criteria int          `json:"criteria"`
	Sim      *Form        `json:"sim"`
	Handler  *Form        `json:"handler,omitempty"` // nil: not played
	Socket   *Form        `json:"socket,omitempty"`
	Status   judge.Status `json:"status"`
}

// Form is what came out in one form.
type Form struct {
	Goodput judge.Number   `json:"goodput"`
	Met     int            `json:"met"` // of the criteria, those that are pending not counted
	LagP99  measure.Micros `json:"lag_p99_us"`
	Invalid string         `json:"invalid,omitempty"`
}

// Map says how long the app takes to recover from triggers of several sizes at several loads.
type Map struct {
	Scenario string    `json:"scenario"`
	Seed     uint64    `json:"seed"`
	Loads    []float64 `json:"loads"`    // before and after the trigger, multiples of C
	Triggers []float64 `json:"triggers"` // load during it
	Seconds  []int     `json:"seconds"`  // how long it lasts
	Watched  float64   `json:"watched"`  // seconds after it; a recovery that takes as long has not come
	// Recovery is in seconds, by arm, then by Seconds, Triggers and Loads.
	Recovery map[string][][][]judge.Number `json:"recovery"`
}

// Env is the machine of a run in real time.
type Env struct {
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	MaxProcs int    `json:"gomaxprocs"`
	CPU      string `json:"cpu,omitempty"`
	Load     string `json:"load,omitempty"` // the load average when it was written
	Revision string `json:"revision,omitempty"`
}

// ReadEnv describes this machine.
func ReadEnv() *Env {
	e := &Env{Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, MaxProcs: runtime.GOMAXPROCS(0)}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				e.Revision = s.Value
			}
		}
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		e.Load = strings.TrimSpace(string(text))
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				e.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	return e
}

// Encode writes f as indented JSON: the same results are the same bytes.
func (f *File) Encode(w io.Writer) error {
	f.Schema = Schema
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(f)
}

// Write writes f to the named file, "-" for w.
func (f *File) Write(name string, w io.Writer) error {
	if name == "-" {
		return f.Encode(w)
	}
	var b bytes.Buffer
	if err := f.Encode(&b); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// Read reads a result file. One that a newer program has written is refused, as what is new in it could change what the
// rest means.
func Read(name string) (*File, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	var version struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, fmt.Errorf("bench: %s: not a result file: %w", name, err)
	}
	switch {
	case version.Schema > Schema:
		return nil, fmt.Errorf("bench: %s: schema %d is newer than this program, which reads up to %d; use a newer bench", name, version.Schema, Schema)
	case version.Schema < 1:
		return nil, fmt.Errorf("bench: %s: not a result file: it has no schema", name)
	}
	f := new(File)
	if err := json.Unmarshal(text, f); err != nil {
		return nil, fmt.Errorf("bench: %s: %w", name, err)
	}
	for i, r := range f.Runs {
		if r == nil {
			return nil, fmt.Errorf("bench: %s: runs[%d]: there is none", name, i)
		}
		if err := r.Check(); err != nil {
			return nil, fmt.Errorf("bench: %s: runs[%d]: %w", name, i, err)
		}
	}
	if f.Map != nil {
		if err := f.Map.check(); err != nil {
			return nil, fmt.Errorf("bench: %s: map: %w", name, err)
		}
	}
	return f, nil
}

func (m *Map) check() error {
	for arm, planes := range m.Recovery {
		if len(planes) != len(m.Seconds) {
			return fmt.Errorf("%s: %d planes for %d lengths", arm, len(planes), len(m.Seconds))
		}
		for _, plane := range planes {
			if len(plane) != len(m.Triggers) {
				return fmt.Errorf("%s: %d rows for %d triggers", arm, len(plane), len(m.Triggers))
			}
			for _, row := range plane {
				if len(row) != len(m.Loads) {
					return fmt.Errorf("%s: %d cells for %d loads", arm, len(row), len(m.Loads))
				}
			}
		}
	}
	return nil
}

// Exit is the exit code that the results ask for: 0 all passed, 1 a row failed, 3 a run was invalid.
func (f *File) Exit() int {
	code := 0
	for _, v := range f.Verdicts {
		switch v.Status {
		case judge.Invalid:
			return 3
		case judge.Fail:
			code = 1
		}
	}
	for _, r := range f.Runs {
		if r.Invalid != "" {
			return 3
		}
	}
	return code
}
