package edge

// events finds the ends of events in an event stream, as the HTML standard reads it: an event ends with an empty line, and what
// holds nothing but comments is none.
type events struct {
	size    int64 // bytes of the event so far
	line    int   // bytes of the line so far
	comment bool  // the line begins with a colon
	event   bool  // there is a line that is no comment
	cr      bool  // the last byte was a carriage return, so that a line feed now belongs to it
}

// next returns where the first event ends that is complete in b, and its size in bytes; a size of 0 means that there is none, and
// that all of b has been looked at.
func (e *events) next(b []byte) (end int, size int64) {
	for i, c := range b {
		e.size++
		cr := e.cr
		e.cr = c == '\r'
		switch {
		case c == '\n' && cr: // the line has ended already
		case c == '\n' || c == '\r':
			if e.line > 0 {
				e.event = e.event || !e.comment
				e.line = 0
				continue
			}
			size := e.size
			complete := e.event
			e.size, e.event = 0, false
			if complete {
				return i + 1, size
			}
		default:
			if e.line == 0 {
				e.comment = c == ':'
			}
			e.line++
		}
	}
	return len(b), 0
}
