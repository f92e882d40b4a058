package configfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxReported bounds how many mistakes one message lists: beyond a screenful nobody reads on.
const maxReported = 20

// Error is one mistake in a configuration file.
type Error struct {
	// Path is the file as it was named by the caller.
	Path string
	// Line is where the mistake is, counted from 1; zero means that the file as a whole is meant.
	Line int
	// What is wrong, beginning with the key's place in the file, e.g. "limits[0].name: is missing".
	What string
	// Mend says what to write instead.
	Mend string
}

// Error returns "PATH:LINE: what; how to mend" on one line.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s; %s", e.Path, e.What, e.Mend)
	}
	return fmt.Sprintf("%s:%d: %s; %s", e.Path, e.Line, e.What, e.Mend)
}

// Errors is every mistake that was found, in the order of the file. Load and Parse return it, never empty, so errors.As
// finds both Errors and its first *Error.
type Errors []*Error

// Error lists the mistakes, one a line. The first line stands alone; from the 21st on they are only counted.
func (es Errors) Error() string {
	lines := make([]string, 0, maxReported+1)
	for i, e := range es {
		if i == maxReported {
			lines = append(lines, fmt.Sprintf("%s: %d more mistakes; mend those above first", e.Path, len(es)-i))
			break
		}
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the single mistakes to errors.Is and errors.As.
func (es Errors) Unwrap() []error {
	all := make([]error, len(es))
	for i, e := range es {
		all[i] = e
	}
	return all
}

// problems collects what is wrong with one file.
type problems struct {
	path  string
	found Errors
	lines map[string]int // of all keys, by their paths; nil where nobody asks
}

func (p *problems) add(line int, what, mend string) {
	p.found = append(p.found, &Error{Path: p.path, Line: line, What: what, Mend: mend})
}

// err returns what was found, sorted by line, or nil; what is wrong with files beside this one comes last. Mistakes of one line stay
// in the order in which they were found.
func (p *problems) err() error {
	if len(p.found) == 0 {
		return nil
	}
	slices.SortStableFunc(p.found, func(a, b *Error) int {
		switch beside := a.Path != p.path; {
		case beside == (b.Path != p.path):
			return a.Line - b.Line
		case beside:
			return 1
		}
		return -1
	})
	return p.found
}

// shown makes a piece of the file fit to stand in a message: quoted, on one line, without control characters, and short.
func shown(text string) string {
	const most = 60
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most]) + "…"
	}
	return strconv.Quote(text)
}

// bare is shown without the quotes where the text needs none, for keys and words.
func bare(text string) string {
	plain := func(r rune) bool {
		return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-.", r))
	}
	if text == "" || len(text) > 60 || strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) >= 0 {
		return shown(text)
	}
	return text
}
