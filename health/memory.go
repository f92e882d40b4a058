package health

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"time"
)

// memory is the working set of the cgroup with the smallest memory limit above us ÷ that limit: what is charged to it, less
// the file cache that the kernel would drop first. With GOMEMLIMIT set, garbage is not part of it either: the collector lets
// the heap grow up to GOMEMLIMIT on purpose and would collect it before the kernel kills.
//
// It counts only while this process holds most of that memory: what others in the cgroup hold does not go away by shedding
// our requests.
type memory struct {
	cgroups cgroups
	runtime *runtimeLook
	pace    pace
	statm   *file
	host    uint64 // bytes of the machine; 0: not known
	asked   bool   // for host
	ours    bool
	use     memoryUse // of the last look
	words   string
	worded  memoryUse
}

// memoryUse is one look at a cgroup that has a memory limit; zero where there is none.
type memoryUse struct {
	name  string
	limit uint64
	used  uint64 // working set
}

func (m *memory) name() string { return "memory" }

func (m *memory) source() string { return m.words }

func (m *memory) measure(round time.Time) (float64, time.Duration, error) {
	dt := m.pace.next(round)
	if !m.asked {
		m.asked, m.host = true, hostMemory(m.cgroups.fsys)
	}
	err := m.cgroups.ask(round, func() error { return m.cgroups.tightest(&m.use, m.host) })
	if err != nil {
		return 0, 0, err
	}
	m.describe()
	if m.use.limit == 0 {
		return 0, 0, errNoLimit
	}
	own, err := m.resident()
	if err != nil {
		return 0, 0, err
	}
	// Entered above where it is left, so that a share of about a half does not count by turns.
	switch share := float64(own) / float64(m.use.used); {
	case share < 0.5:
		m.ours = false
	case share >= ownerEnter:
		m.ours = true
	}
	if !m.ours {
		return 0, 0, errNotOurMemory
	}
	used := m.use.used
	if g := m.runtime.at(round); g.limit > 0 && g.hasMemory {
		used = sub(used, g.collectable())
	}
	return float64(used) / float64(m.use.limit), dt, nil
}

// describe words what is measured, if that changed.
func (m *memory) describe() {
	if m.words != "" && m.worded.name == m.use.name && m.worded.limit == m.use.limit {
		return
	}
	m.worded, m.words = m.use, "no memory limit"
	if m.use.limit > 0 {
		m.words = fmt.Sprintf("working set of %s, of %.4g MiB", m.use.name, float64(m.use.limit)/(1<<20))
	}
}

// resident is the memory of this process that is in RAM, in bytes: the second field of /proc/self/statm.
func (m *memory) resident() (uint64, error) {
	if m.statm == nil {
		f, err := openFile(m.cgroups.fsys, "proc/self/statm")
		if err != nil {
			return 0, err
		}
		m.statm = f
	}
	text, err := m.statm.read(m.cgroups.buf[:])
	if err != nil {
		m.statm.close()
		m.statm = nil // opened again next time
		return 0, err
	}
	_, rest, _ := bytes.Cut(text, []byte(" "))
	pages, _, _ := bytes.Cut(rest, []byte(" "))
	n, ok := parseUint(pages)
	if !ok || n > math.MaxInt64/uint64(os.Getpagesize()) {
		return 0, malformed("/proc/self/statm: %.40q has no number of resident pages", text)
	}
	return n * uint64(os.Getpagesize()), nil
}

func (m *memory) close() {
	m.cgroups.close()
	if m.statm != nil {
		m.statm.close()
		m.statm = nil
	}
}

// tightest asks every level for its limit and the tightest for its use. Of equals the nearest to us counts.
func (c *cgroups) tightest(u *memoryUse, host uint64) error {
	*u = memoryUse{}
	at := -1
	for i := range c.levels {
		limit, err := c.levels[i].memoryLimit(c.buf[:])
		if err != nil {
			return err
		}
		// v1 says "none" as a huge number, and more than there is is none in either version.
		if limit >= 1<<62 || host > 0 && limit >= host {
			continue
		}
		if at < 0 || limit < u.limit {
			at, u.limit = i, limit
		}
	}
	if at < 0 {
		return nil
	}
	l := &c.levels[at]
	used, err := l.workingSet(c.buf[:])
	if err != nil {
		*u = memoryUse{}
		return err
	}
	u.name, u.used = l.name, used
	return nil
}

// memoryLimit is the smaller of memory.max, where the kernel kills, and memory.high, where it makes us slow; MaxUint64 without
// either.
func (l *level) memoryLimit(buf []byte) (uint64, error) {
	least := uint64(math.MaxUint64)
	for _, f := range [...]*file{l.limit, l.high} {
		if f == nil {
			continue
		}
		text, err := f.read(buf)
		if err != nil {
			return 0, err
		}
		if text = bytes.TrimSpace(text); l.v2 && string(text) == "max" {
			continue
		}
		n, ok := parseUint(text)
		if !ok || n == 0 {
			return 0, malformed("/%s: %.40q is not a number of bytes above 0", f.name, text)
		}
		least = min(least, n)
	}
	return least, nil
}

// workingSet is what is charged to the level less its inactive file cache.
func (l *level) workingSet(buf []byte) (uint64, error) {
	if l.usage == nil || l.stat == nil {
		return 0, malformed("%s has a memory limit and does not say what it uses", l.name)
	}
	text, err := l.usage.read(buf)
	if err != nil {
		return 0, err
	}
	used, ok := parseUint(bytes.TrimSpace(text))
	if !ok {
		return 0, malformed("/%s: %.40q is not a number of bytes", l.usage.name, text)
	}
	if text, err = l.stat.read(buf); err != nil {
		return 0, err
	}
	key := "inactive_file"
	if !l.v2 {
		key = "total_inactive_file" // with that of the cgroups below, which the usage counts as well
	}
	cache, err := l.value(text, key)
	return sub(used, cache), err
}

// hostMemory is MemTotal in bytes, 0 if the system does not say.
func hostMemory(fsys fs.FS) uint64 {
	text, err := readAll(fsys, "proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte("MemTotal:"))
		if !ok {
			continue
		}
		n, ok := parseUint(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB"))))
		if !ok || n > math.MaxInt64/1024 {
			return 0
		}
		return n * 1024
	}
	return 0
}

var (
	errNoLimit      = fmt.Errorf("%w: no memory limit applies", errAbsent)
	errNotOurMemory = fmt.Errorf("%w: this process does not hold most of the cgroup's memory", errAbsent)
)
