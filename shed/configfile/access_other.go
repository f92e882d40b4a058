//go:build !unix

package configfile

// What may be done with a file.
const (
	toEnter = 1
	toWrite = 2
	toRead  = 4
)

// may cannot be told here without doing it.
func may(string, uint32) bool { return true }
