package pumpkin

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// TestNobodyIsWaitedFor sends requests whose body never comes: each is answered and its connection closed all the same.
func TestNobodyIsWaitedFor(t *testing.T) {
	p, err := New(Config{Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	mux := http.NewServeMux()
	mux.Handle("/pumpkin.json", p.Public())
	mux.Handle("/", p.Admin())
	srv := httptest.NewServer(mux)
	defer srv.Close()
	for _, c := range []struct {
		line   string
		fields string
		status int
	}{
		{"PUT /items/x", "", 401},
		{"PUT /items/x", "Sec-Fetch-Site: cross-site\r\n", 403},
		{"POST /nowhere", "Authorization: Bearer " + testToken + "\r\n", 404},
		{"GET /pumpkin.json", "", 200},
		{"POST /pumpkin.json", "", 405},
	} {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second)) // only ends a failing test
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: 127.0.0.1\r\n%sContent-Length: 1000\r\n\r\n", c.line, c.fields)
		reader := bufio.NewReader(conn)
		res, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Errorf("%s: no answer while the body is outstanding: %v", c.line, err)
			continue
		}
		if res.StatusCode != c.status || !res.Close {
			t.Errorf("%s: status %d, to be closed %v; want %d and true", c.line, res.StatusCode, res.Close, c.status)
		}
		if _, err := io.ReadAll(reader); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection stays open", c.line)
		}
	}
}
