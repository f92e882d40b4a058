package edge

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

// piece is how many bytes of a response are charged at once: small enough for a stream to be smooth, large enough for the charges
// to cost little beside what is sent.
const piece = 16 << 10

// out is what a response passes through on its way, where limits count its bytes or its messages. It is slowed down to what they
// allow, and holds no place under the concurrency limit while it waits.
type out struct {
	ctx      context.Context
	bytes    *limits.Writer // nil if nobody counts them
	messages []shed.MessageFlow
	events   *events     // nil until the response turns out to be an event stream
	upgrades bool        // the client asks for a WebSocket
	taken    atomic.Bool // the connection is somebody else's: there is no response to be flushed any more, and net/http panics where one tries
	to       io.Writer
}

// newOut returns nil if no limit counts what goes out for this request.
func (e *Edge) newOut(w http.ResponseWriter, r *http.Request, seen *view, req shed.Request, permit shed.Permit) *out {
	o := &out{ctx: r.Context(), to: w}
	// Before it waits, what has been written leaves, and others get the place.
	before := func() {
		permit.Detach()
		if o.taken.Load() {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
	if seen.responses && r.Method != http.MethodHead {
		if flow := e.shedder.Flow(shed.ResponseBytes, req); flow != nil {
			flow.BeforeWait = before
			o.bytes = limits.NewWriter(o.ctx, w, flow)
			o.bytes.Paid = toll
		}
	}
	if seen.messages {
		o.messages = e.shedder.MessageFlows(req)
		o.upgrades = strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
		for i := range o.messages {
			o.messages[i].Flow.BeforeWait = before
		}
	}
	if o.bytes == nil && o.messages == nil {
		return nil
	}
	return o
}

// toll is how many bytes of its response a request pays when it is admitted: none gets in while nothing is left.
const toll = 1

// begins looks at the response's fields, which have been said now.
func (o *out) begins(h http.Header) {
	if len(o.messages) > 0 && streams(h) {
		o.events = new(events)
	}
}

// Write implements io.Writer. Each event of a stream is charged before its last byte goes out.
func (o *out) Write(b []byte) (written int, err error) {
	if o.events == nil {
		return o.send(b)
	}
	for len(b) > 0 {
		end, size := o.events.next(b)
		if err := pass(o.ctx, o.messages, size); err != nil {
			return written, err
		}
		n, err := o.send(b[:end])
		written += n
		if err != nil {
			return written, err
		}
		b = b[end:]
	}
	return written, nil
}

func (o *out) send(b []byte) (written int, err error) {
	if o.bytes == nil {
		return o.to.Write(b)
	}
	for len(b) > 0 {
		n, err := o.bytes.Write(b[:min(len(b), piece)])
		written += n
		if err != nil {
			return written, err
		}
		b = b[n:]
	}
	return written, nil
}

// pass lets one message through all flows that count messages of its size; a size of 0 is no message.
func pass(ctx context.Context, flows []shed.MessageFlow, size int64) error {
	for i := range flows {
		if size > 0 && size >= flows[i].Min {
			if _, err := flows[i].Flow.Pass(ctx, 1); err != nil {
				return err
			}
		}
	}
	return nil
}
