package edge

import (
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
func (e *Edge) outcome(r *http.Request, rec *recorder, status int) shed.Outcome {
	if rec.status != 0 {
		status = int(rec.status)
	}
	switch err := r.Context().Err(); {
	case rec.deaf, rec.hijacked, status == http.StatusSwitchingProtocols, r.Method == http.MethodConnect:
		return shed.Ignored
	case rec.status == 0 && r.Header["Upgrade"] != nil: // taken over behind the recorder's back
		return shed.Ignored
	case errors.Is(err, context.DeadlineExceeded):
		return shed.Dropped
	case err != nil:
		return shed.Ignored
	case rec.streamed, rec.status == 0 && streams(rec.Header()):
		return shed.Ignored
	case status == 0:
		status = http.StatusOK
	}
	return e.classify(r, status)
}

// streams reports whether the handler has answered with an event stream. Its own word counts, the client's wish does not.
func streams(h http.Header) bool {
	t := h["Content-Type"]
	return len(t) == 1 && strings.HasPrefix(t[0], "text/event-stream")
}
