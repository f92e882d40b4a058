package middleware

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

type bodyOnce struct {
	io.Reader
	closed bool
}

func (c *bodyOnce) Close() error { c.closed = true; return nil }

func TestACallWithoutURLIsAnError(t *testing.T) {
	tr, err := NewTransport(TransportConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	body := &bodyOnce{Reader: strings.NewReader("x")}
	if _, err := tr.RoundTrip(&http.Request{Method: "POST", Body: body}); err == nil || !body.closed {
		t.Errorf("got %v, body closed %v; want an error and a closed body", err, body.closed)
	}
}
