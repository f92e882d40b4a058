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

	why error // the system's, where that is the reason
}

// Unwrap returns the error of the system where that is the reason, such as fs.ErrNotExist; else nil.
func (e *Error) Unwrap() error { return e.why }

// Error returns "PATH:LINE: what; how to mend" on one line.
func (e *Error) Error() string {
	return located(e.Path, e.Line) + ": " + e.What + "; " + e.Mend
}

// located returns the place of a line as compilers and editors write it; 0 is the file as a whole.
func located(path string, line int) string {
	if line == 0 {
		return path
	}
	return fmt.Sprintf("%s:%d", path, line)
}

// places are the lines of the keys of a file, by their paths.
type places map[string]int

// around returns the line of a key or, where the file does not have it, of the closest one around it.
func (p places) around(path string) int {
	for {
		at, there := p[path]
		cut := strings.LastIndexAny(path, ".[")
		if there || cut < 0 {
			return at
		}
		path = path[:cut]
	}
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
	path   string
	found  Errors
	warned Errors // what may be meant, and is not likely to be
	places places // nil where nobody asks
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
	p.sort(p.found)
	return p.found
}

// warnings returns what was warned of, in the same order.
func (p *problems) warnings() (all []string) {
	p.sort(p.warned)
	for _, w := range p.warned {
		all = append(all, w.Error())
	}
	return all
}

func (p *problems) sort(all Errors) {
	slices.SortStableFunc(all, func(a, b *Error) int {
		switch beside := a.Path != p.path; {
		case beside == (b.Path != p.path):
			return a.Line - b.Line
		case beside:
			return 1
		}
		return -1
	})
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
