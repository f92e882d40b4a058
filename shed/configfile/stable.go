package configfile

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"time"
)

// How a file is followed: looked at so often, and taken when it has been the same for so long. Editors truncate a file and
// write it again, or put another in its place; some copy line by line.
const (
	lookEvery = 250 * time.Millisecond
	stableFor = time.Second
)

// content stands for what is in a file, or for why it cannot be read.
type content [sha256.Size]byte

func contentOf(data []byte, err *Error) content {
	if err != nil {
		return sha256.Sum256([]byte("\x00" + err.Error()))
	}
	return sha256.Sum256(append([]byte{1}, data...))
}

// stability finds out when a file has changed and come to rest. It is told what is in the file whenever somebody looks.
type stability struct {
	taken content // what was last acted upon
	seen  content // what was there at the last look
	since time.Time
}

// ripe reports whether the file holds something new that has been there for a second.
func (s *stability) ripe(now time.Time, c content) bool {
	if c != s.seen {
		s.seen, s.since = c, now
	}
	return c != s.taken && now.Sub(s.since) >= stableFor
}

// took notes that c has been acted upon, for better or worse, so that a mistake is reported once.
func (s *stability) took(c content) { s.taken = c }

// looker reads a file only where there is a sign that it may have changed, and now and then without one: times of files can be
// coarse, and tools set them back.
type looker struct {
	path string
	info fs.FileInfo
	at   time.Time
	last content
}

// lookAnyway is how long a file is believed to be the same because its size and times are.
const lookAnyway = 5 * time.Second

// look returns what is in the file. It is false for what is no file: a pipe gives its content once, and is not followed.
func (l *looker) look(now time.Time) (content, bool) {
	info, err := os.Stat(l.path) // of what a symbolic link leads to, for that is what Kubernetes swaps
	if err == nil && runsDry(info) {
		return content{}, false
	}
	if err == nil && l.info != nil && os.SameFile(info, l.info) && info.Size() == l.info.Size() &&
		info.ModTime().Equal(l.info.ModTime()) && info.Mode() == l.info.Mode() && now.Sub(l.at) < lookAnyway {
		return l.last, true
	}
	if err != nil {
		info = nil
	}
	data, failure := read(l.path)
	l.info, l.at, l.last = info, now, contentOf(data, failure)
	return l.last, true
}

// runsDry reports whether info is of what is no file: a pipe gives its content once, and whoever asks it again waits without end.
func runsDry(info fs.FileInfo) bool {
	return info.Mode()&(fs.ModeNamedPipe|fs.ModeDevice|fs.ModeSocket) != 0
}

// readAgain is read for a program that runs and must not be made to wait.
func readAgain(path string) ([]byte, *Error) {
	if info, err := os.Stat(path); err == nil && runsDry(info) {
		return nil, &Error{Path: path, What: "this is a pipe or a device, which cannot be read again", Mend: "put a file there"}
	}
	return read(path)
}
