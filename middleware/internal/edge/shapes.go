package edge

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// The abilities of a writer, as bits.
const (
	flush = 1 << iota
	hijack
	read
	push
)

// record makes r wrap w. The writer to hand on has the abilities of w, no more and no less, but that what has to be counted is not
// read from files behind everybody's back; all writers share the one recorder.
func record(w http.ResponseWriter, r *recorder) http.ResponseWriter {
	r.ResponseWriter = w
	abilities := 0
	if _, ok := w.(http.Flusher); ok {
		abilities |= flush
	}
	if _, ok := w.(http.Hijacker); ok {
		abilities |= hijack
	}
	if _, ok := w.(io.ReaderFrom); ok && r.rarities().out == nil {
		abilities |= read
	}
	if _, ok := w.(http.Pusher); ok {
		abilities |= push
	}
	switch abilities {
	case flush | hijack | read:
		return http1{r}
	case flush | push:
		return http2{r}
	}
	return rare(r, abilities)
}

// http1 and http2 have the abilities of net/http's own writers. They are no more than a pointer, so that making one is free.
type (
	http1 struct{ *recorder }
	http2 struct{ *recorder }
)

func (w http1) Flush()                                       { flusher{w.recorder}.Flush() }
func (w http1) FlushError() error                            { return flusher{w.recorder}.FlushError() }
func (w http1) Hijack() (net.Conn, *bufio.ReadWriter, error) { return hijacker{w.recorder}.Hijack() }
func (w http1) ReadFrom(src io.Reader) (int64, error)        { return readFrom{w.recorder}.ReadFrom(src) }

func (w http2) Flush()            { flusher{w.recorder}.Flush() }
func (w http2) FlushError() error { return flusher{w.recorder}.FlushError() }
func (w http2) Push(target string, o *http.PushOptions) error {
	return pusher{w.recorder}.Push(target, o)
}

// rare is for writers of others' making.
func rare(r *recorder, abilities int) http.ResponseWriter {
	f, h, rf, p := flusher{r}, hijacker{r}, readFrom{r}, pusher{r}
	switch abilities {
	case flush: // tests, and wrappers
		return struct {
			*recorder
			flusher
		}{r, f}
	case hijack:
		return struct {
			*recorder
			hijacker
		}{r, h}
	case read:
		return struct {
			*recorder
			readFrom
		}{r, rf}
	case push:
		return struct {
			*recorder
			pusher
		}{r, p}
	case flush | hijack:
		return struct {
			*recorder
			flusher
			hijacker
		}{r, f, h}
	case flush | read:
		return struct {
			*recorder
			flusher
			readFrom
		}{r, f, rf}
	case hijack | read:
		return struct {
			*recorder
			hijacker
			readFrom
		}{r, h, rf}
	case hijack | push:
		return struct {
			*recorder
			hijacker
			pusher
		}{r, h, p}
	case read | push:
		return struct {
			*recorder
			readFrom
			pusher
		}{r, rf, p}
	case flush | hijack | push:
		return struct {
			*recorder
			flusher
			hijacker
			pusher
		}{r, f, h, p}
	case flush | read | push:
		return struct {
			*recorder
			flusher
			readFrom
			pusher
		}{r, f, rf, p}
	case hijack | read | push:
		return struct {
			*recorder
			hijacker
			readFrom
			pusher
		}{r, h, rf, p}
	case flush | hijack | read | push:
		return struct {
			*recorder
			flusher
			hijacker
			readFrom
			pusher
		}{r, f, h, rf, p}
	}
	return r
}
