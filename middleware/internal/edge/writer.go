package edge

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/shed"
)

// recorder is a ResponseWriter that remembers the status and whether the connection was taken over, and by which shedder
// its request was admitted. It passes everything through.
type recorder struct {
	http.ResponseWriter
	edge     *Edge
	permit   shed.Permit  // given back early when the response turns out to be a stream
	route    *route       // tells whether the handler says what the request weighed
	cost     atomic.Int64 // that, as shed.Ending has it
	rare     *rarities    // nil for most requests
	status   int32        // the final one; 0 until it is sent
	tunnel   bool         // the request is a CONNECT
	streamed bool         // the response is an event stream
	deaf     bool         // the request has been answered for the handler
	hijacked bool

	quota [2]string // the values of the fields that tell what rules have said, kept here to spare allocations
	room  room      // of one of them
}

// rarities are what a recorder of few requests has to know beside the rest.
type rarities struct {
	pending *shed.Request // what is left for a middleware further in to complete; nil if nothing is
	costs   *recorder     // the one that is settled by, if it is further out; nil if it is this one
	out     *out          // what the response passes through; nil if nobody counts it
	slow    *slowBody     // a body that has to come fast enough; nil if there is none
	refuse  func()        // answers if it does not
	told    http.Header   // what the final answer has to say again, because an informational one went out before; nil if none did
}

// noRarities is what most recorders have.
var noRarities rarities

// rarities returns them, for reading only.
func (w *recorder) rarities() *rarities {
	if w.rare == nil {
		return &noRarities
	}
	return w.rare
}

// rarely returns them to be filled in.
func (w *recorder) rarely() *rarities {
	if w.rare == nil {
		w.rare = new(rarities)
	}
	return w.rare
}

// answerSlow answers a request whose body was cut, unless something has been said already. The handler only knows that reading failed,
// and what it makes of that is not sent.
func (w *recorder) answerSlow() {
	if s := w.rarities().slow; w.status == 0 && s != nil && s.cut.Load() {
		w.status, w.deaf = http.StatusRequestTimeout, true
		w.rare.refuse()
	}
}

// WriteHeader remembers the status. Informational ones are on the way to it; 101 is final.
func (w *recorder) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.begins(status)
	} else {
		w.informs()
	}
	if !w.deaf {
		w.ResponseWriter.WriteHeader(status)
	}
}

// sends notes that a body goes out, which implies a status.
func (w *recorder) sends() { w.begins(http.StatusOK) }

// begins notes the final status, the first one that is said. An event stream, an upgrade or a tunnel (over HTTP/2 that is how
// WebSockets come, RFC 8441) may last for hours, so from here on it holds no place under the concurrency limit.
func (w *recorder) begins(status int) {
	if w.answerSlow(); w.status != 0 {
		return
	}
	w.status = int32(status)
	if w.rare != nil {
		w.beginsRarely(status)
	}
	if w.route.costField != "" {
		if cost := takeCost(w.Header(), w.route.costField); cost != 0 {
			w.cost.Store(cost)
		}
	}
	w.streamed = streams(w.Header())
	if status == http.StatusSwitchingProtocols || w.tunnel && status < 300 || w.streamed {
		w.permit.Detach()
	}
}

// beginsRarely is begins for what few recorders have.
func (w *recorder) beginsRarely(status int) {
	w.tellAgain()
	if s := w.rare.slow; s != nil && status >= 200 && s.unread() {
		w.Header()["Connection"] = []string{"close"}
	}
	if out := w.rare.out; out != nil {
		out.begins(w.Header())
	}
}

func (w *recorder) Write(b []byte) (int, error) {
	w.sends()
	if w.deaf {
		return len(b), nil
	}
	if out := w.rarities().out; out != nil {
		return out.Write(b)
	}
	return w.ResponseWriter.Write(b)
}

func (w *recorder) WriteString(s string) (int, error) {
	w.sends()
	if w.deaf {
		return len(s), nil
	}
	if out := w.rarities().out; out != nil {
		return out.Write([]byte(s))
	}
	return io.WriteString(w.ResponseWriter, s)
}

// Unwrap lets http.ResponseController reach whatever else the inner writer can do.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// SetReadDeadline is for http.ResponseController. The sooner of it and what a body's pace asks for holds.
func (w *recorder) SetReadDeadline(deadline time.Time) error {
	if s := w.rarities().slow; s != nil {
		return s.setReadDeadline(deadline)
	}
	return http.NewResponseController(w.ResponseWriter).SetReadDeadline(deadline)
}

// recorderOf returns the recorder itself, from whatever it is part of.
func (w *recorder) recorderOf() *recorder { return w }

// admitted returns the recorder of the middleware further out that has admitted the request to s already: it is then among the
// writers that w wraps. Nil means that there is none.
func admitted(w http.ResponseWriter, s *shed.Shedder) *recorder {
	for {
		if r, ok := w.(interface{ recorderOf() *recorder }); ok && r.recorderOf().edge.shedder == s {
			return r.recorderOf()
		}
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil
		}
		w = outer.Unwrap()
	}
}
