package edge

import (
	"io"
	"net/http"

	"github.com/spillway-go/spillway/shed"
)

// record wraps w. The writer to hand on has the abilities of w, no more and no less; all writers share the one recorder.
func record(w http.ResponseWriter, s *shed.Shedder) (http.ResponseWriter, *recorder) {
	r := &recorder{ResponseWriter: w, shedder: s}
	const flush, hijack, read, push = 1, 2, 4, 8
	abilities := 0
	if _, ok := w.(http.Flusher); ok {
		abilities |= flush
	}
	if _, ok := w.(http.Hijacker); ok {
		abilities |= hijack
	}
	if _, ok := w.(io.ReaderFrom); ok {
		abilities |= read
	}
	if _, ok := w.(http.Pusher); ok {
		abilities |= push
	}
	f, h, rf, p := flusher{r}, hijacker{r}, readFrom{r}, pusher{r}
	switch abilities {
	case flush | hijack | read: // HTTP/1.1
		return struct {
			*recorder
			flusher
			hijacker
			readFrom
		}{r, f, h, rf}, r
	case flush | push: // HTTP/2
		return struct {
			*recorder
			flusher
			pusher
		}{r, f, p}, r
	case flush: // tests, and wrappers
		return struct {
			*recorder
			flusher
		}{r, f}, r
	case hijack:
		return struct {
			*recorder
			hijacker
		}{r, h}, r
	case read:
		return struct {
			*recorder
			readFrom
		}{r, rf}, r
	case push:
		return struct {
			*recorder
			pusher
		}{r, p}, r
	case flush | hijack:
		return struct {
			*recorder
			flusher
			hijacker
		}{r, f, h}, r
	case flush | read:
		return struct {
			*recorder
			flusher
			readFrom
		}{r, f, rf}, r
	case hijack | read:
		return struct {
			*recorder
			hijacker
			readFrom
		}{r, h, rf}, r
	case hijack | push:
		return struct {
			*recorder
			hijacker
			pusher
		}{r, h, p}, r
	case read | push:
		return struct {
			*recorder
			readFrom
			pusher
		}{r, rf, p}, r
	case flush | hijack | push:
		return struct {
			*recorder
			flusher
			hijacker
			pusher
		}{r, f, h, p}, r
	case flush | read | push:
		return struct {
			*recorder
			flusher
			readFrom
			pusher
		}{r, f, rf, p}, r
	case hijack | read | push:
		return struct {
			*recorder
			hijacker
			readFrom
			pusher
		}{r, h, rf, p}, r
	case flush | hijack | read | push:
		return struct {
			*recorder
			flusher
			hijacker
			readFrom
			pusher
		}{r, f, h, rf, p}, r
	}
	return r, r
}
