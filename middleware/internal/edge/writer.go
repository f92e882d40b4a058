package edge

import (
	"io"
	"net/http"

	"github.com/spillway-go/spillway/shed"
)

// recorder is a ResponseWriter that remembers the status and whether the connection was taken over, and by which shedder
// its request was admitted. It passes everything through.
type recorder struct {
	http.ResponseWriter
	shedder  *shed.Shedder
	permit   shed.Permit // given back early when the response turns out to be a stream
	status   int         // the final one; 0 until it is sent
	hijacked bool
}

// WriteHeader remembers the status. Informational ones are on the way to it; 101 is final.
func (w *recorder) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.begins(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// sends notes that a body goes out, which implies a status.
func (w *recorder) sends() { w.begins(http.StatusOK) }

// begins notes the final status, the first one that is said. An event stream or an upgrade may last for hours, so from here
// on it holds no place under the concurrency limit.
func (w *recorder) begins(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	if status == http.StatusSwitchingProtocols || streams(w.Header()) {
		w.permit.Detach()
	}
}

func (w *recorder) Write(b []byte) (int, error) {
	w.sends()
	return w.ResponseWriter.Write(b)
}

func (w *recorder) WriteString(s string) (int, error) {
	w.sends()
	return io.WriteString(w.ResponseWriter, s)
}

// Unwrap lets http.ResponseController reach whatever else the inner writer can do.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) admittedBy(s *shed.Shedder) bool { return w.shedder == s }

// admitted reports whether a middleware further out has admitted the request to s already: its recorder is then among the
// writers that w wraps.
func admitted(w http.ResponseWriter, s *shed.Shedder) bool {
	for {
		if r, ok := w.(interface{ admittedBy(*shed.Shedder) bool }); ok && r.admittedBy(s) {
			return true
		}
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = outer.Unwrap()
	}
}
