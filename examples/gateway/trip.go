package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// trip is one request on its way through the gateway. It is made before the request is decided about, so that what happens behind can
// be told from the upstream's doing.
type trip struct {
	to     target
	body   *passing // nil if there is none
	broken bool     // by the client: nothing that the upstream has done
}

type tripKey struct{}

// begin returns r as a trip.
func begin(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), tripKey{}, new(trip)))
}

// tripOf returns nil for what is no trip, such as a question of another proxy.
func tripOf(ctx context.Context) *trip {
	t, _ := ctx.Value(tripKey{}).(*trip)
	return t
}

// classify says what an answer means for the concurrency limit: an upstream that cannot be reached is no fast service, and gets
// little to do until it is back. What a client has broken off, or sent wrong, says nothing, or any client could close the gate.
func classify(r *http.Request, status int) shed.Outcome {
	if t := tripOf(r.Context()); t != nil && t.broken {
		return shed.Ignored
	}
	if status == http.StatusBadGateway {
		return shed.Dropped
	}
	return middleware.Classify(r, status)
}

// passing is a client's body on its way to the upstream.
type passing struct {
	io.ReadCloser
	trailer http.Header // what comes behind it; nil if that was not announced
	drop    func(http.Header)

	closed atomic.Bool // by who sends it on: what reading says then is not the client's doing
	failed atomic.Bool
}

// Read implements io.Reader. Trailers are there at the end.
func (p *passing) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	switch {
	case err == io.EOF:
		p.drop(p.trailer)
	case err != nil && !p.closed.Load():
		p.failed.Store(true)
	}
	return n, err
}

// Close implements io.Closer.
func (p *passing) Close() error {
	p.closed.Store(true)
	return p.ReadCloser.Close()
}

// dropUnfit removes from trailers what is no trailer's business: how long the body is, and names that cannot be sent.
func dropUnfit(trailer http.Header) {
	for field := range trailer {
		switch name := asName(field); {
		case name == "content-length", name == "transfer-encoding", name == "trailer", name == "host", name == "connection",
			name != strings.ReplaceAll(strings.ToLower(field), "_", "-"):
			delete(trailer, field)
		}
	}
}
