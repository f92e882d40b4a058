package configfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// pipeWait is how long a pipe may take that was handed over as the file. Tests that wait for its end shorten it.
var pipeWait = 5 * time.Second

// read reads a file of at most maxBytes, and one byte more of a longer one. It waits for nobody: what is no file could be silent for
// ever, so it is not even opened, but for a pipe that this process was started with, as by gateway -check -config /dev/stdin or
// <(...), and that is given pipeWait.
func read(path string) ([]byte, *Error) {
	if path == "" {
		return nil, &Error{Path: `""`, What: "the name of the file is empty", Mend: "name a file, or leave the option out"}
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, unopened(path, err)
	}
	if wrong := noFile(path, info.Mode()); wrong != nil && (!inherited(path) || info.Mode()&fs.ModeNamedPipe == 0) {
		return nil, wrong
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a pipe meanwhile
	if err != nil {
		return nil, unopened(path, err)
	}
	defer f.Close()
	if info.Mode()&fs.ModeNamedPipe != 0 {
		if err := f.SetReadDeadline(time.Now().Add(pipeWait)); err != nil {
			return nil, noFile(path, info.Mode())
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &Error{Path: path, What: fmt.Sprintf("the pipe was not closed within %v", pipeWait), Mend: "check what writes into it"}
	case err != nil:
		return nil, &Error{Path: path, What: "cannot be read: " + cause(err), Mend: "check the file"}
	}
	return data, nil
}

// noFile says what path is if it is no file, by its mode.
func noFile(path string, mode fs.FileMode) *Error {
	switch {
	case mode.IsDir():
		return &Error{Path: path, What: "this is a folder", Mend: "name the file in it"}
	case !mode.IsRegular():
		return &Error{Path: path, What: "this is a pipe, a socket or a device, and is no file", Mend: "name a file"}
	}
	return nil
}

// inherited tells whether path is something that is open in this process already.
func inherited(path string) bool {
	path = filepath.Clean(path)
	switch path {
	case "/dev/stdin", "/dev/stdout", "/dev/stderr":
		return true
	}
	return strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
}

// folderOf is what the paths in a file are relative to: its folder, and of a pipe where the program runs.
func folderOf(path string) string {
	if inherited(path) {
		return "."
	}
	return filepath.Dir(path)
}

// unopened says why the file at path could not be opened.
func unopened(path string, err error) *Error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Error{Path: path, What: "there is no such file", Mend: "check the path, or run without a file", why: err}
	case errors.Is(err, fs.ErrPermission):
		return &Error{Path: path, What: "this user may not read the file", Mend: "change its permissions, such as chmod a+r", why: err}
	}
	return &Error{Path: path, What: "cannot be opened: " + cause(err), Mend: "check the path", why: err}
}

// cause strips the operation and the path from an error, for the path is in the message already.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// passwordIn reads a password; none where there is no file.
func passwordIn(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, wrong := read(file)
	if wrong != nil {
		return "", wrong
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return "", &Error{Path: file, What: "the file is empty", Mend: "write the password into it"}
	}
	return password, nil
}
