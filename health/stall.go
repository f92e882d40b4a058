package health

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"time"
)

const (
	stallWindow = 10 * time.Second
	// leastStall is what must have been seen of the window: a stall of 60 ms is a quarter of 250 ms.
	leastStall = 2 * time.Second
)

// memoryStall is the share of the last 10 s in which every task of our cgroup that wanted to run waited for memory: the growth
// of `full total` in its memory.pressure. The averages in the same file are the kernel's own, over its own times.
type memoryStall struct {
	cgroups cgroups
	window  window[time.Duration]
	group   string
	words   string
}

func newMemoryStall(fsys fs.FS) *memoryStall {
	return &memoryStall{cgroups: cgroups{fsys: fsys, kind: memoryPSI}, window: newWindow[time.Duration](stallWindow), words: "no pressure file of our cgroup"}
}

func (m *memoryStall) name() string { return "memory_stall" }

func (m *memoryStall) source() string { return m.words }

func (m *memoryStall) measure(round time.Time) (float64, time.Duration, error) {
	var total time.Duration
	var group string
	err := m.cgroups.ask(round, func() (err error) {
		if len(m.cgroups.levels) == 0 {
			group = ""
			return nil
		}
		l := &m.cgroups.levels[0] // our own
		group = l.name
		text, err := l.limit.read(m.cgroups.buf[:])
		if err != nil {
			return err
		}
		total, err = parseStall(text)
		return err
	})
	switch {
	case err != nil:
		return 0, 0, err
	case group == "":
		return 0, 0, errNoPSI
	case group != m.group:
		m.window.n = 0
		m.group, m.words = group, "time in which all of "+group+" waited for memory, of the last 10 s"
	}
	place, err := m.window.add(round)
	if err != nil {
		return 0, 0, err
	}
	*place = total
	grown, dt := total-m.window.oldest().value, m.window.covers()
	switch {
	case grown < 0:
		m.window.forget()
		return 0, 0, errStallFell
	case dt < leastStall:
		return 0, 0, errNoNews
	}
	return min(1, grown.Seconds()/dt.Seconds()), dt, nil
}

// parseStall reads the total, in µs, of the line `full avg10=0.00 avg60=0.00 avg300=0.00 total=0`.
func parseStall(text []byte) (time.Duration, error) {
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte("full "))
		if !ok {
			continue
		}
		_, digits, _ := bytes.Cut(rest, []byte("total="))
		n, ok := parseUint(bytes.TrimSpace(digits))
		if !ok || n > math.MaxInt64/1000 {
			return 0, malformed("memory.pressure: %.80q has no total", line)
		}
		return time.Duration(n) * time.Microsecond, nil
	}
	return 0, malformed("memory.pressure has no line full")
}

var (
	errNoPSI     = fmt.Errorf("%w: the kernel keeps no pressure information for our cgroup", errAbsent)
	errStallFell = &discard{reason: CounterFell, what: "the time of stalls went back"}
)
