package health

import (
	"bytes"
	"io"
	"io/fs"
	"math"
	"time"
)

// file is an open file of the kernel that is read again and again from its start.
type file struct {
	name string
	fs.File
	io.ReaderAt
}

func openFile(fsys fs.FS, name string) (*file, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	at, ok := f.(io.ReaderAt)
	if !ok {
		f.Close()
		return nil, &fs.PathError{Op: "pread", Path: name, Err: fs.ErrInvalid}
	}
	return &file{name: name, File: f, ReaderAt: at}, nil
}

func (f *file) close() { f.File.Close() }

// read is the whole content, in buf. A file that is empty or does not fit is not what it should be.
func (f *file) read(buf []byte) ([]byte, error) {
	n, err := f.ReadAt(buf, 0)
	switch {
	case err == nil:
		return nil, malformed("/%s is longer than %d bytes", f.name, len(buf)-1)
	case err != io.EOF:
		return nil, err
	case n == 0:
		return nil, malformed("/%s is empty", f.name)
	}
	return buf[:n], nil
}

// cores is quota ÷ period of the level, if it has a limit.
func (l *level) cores(buf []byte) (cores float64, limited bool, err error) {
	if l.v2 {
		return l.coresV2(buf)
	}
	text, err := l.limit.read(buf)
	if err != nil {
		return 0, false, err
	}
	if text = bytes.TrimSpace(text); string(text) == "-1" {
		return 0, false, nil
	}
	quota, ok := parseUint(text)
	if !ok || quota == 0 {
		return 0, false, malformed("/%s: %.40q is neither -1 nor a time in µs", l.limit.name, text)
	}
	if l.period == nil {
		return 0, false, errPeriod
	}
	if text, err = l.period.read(buf); err != nil {
		return 0, false, err
	}
	period, ok := parseUint(bytes.TrimSpace(text))
	if !ok || period == 0 {
		return 0, false, malformed("/%s: %.40q is not a time in µs", l.period.name, text)
	}
	return float64(quota) / float64(period), true, nil
}

// coresV2 reads `QUOTA PERIOD` or `max PERIOD`.
func (l *level) coresV2(buf []byte) (cores float64, limited bool, err error) {
	text, err := l.limit.read(buf)
	if err != nil {
		return 0, false, err
	}
	first, second, _ := bytes.Cut(bytes.TrimSpace(text), []byte(" "))
	period, ok := parseUint(second)
	if ok && period > 0 && string(first) == "max" {
		return 0, false, nil
	}
	quota, ok2 := parseUint(first)
	if !ok || !ok2 || period == 0 || quota == 0 {
		return 0, false, malformed("/%s: %.40q is not QUOTA PERIOD or max PERIOD", l.limit.name, text)
	}
	return float64(quota) / float64(period), true, nil
}

// account fills in the counters of the level that g is.
func (l *level) account(g *group, buf []byte) error {
	if l.usage != nil { // v1: nanoseconds in a file of its own
		text, err := l.usage.read(buf)
		if err != nil {
			return err
		}
		n, ok := parseUint(bytes.TrimSpace(text))
		if !ok || n > math.MaxInt64 {
			return malformed("/%s: %.40q is not a time in ns", l.usage.name, text)
		}
		g.usage, g.hasUsage = time.Duration(n), true
	}
	if l.stat == nil {
		return nil
	}
	text, err := l.stat.read(buf)
	if err != nil {
		return err
	}
	if l.v2 {
		n, err := l.value(text, "usage_usec")
		if err != nil {
			return err
		}
		if n > math.MaxInt64/1000 {
			return malformed("/%s: usage_usec is %d", l.stat.name, n)
		}
		g.usage, g.hasUsage = time.Duration(n)*time.Microsecond, true
	}
	if g.periods, err = l.value(text, "nr_periods"); err != nil {
		return err
	}
	if g.throttled, err = l.value(text, "nr_throttled"); err != nil {
		return err
	}
	g.hasStat = true
	return nil
}

// value finds `key N` in lines of text.
func (l *level) value(text []byte, key string) (uint64, error) {
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte(key))
		if !ok || len(rest) == 0 || rest[0] != ' ' {
			continue
		}
		n, ok := parseUint(bytes.TrimSpace(rest))
		if !ok {
			return 0, malformed("/%s: %.40q is not a number", l.stat.name, line)
		}
		return n, nil
	}
	return 0, malformed("/%s has no %s", l.stat.name, key)
}

// parseUint reads decimal digits and nothing else. It differs from strconv in that it takes bytes and allocates nothing.
func parseUint(b []byte) (uint64, bool) {
	if len(b) == 0 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		d := uint64(c - '0')
		if c < '0' || c > '9' || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}
