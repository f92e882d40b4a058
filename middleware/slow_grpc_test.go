package middleware_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/middleware"
)

// A call of gRPC may begin with the service's word, so nothing is awaited of it. Whoever only looks like one is gathered as everybody
// else, and here, where nothing comes, ends with the grace. The exact types are those that gRPC's own servers take.
func TestOnlyCallsOfGRPCAreNotAwaited(t *testing.T) {
	for kind, talks := range map[string]bool{
		"application/grpc": true, "application/grpc+proto": true, "application/grpc;x": true,
		"application/grpcfoo": false, "application/grpc-web": false, "text/plain": false, "": false,
	} {
		for _, length := range []int64{-1, 5} {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, 1, nil)
				connect := piped(t, wrapHTTP(t, middleware.Config{Shedder: s}, ok))
				tr := &http.Transport{Protocols: new(http.Protocols), DialContext: func(context.Context, string, string) (net.Conn, error) { return connect(), nil }}
				tr.Protocols.SetUnencryptedHTTP2(true)
				defer tr.CloseIdleConnections()
				body, writer := io.Pipe() // nothing comes
				defer writer.Close()
				req, err := http.NewRequestWithContext(t.Context(), "POST", "http://x/", body)
				if err != nil {
					t.Fatal(err)
				}
				req.ContentLength = length
				req.Header.Set("Content-Type", kind)
				req.Header.Set("X-API-Key", "a")
				start := time.Now()
				res, err := tr.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				status, after := http.StatusRequestTimeout, 5*time.Second
				if talks && length < 0 {
					status, after = http.StatusOK, 0
				}
				if took := time.Since(start); res.StatusCode != status || took != after || res.ProtoMajor != 2 {
					t.Errorf("%q, length %d: %s %s after %v, want %d after %v", kind, length, res.Proto, res.Status, took, status, after)
				}
			})
		}
	}
}
