package health

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"
)

// reopenAfter is how long descriptors are kept: one stays on the old cgroup when the process is moved to another.
const reopenAfter = 60 * time.Second

// kind is what a cgroups is asked about; it decides which files are opened.
type kind uint8

const (
	cpuQuota    kind = iota // cpu.max and what belongs to it
	memoryLimit             // memory.max and what belongs to it
	memoryPSI               // memory.pressure
)

// locate is where the files of this kind are.
func (k kind) locate(fsys fs.FS) (location, error) {
	h, err := survey(fsys)
	if err != nil {
		return location{}, err
	}
	switch k {
	case memoryLimit:
		return h.of("memory"), nil
	case memoryPSI: // v1 has none
		return h.unified(), nil
	}
	return h.of("cpu"), nil
}

// cgroups reads the accounting of this process's cgroup and its ancestors, from descriptors that stay open.
type cgroups struct {
	fsys fs.FS
	kind kind

	at     location
	levels []level // from our own cgroup upwards, only those with a limit file
	opened time.Time
	buf    [maxFile]byte
}

// maxFile bounds the files of cgroups. The longest, memory.stat, has about 2 KiB.
const maxFile = 16 << 10

// level is one cgroup with the files that matter; files the system does not have are nil.
type level struct {
	name          string
	v2            bool
	limit, period *file // of a quota v1 has a file for each, v2 one for both; of memory there is no period
	high          *file // memory.high
	stat, usage   *file // of the CPU v2 has one file for both
}

// read is the cgroup with the smallest quota; the zero group if there is none. Our own may say `max` below a tighter
// parent, so all are asked, and each time, since quotas change in place.
func (c *cgroups) read(now time.Time) (g group, err error) {
	err = c.ask(now, func() error {
		g, err = c.smallest()
		return err
	})
	if err != nil {
		return group{}, err
	}
	return g, nil
}

// ask makes sure that the files are open, asks, and asks once more with other descriptors if the answer is an error: those may
// be of a cgroup that is gone.
func (c *cgroups) ask(now time.Time, question func() error) error {
	if c.opened.IsZero() {
		if err := c.open(now); err != nil {
			return err
		}
	} else if now.Sub(c.opened) >= reopenAfter {
		// A refresh may fail for reasons of its own, such as too many open files in the middle of an overload; the old
		// descriptors are as good as they were.
		if err := c.open(now); err != nil {
			c.opened = now
		}
	}
	err := question()
	if err == nil {
		return nil
	}
	if c.open(now) == nil && question() == nil {
		return nil
	}
	return err
}

// open finds the files and opens them, then lets go of those opened before. If it fails, nothing changes.
func (c *cgroups) open(now time.Time) error {
	at, err := c.kind.locate(c.fsys)
	if err != nil && !missing(err) {
		return err
	}
	if at.key == "" && c.at.key != "" {
		return fmt.Errorf("%s is no longer mounted", c.at.key)
	}
	var levels []level
	for _, p := range at.dirs {
		l, err := c.openLevel(at, p)
		if err != nil {
			closeLevels(levels)
			return err
		}
		if l.limit != nil {
			levels = append(levels, l)
		}
	}
	// Where we still are in the same cgroup, a file that was there can only have vanished: that says nothing about the
	// limit, least of all that there is none.
	if at.key == c.at.key {
		if lost := lostFile(c.levels, levels); lost != "" {
			closeLevels(levels)
			return fmt.Errorf("/%s vanished", lost)
		}
	}
	closeLevels(c.levels)
	c.at, c.levels, c.opened = at, levels, now
	return nil
}

