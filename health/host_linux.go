package health

import (
	"bytes"
	"io"
	"io/fs"
)

// hostReader reads /proc/stat from a descriptor that stays open.
type hostReader struct {
	fsys fs.FS
	stat *file
	buf  [512]byte // the first line is all that matters; the rest, a line for each CPU and more, may be long
}

func newHostReader(fsys fs.FS) *hostReader { return &hostReader{fsys: fsys} }

func (r *hostReader) read() (hostTimes, error) {
	if r.stat == nil {
		f, err := openFile(r.fsys, "proc/stat")
		if err != nil {
			return hostTimes{}, err
		}
		r.stat = f
	}
	n, err := r.stat.ReadAt(r.buf[:], 0)
	if err != nil && err != io.EOF {
		r.close()
		return hostTimes{}, err
	}
	return parseHostTimes(r.buf[:n])
}

func (r *hostReader) close() {
	if r.stat != nil {
		r.stat.close()
		r.stat = nil
	}
}

// parseHostTimes reads the line `cpu USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL GUEST GUESTNICE` in ticks. Guests are
// counted as users already.
func parseHostTimes(text []byte) (hostTimes, error) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	rest, ok := bytes.CutPrefix(line, []byte("cpu "))
	if !ok {
		return hostTimes{}, malformed("/proc/stat: %.40q is not the line cpu", line)
	}
	var t hostTimes
	n := 0
	for field := range bytes.FieldsSeq(rest) {
		ticks, ok := parseUint(field)
		if !ok {
			return hostTimes{}, malformed("/proc/stat: %.40q is not a number", field)
		}
		if n < 8 {
			t.total += float64(ticks)
			if n != 3 && n != 4 {
				t.busy += float64(ticks)
			}
		}
		n++
	}
	if n < 4 {
		return hostTimes{}, malformed("/proc/stat: %.80q has fewer than four times", line)
	}
	return t, nil
}
