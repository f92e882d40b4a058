package middleware_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// pipes is a listener without a network, so that real servers run in virtual time.
type pipes struct {
	conns chan net.Conn
	close func()
}

func (p pipes) Accept() (net.Conn, error) {
	c, open := <-p.conns
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error { p.close(); return nil }
func (pipes) Addr() net.Addr { return &net.UnixAddr{} }

// piped serves h over pipes and returns how to connect. Who asks is told by an API key, for a pipe has no address.
func piped(t *testing.T, h http.Handler) func() net.Conn {
	t.Helper()
	return pipedServer(t, &http.Server{Handler: h, Protocols: new(http.Protocols)})
}

func pipedServer(t *testing.T, srv *http.Server) func() net.Conn {
	t.Helper()
	conns := make(chan net.Conn)
	p := pipes{conns, sync.OnceFunc(func() { close(conns) })}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(p) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return func() net.Conn {
		ours, theirs := net.Pipe()
		p.conns <- theirs
		t.Cleanup(func() { _ = ours.Close() })
		return ours
	}
}

// posting sends the head of a POST and then pieces of its body, one every second, until it is told to stop or nobody reads them.
func posting(t *testing.T, conn net.Conn, head, piece string, n int) {
	done := make(chan struct{})
	t.Cleanup(func() { _ = conn.Close(); <-done })
	go func() {
		defer close(done)
		if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nX-API-Key: slow\r\n%s\r\n", head); err != nil {
			return
		}
		for range n {
			time.Sleep(time.Second)
			if _, err := io.WriteString(conn, piece); err != nil {
				return
			}
		}
	}()
}

func answered(t *testing.T, conn net.Conn) *http.Response {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// reading is a handler that reads the body and says how long it was, or that it failed.
var reading = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "the handler's own answer")
		return
	}
	fmt.Fprint(w, n)
})

// slow-client-holds-permit: who sends a body byte by byte holds no place, whoever else comes is served, and it ends with the grace.
func TestASlowBodyHoldsNoPlaceAndEndsWithTheGrace(t *testing.T) {
	for name, head := range map[string]string{
		"known length":   "Content-Length: 1000\r\n",
		"unknown length": "Transfer-Encoding: chunked\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			forEachAdapter(t, func(t *testing.T, a adapter) {
				synctest.Test(t, func(t *testing.T) {
					s := open(t, 1, limited(bucket("per-client", 1)))
					connect := piped(t, a.wrap(t, middleware.Config{Shedder: s}, reading))
					conn, start := connect(), time.Now()
					piece := "x"
					if strings.Contains(head, "chunked") {
						piece = "1\r\nx\r\n"
					}
					posting(t, conn, head, piece, 1000)
					time.Sleep(2500 * time.Millisecond)
					if st := s.Status(); st.InFlight != 0 {
						t.Errorf("%d in flight while the body is awaited", st.InFlight)
					}
					other := connect()
					go fmt.Fprint(other, "POST / HTTP/1.1\r\nHost: x\r\nX-API-Key: other\r\nContent-Length: 3\r\n\r\nabc")
					if res := answered(t, other); res.StatusCode != 200 || time.Since(start) != 2500*time.Millisecond {
						t.Errorf("another: %s after %v", res.Status, time.Since(start))
					}
					res := answered(t, conn)
					if took := time.Since(start); took != 5*time.Second || !res.Close {
						t.Errorf("%s after %v, the connection stays: %t", res.Status, took, !res.Close)
					}
					refused(t, res, 408, shed.BodyTooSlow)
					if res.Header.Get("Retry-After") != "" || s.Status().Refused[shed.BodyTooSlow] != 1 {
						t.Errorf("%v, refused %v", res.Header, s.Status().Refused)
					}
					atRest(t, s, map[string]int64{"success": 1})
				})
			})
		})
	}
}

// The control: without the watch the body holds the only place for as long as it likes.
func TestWithoutTheWatchASlowBodyHoldsThePlace(t *testing.T) {
	for name, b := range map[string]shed.Bodies{"unwatched": {Unwatched: true}, "nothing gathered": {Gather: -1}} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 1, func(c *shed.Config) { c.Bodies = b })
			connect := piped(t, wrapHTTP(t, middleware.Config{Shedder: s}, reading))
			conn, start := connect(), time.Now()
			posting(t, conn, "Content-Length: 10\r\n", "x", 10)
			time.Sleep(2500 * time.Millisecond)
			if st := s.Status(); st.InFlight != 1 {
				t.Errorf("%s: %d in flight", name, st.InFlight)
			}
			want, status := 10*time.Second, 200
			if !b.Unwatched {
				want, status = 5*time.Second, 408
			}
			if res := answered(t, conn); res.StatusCode != status || time.Since(start) != want {
				t.Errorf("%s: %s after %v", name, res.Status, time.Since(start))
			}
		})
	}
}

// Who is slow but fast enough is served, however long that takes, and so is the end of a body that is shorter than what has to come.
func TestASlowBodyThatIsFastEnoughIsServed(t *testing.T) {
	for _, row := range []struct {
		piece string
		n     int
	}{{strings.Repeat("x", 300), 1000}, {"x", 4}} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 1, nil)
			connect := piped(t, wrapHTTP(t, middleware.Config{Shedder: s}, reading))
			conn, start := connect(), time.Now()
			all := len(row.piece) * row.n
			posting(t, conn, fmt.Sprintf("Content-Length: %d\r\n", all), row.piece, row.n)
			res := answered(t, conn)
			if body, _ := io.ReadAll(res.Body); res.StatusCode != 200 || string(body) != fmt.Sprint(all) || time.Since(start) != time.Duration(row.n)*time.Second {
				t.Errorf("%s %s after %v", res.Status, body, time.Since(start))
			}
		})
	}
}

