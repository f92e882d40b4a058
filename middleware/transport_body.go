package middleware

import (
	"io"
	"sync"
)

// held makes release run once, when the body has been read to its end, has failed, or is closed: only then the call is over
// and its place free. A body that can be written to, of an upgraded connection, stays one.
func held(body io.ReadCloser, release func()) io.ReadCloser {
	b := heldBody{ReadCloser: body, release: sync.OnceFunc(release)}
	if w, ok := body.(io.Writer); ok {
		return &heldConn{b, w}
	}
	return &b
}

type heldBody struct {
	io.ReadCloser
	release func()
}

func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.release()
	}
	return n, err
}

func (b *heldBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// heldConn is the body of a 101.
type heldConn struct {
	heldBody
	io.Writer
}