// openLevel opens what p has. The level has no limit file where there is no limit: the root of v2, a cgroup without the
// controller, a kernel without bandwidth control.
func (c *cgroups) openLevel(at location, p place) (level, error) {
	l := level{v2: at.v2, name: "cgroup " + p.cgroup}
	type wanted struct {
		at   **file
		dir  string
		name string
	}
	var files []wanted // the limit first
	switch {
	case c.kind == memoryPSI:
		// The root of the host has the file as well, where it is about everybody; it lacks what every other cgroup has.
		events, err := c.openFile(p.dir, "cgroup.events")
		if err != nil || events == nil {
			return l, err
		}
		events.close()
		files = []wanted{{&l.limit, p.dir, "memory.pressure"}}
	case c.kind == memoryLimit && at.v2:
		files = []wanted{{&l.limit, p.dir, "memory.max"}, {&l.high, p.dir, "memory.high"}, {&l.usage, p.dir, "memory.current"},
			{&l.stat, p.dir, "memory.stat"}}
	case c.kind == memoryLimit:
		files = []wanted{{&l.limit, p.dir, "memory.limit_in_bytes"}, {&l.usage, p.dir, "memory.usage_in_bytes"},
			{&l.stat, p.dir, "memory.stat"}}
	case at.v2:
		files = []wanted{{&l.limit, p.dir, "cpu.max"}, {&l.stat, p.dir, "cpu.stat"}}
	default:
		files = []wanted{{&l.limit, p.dir, "cpu.cfs_quota_us"}, {&l.stat, p.dir, "cpu.stat"}, {&l.period, p.dir, "cpu.cfs_period_us"}}
		for _, q := range at.acct {
			if q.cgroup == p.cgroup {
				files = append(files, wanted{&l.usage, q.dir, "cpuacct.usage"})
			}
		}
	}
	for i, f := range files {
		var err error
		if *f.at, err = c.openFile(f.dir, f.name); err != nil {
			l.close()
			return level{}, err
		}
		if i == 0 && *f.at == nil {
			break
		}
	}
	return l, nil
}

// openFile is nil without error if the system does not have the file. Some files open and only refuse to be read.
func (c *cgroups) openFile(dir, name string) (*file, error) {
	f, err := openFile(c.fsys, path.Join(dir, name))
	if err == nil {
		if _, err = f.read(c.buf[:]); err == nil {
			return f, nil
		}
		f.close()
	}
	if missing(err) {
		return nil, nil
	}
	return nil, err
}

// smallest asks every level for its quota and the tightest for its use. Of equals the one nearest to us counts: less in
// it belongs to others.
func (c *cgroups) smallest() (group, error) {
	var g group
	tightest := -1
	for i := range c.levels {
		cores, limited, err := c.levels[i].cores(c.buf[:])
		if err != nil {
			return group{}, err
		}
		if limited && (tightest < 0 || cores < g.cores) {
			tightest, g.cores = i, cores
		}
	}
	if tightest < 0 {
		return group{}, nil
	}
	l := &c.levels[tightest]
	g.name = l.name
	return g, l.account(&g, c.buf[:])
}

// lostFile is a file of old that is missing in new, where both are levels of the same location.
func lostFile(old, new []level) string {
	have := make(map[string]bool)
	for _, l := range new {
		for _, f := range l.files() {
			have[f.name] = true
		}
	}
	for _, l := range old {
		for _, f := range l.files() {
			if !have[f.name] {
				return f.name
			}
		}
	}
	return ""
}

// files are the open ones.
func (l *level) files() []*file {
	var open []*file
	for _, f := range []*file{l.limit, l.period, l.high, l.stat, l.usage} {
		if f != nil {
			open = append(open, f)
		}
	}
	return open
}

func (l *level) close() {
	for _, f := range l.files() {
		f.close()
	}
}

func closeLevels(levels []level) {
	for i := range levels {
		levels[i].close()
	}
}

// close lets go of the descriptors; a later read opens them again.
func (c *cgroups) close() {
	closeLevels(c.levels)
	c.levels, c.opened, c.at = nil, time.Time{}, location{}
}

var errPeriod = errors.New("cpu.cfs_quota_us without cpu.cfs_period_us")
