package edge

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// What a writer may do beyond the minimum. Handlers find out by type assertion, so each ability is there exactly when the
// inner writer has it: hiding Flush starves event streams, hiding ReadFrom costs sendfile, and pretending breaks both.
// http.CloseNotifier is not among them; it is deprecated, and the request's context says the same.
type (
	flusher  struct{ rec *recorder }
	hijacker struct{ rec *recorder }
	readFrom struct{ rec *recorder }
	pusher   struct{ rec *recorder }
)

// Flush sends what is buffered, and with it the status.
func (f flusher) Flush() { _ = f.FlushError() }

// FlushError is Flush as http.ResponseController prefers it.
func (f flusher) FlushError() error {
	f.rec.sends()
	return http.NewResponseController(f.rec.ResponseWriter).Flush()
}

// Hijack takes over the connection; what happens on it from then on says nothing about capacity.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if s := h.rec.rarities().slow; s != nil {
		s.takenOver()
	}
	conn, rw, err := h.rec.ResponseWriter.(http.Hijacker).Hijack()
	if err != nil || h.rec.hijacked {
		return conn, rw, err
	}
	h.rec.hijacked = true
	h.rec.permit.Detach()
	if o := h.rec.rarities().out; o != nil {
		o.taken.Store(true)
		if o.upgrades && len(o.messages) > 0 {
			return converse(o.ctx, conn, rw, o.messages)
		}
	}
	return conn, rw, nil
}

// ReadFrom sends src, from a file without copying it through this process.
func (r readFrom) ReadFrom(src io.Reader) (int64, error) {
	r.rec.sends()
	if r.rec.deaf {
		return io.Copy(io.Discard, src)
	}
	return r.rec.ResponseWriter.(io.ReaderFrom).ReadFrom(src)
}

// Push starts an HTTP/2 server push.
func (p pusher) Push(target string, opts *http.PushOptions) error {
	return p.rec.ResponseWriter.(http.Pusher).Push(target, opts)
}