// The rest of a long body, which is read while the request has its place, has to come too: the place is free and the answer is there
// at once, whatever the handler makes of it.
func TestTheRestOfALongBodyHasToCome(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 1, nil)
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				if st := s.Status(); err == nil || st.InFlight != 0 {
					t.Errorf("%v, %d in flight", err, st.InFlight)
				}
				http.Error(w, "the handler's own answer", http.StatusBadGateway)
			})
			conn, start := piped(t, a.wrap(t, middleware.Config{Shedder: s}, h))(), time.Now()
			go func() {
				fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nX-API-Key: slow\r\nContent-Length: 100000\r\n\r\n%s", strings.Repeat("x", 50_000))
			}()
			res := answered(t, conn)
			refused(t, res, 408, shed.BodyTooSlow)
			if took := time.Since(start); took != 5*time.Second || !res.Close {
				t.Errorf("after %v, the connection stays: %t", took, !res.Close)
			}
			synctest.Wait()
			if st := s.Status(); st.BodiesCut != 1 || st.Refused[shed.BodyTooSlow] != 0 {
				t.Errorf("%d cut, refused %v", st.BodiesCut, st.Refused)
			}
			atRest(t, s, map[string]int64{"ignored": 1})
		})
	})
}

// A handler that takes its time is no slow client, and neither is one that waits for what limits on bytes allow.
func TestASlowHandlerIsNoSlowClient(t *testing.T) {
	for name, change := range map[string]func(*shed.Config){
		"handler": nil,
		"limit": func(c *shed.Config) {
			c.Limits = []shed.Limit{{Name: "upload", Rule: limits.TokenBucket{Capacity: 1000, Refill: limits.PerSecond(1000)}, Unit: shed.RequestBytes}}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 1, change)
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				buf := make([]byte, 1000)
				n := 0
				for {
					if change == nil {
						time.Sleep(time.Second)
					}
					k, err := r.Body.Read(buf)
					if n += k; err == io.EOF {
						break
					} else if err != nil {
						t.Errorf("%s: %v after %d bytes", name, err, n)
						return
					}
				}
				fmt.Fprint(w, n)
			})
			conn := piped(t, wrapHTTP(t, middleware.Config{Shedder: s}, h))()
			go func() {
				fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nX-API-Key: a\r\nTransfer-Encoding: chunked\r\n\r\nea60\r\n%s\r\n0\r\n\r\n", strings.Repeat("x", 60_000))
			}()
			if res := answered(t, conn); res.StatusCode != 200 {
				t.Errorf("%s: %s", name, res.Status)
			}
		})
	}
}

// Over HTTP/2 it is the same, and the other streams of the connection live on. One side of a conversation is not awaited.
func TestSlowBodiesOverHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 1, nil)
		reached := map[string]bool{}
		connect := piped(t, wrapHTTP(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/talk" || r.Method == http.MethodConnect {
				_ = http.NewResponseController(w).Flush()
			}
			reached[r.URL.Path] = true
			reading(w, r)
		})))
		tr := &http.Transport{Protocols: new(http.Protocols), DialContext: func(context.Context, string, string) (net.Conn, error) { return connect(), nil }}
		tr.Protocols.SetUnencryptedHTTP2(true)
		defer tr.CloseIdleConnections()
		method := "POST"
		post := func(path string, length int64, body io.Reader) *http.Response {
			req, err := http.NewRequestWithContext(t.Context(), method, "http://x"+path, body)
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = length
			req.Header.Set("X-API-Key", "a")
			res, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		start := time.Now()
		never, writer := io.Pipe()
		defer writer.Close()
		go func() { _, _ = io.WriteString(writer, "not all") }()
		res := post("/slow", 100, never)
		refused(t, res, 408, shed.BodyTooSlow)
		if took := time.Since(start); took != 5*time.Second || reached["/slow"] {
			t.Errorf("after %v, the handler was reached: %t", took, reached["/slow"])
		}
		res.Body.Close()
		if res := post("/", 3, strings.NewReader("abc")); res.StatusCode != 200 {
			t.Errorf("the next: %s", res.Status)
		} else {
			res.Body.Close()
		}
		talk, writer := io.Pipe()
		go func() { _, _ = io.WriteString(writer, "hello") }()
		res = post("/talk", -1, talk)
		if took := time.Since(start); res.StatusCode != 200 || took != 5*time.Second {
			t.Errorf("a conversation: %s after %v", res.Status, took)
		}
		_ = writer.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		tunnel, writer := io.Pipe()
		method, start = http.MethodConnect, time.Now()
		res = post("", -1, tunnel)
		if took := time.Since(start); res.StatusCode != 200 || took != 0 {
			t.Errorf("a tunnel: %s after %v", res.Status, took)
		}
		_ = writer.Close()
		res.Body.Close()
		synctest.Wait()
		atRest(t, s, map[string]int64{"success": 2, "ignored": 1})
	})
}
