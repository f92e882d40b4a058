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

// cgroups reads the CPU accounting of this process's cgroup and its ancestors, from descriptors that stay open.
type cgroups struct {
	fsys fs.FS

	at     location
	levels []level // from our own cgroup upwards, only those with a quota file
	opened time.Time
	buf    [4096]byte
}

// level is one cgroup with the files that matter; files the system does not have are nil.
type level struct {
	name          string
	v2            bool
	quota, period *file // v1 has a file for each, v2 one for both
	stat, usage   *file // v2 has one file for both
}

// read is the cgroup with the smallest quota; the zero group if there is none. Our own may say `max` below a tighter
// parent, so all are asked, and each time, since quotas change in place.
func (c *cgroups) read(now time.Time) (group, error) {
	if c.opened.IsZero() {
		if err := c.open(now); err != nil {
			return group{}, err
		}
	} else if now.Sub(c.opened) >= reopenAfter {
		// A refresh may fail for reasons of its own, such as too many open files in the middle of an overload; the old
		// descriptors are as good as they were.
		if err := c.open(now); err != nil {
			c.opened = now
		}
	}
	g, err := c.smallest()
	if err == nil {
		return g, nil
	}
	// The descriptors may be those of a cgroup that is gone.
	if c.open(now) == nil {
		if g, again := c.smallest(); again == nil {
			return g, nil
		}
	}
	return group{}, err
}

// open finds the files and opens them, then lets go of those opened before. If it fails, nothing changes.
func (c *cgroups) open(now time.Time) error {
	at, err := locate(c.fsys)
	if err != nil && !missing(err) {
		return err
	}
	if at.key == "" && c.at.key != "" {
		return fmt.Errorf("%s is no longer mounted", c.at.key)
	}
	var levels []level
	for _, p := range at.cpu {
		l, err := c.openLevel(at, p)
		if err != nil {
			closeLevels(levels)
			return err
		}
		if l.quota != nil {
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

// openLevel opens what p has. The level has no quota file where there is no limit: the root of v2, a cgroup without the
// cpu controller, a kernel without bandwidth control.
func (c *cgroups) openLevel(at location, p place) (l level, err error) {
	l = level{v2: at.v2, name: "cgroup " + p.cgroup}
	acct := p.dir
	quota := "cpu.max"
	if !at.v2 {
		quota, acct = "cpu.cfs_quota_us", ""
		for _, q := range at.acct {
			if q.cgroup == p.cgroup {
				acct = q.dir
			}
		}
	}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.quota, err = c.openFile(p.dir, quota); err != nil || l.quota == nil {
		return l, err
	}
	if l.stat, err = c.openFile(p.dir, "cpu.stat"); err != nil {
		return l, err
	}
	if at.v2 {
		return l, nil
	}
	if l.period, err = c.openFile(p.dir, "cpu.cfs_period_us"); err != nil {
		return l, err
	}
	if acct != "" {
		l.usage, err = c.openFile(acct, "cpuacct.usage")
	}
	return l, err
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
	for _, f := range []*file{l.quota, l.period, l.stat, l.usage} {
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
