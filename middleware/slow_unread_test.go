package middleware_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// Before an answer leaves, net/http looks for the end of a body that nobody has read, for as long as the client likes. A client that
// stalls shall keep neither the answer nor the place by it, whatever the handler does with the body.
func TestAnAnswerDoesNotWaitForTheRestOfABodyThatStalls(t *testing.T) {
	flushed := func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusForbidden)
		_ = http.NewResponseController(w).Flush()
	}
	for name, row := range map[string]struct {
		handle func(w http.ResponseWriter, r *http.Request)
		status int
		after  time.Duration
	}{
		"answers":      {func(w http.ResponseWriter, _ *http.Request) { flushed(w) }, 403, 0},
		"writes much":  {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 9000)) }, 200, 0},
		"says nothing": {func(http.ResponseWriter, *http.Request) {}, 200, 5 * time.Second},
		"has a deadline of its own": {func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Second))
		}, 200, time.Second},
		"closes and answers":     {func(w http.ResponseWriter, r *http.Request) { r.Body.Close(); flushed(w) }, 403, 5 * time.Second},
		"answers and closes":     {func(w http.ResponseWriter, r *http.Request) { defer r.Body.Close(); flushed(w) }, 403, 0},
		"reads some and answers": {func(w http.ResponseWriter, r *http.Request) { _, _ = r.Body.Read(make([]byte, 9)); flushed(w) }, 403, 0},
	} {
		for _, head := range []string{"Content-Length: 40000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n9c40\r\n"} {
			t.Run(name, func(t *testing.T) {
				forEachAdapter(t, func(t *testing.T, a adapter) {
					synctest.Test(t, func(t *testing.T) {
						s := open(t, 1, nil)
						connect := piped(t, a.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(row.handle)))
						conn, start := connect(), time.Now()
						go fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nX-API-Key: slow\r\n%s%s", head, strings.Repeat("x", 20000))
						res := answered(t, conn)
						if took := time.Since(start); res.StatusCode != row.status || took != row.after || !res.Close {
							t.Errorf("%s after %v, the connection stays: %t; want %d after %v", res.Status, took, !res.Close, row.status, row.after)
						}
						go func() { _, _ = io.Copy(io.Discard, conn) }()
						time.Sleep(5 * time.Second)
						synctest.Wait()
						if st := s.Status(); st.InFlight != 0 {
							t.Errorf("%d in flight after %v", st.InFlight, time.Since(start))
						}
						if _, err := conn.Write([]byte("x")); err == nil {
							t.Error("the connection outlives the grace")
						}
					})
				})
			})
		}
	}
}

// A body that has come costs no connection, whether the handler reads it or not, and whether it closes it; nor does the bound on the rest
// look like a client that has left.
func TestAConnectionStaysWhereTheBodyHasCome(t *testing.T) {
	for name, handle := range map[string]func(w http.ResponseWriter, r *http.Request){
		"short and unread":    func(http.ResponseWriter, *http.Request) {},
		"long and read":       func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
		"long and closed":     func(_ http.ResponseWriter, r *http.Request) { r.Body.Close() },
		"long, closed, lasts": func(_ http.ResponseWriter, r *http.Request) { r.Body.Close(); time.Sleep(20 * time.Second) },
	} {
		for _, chunked := range []bool{false, true} {
			forEachAdapter(t, func(t *testing.T, a adapter) {
				synctest.Test(t, func(t *testing.T) {
					s := open(t, 1, nil)
					n := 40000
					if strings.HasPrefix(name, "short") {
						n = 4000
					}
					h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						handle(w, r)
						if err := r.Context().Err(); err != nil {
							t.Errorf("%s: %v", name, err)
						}
						ok(w, nil)
					})
					conn := piped(t, a.wrap(t, middleware.Config{Shedder: s}, h))()
					text := fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", n, strings.Repeat("x", n))
					if chunked {
						text = fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", n, strings.Repeat("x", n))
					}
					answers := bufio.NewReader(conn)
					for range 2 {
						go io.WriteString(conn, text)
						res, err := http.ReadResponse(answers, nil)
						if err != nil {
							t.Fatalf("%s: %v", name, err)
						}
						allowed(t, res)
						if res.Close {
							t.Errorf("%s, chunked %t: the connection is closed", name, chunked)
						}
					}
				})
			})
		}
	}
}

// The same where another goroutine reads, as one of http.Transport does for a proxy, and goes on when the handler has ended: the answer
// and the place do not wait for it. Here time is real, for who waits for a mutex stops the virtual one; the bound only ends a test that
// fails.
func TestAReaderThatOutlivesItsHandlerKeepsNoPlace(t *testing.T) {
	for name, answer := range map[string]string{"says nothing": "", "writes much": strings.Repeat("x", 9000)} {
		forEachAdapter(t, func(t *testing.T, a adapter) {
			s := open(t, 1, func(c *shed.Config) { c.Bodies.Grace = 100 * time.Millisecond })
			read := make(chan struct{})
			srv := world{a, false}.serve(t, a.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := r.Body
				go func() { defer close(read); _, _ = io.Copy(io.Discard, body) }()
				_, _ = io.WriteString(w, answer)
			})))
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 40000\r\n\r\n%s", strings.Repeat("x", 20000))
			if res := answered(t, conn); !res.Close {
				t.Errorf("%s: the connection stays", name)
			}
			wait.Until(t, "given back", func() bool { return s.Status().InFlight == 0 })
			conn.Close()
			<-read
		})
	}
}
