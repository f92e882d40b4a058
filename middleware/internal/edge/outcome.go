package edge

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/spillway-go/spillway/shed"
)

// Classify is the default reading of a status. 503 and 504 mean that something behind is overloaded or too slow, and the
// concurrency limit should back off. Every other 5xx, and a 429 that the application passes on, says nothing about
// capacity: a bug that fails in a millisecond must not look like a fast service. The rest is a sample of latency.
func Classify(_ *http.Request, status int) shed.Outcome {
	switch {
	case status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return shed.Dropped
	case status >= 500, status == http.StatusTooManyRequests:
		return shed.Ignored
	}
	return shed.Success
}

// outcome reads how a request ended whose handler has returned. Whatever took over its connection or streamed took as long
// as it liked, and who left early broke the work off: neither is a sample.
func (w *recorder) outcome(r *http.Request, status int) shed.Outcome {
	silent := w.status == 0
	if !silent {
		status = int(w.status)
	}
	switch {
	case w.deaf, w.hijacked, status == http.StatusSwitchingProtocols, w.tunnel:
		return shed.Ignored
	case silent && r.Header["Upgrade"] != nil: // taken over behind the recorder's back
		return shed.Ignored
	}
	if err := r.Context().Err(); errors.Is(err, context.DeadlineExceeded) {
		return shed.Dropped
	} else if err != nil {
		return shed.Ignored
	}
	if w.streamed || silent && streams(w.Header()) {
		return shed.Ignored
	}
	return w.edge.classify(r, cmp.Or(status, http.StatusOK))
}

// streams reports whether the handler has answered with an event stream. Its own word counts, the client's wish does not.
func streams(h http.Header) bool {
	t := h["Content-Type"]
	return len(t) == 1 && strings.HasPrefix(t[0], "text/event-stream")
}
