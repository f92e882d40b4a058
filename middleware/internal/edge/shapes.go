package edge

import (
	"io"
	"net/http"
)

// record makes r wrap w. The writer to hand on has the abilities of w, no more and no less, but that what has to be counted is not
// read from files behind everybody's back; all writers share the one recorder.
func record(w http.ResponseWriter, r *recorder) http.ResponseWriter {
	r.ResponseWriter = w
	const flush, hijack, read, push = 1, 2, 4, 8
	abilities := 0
	if _, ok := w.(http.Flusher); ok {
		abilities |= flush
	}
	if _, ok := w.(http.Hijacker); ok {
		abilities |= hijack
	}
	if _, ok := w.(io.ReaderFrom); ok && r.out == nil {
		abilities |= read
	}
	if _, ok := w.(http.Pusher); ok {
		abilities |= push
	}
	f, h, rf, p := flusher{r}, hijacker{r}, readFrom{r}, pusher{r}
	switch abilities {
	case flush | hijack | read: // HTTP/1.1
		r.usual = usual{r, f, h, rf}
		return &r.usual
	case flush | push: // HTTP/2
		return struct {
			*recorder
			flusher
			pusher
		}{r, f, p}
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
