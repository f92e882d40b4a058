package middleware_test

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// Who trickles one byte a second is answered after what time, and how.
func TestWhatIsAndIsNotEndedOfBodiesThatTrickle(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*shed.Config)
		head   string
		status int
		after  time.Duration
		piece  string
	}{
		"calls itself gRPC over HTTP/1": {head: "Content-Type: application/grpc\r\n", status: 408, after: 5 * time.Second},
		"the same in chunks": {head: "Content-Type: application/grpc\r\nTransfer-Encoding: chunked\r\n", piece: "1\r\nx\r\n", status: 408,
			after: 5 * time.Second},
		"asks for an upgrade": {head: "Connection: Upgrade\r\nUpgrade: tcp\r\n", status: 408, after: 5 * time.Second},
		"shadow":              {change: func(c *shed.Config) { c.Shadow = true }, status: 200, after: 20 * time.Second},
		"shadow route": {change: func(c *shed.Config) { c.Routes = []shed.Route{{Name: "r", Match: "POST /", Shadow: true}} },
			status: 200, after: 20 * time.Second},
		"ungated": {change: func(c *shed.Config) { *c = c.Ungated() }, status: 200, after: 20 * time.Second},
		"long-lived route": {change: func(c *shed.Config) { c.Routes = []shed.Route{{Name: "r", Match: "POST /", LongLived: 1}} },
			status: 200, after: 20 * time.Second},
		"exempt route": {change: func(c *shed.Config) { c.Routes = []shed.Route{{Name: "r", Match: "POST /", Exempt: true}} },
			status: 200, after: 20 * time.Second},
		"deadline of the route": {change: func(c *shed.Config) {
			c.Routes = []shed.Route{{Name: "r", Match: "POST /", Deadline: time.Second}}
		}, status: 503, after: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			forEachAdapter(t, func(t *testing.T, a adapter) {
				synctest.Test(t, func(t *testing.T) {
					s := open(t, 1, row.change)
					conn, start := piped(t, a.wrap(t, middleware.Config{Shedder: s}, reading))(), time.Now()
					if row.piece == "" {
						row.head, row.piece = row.head+"Content-Length: 20\r\n", "x"
					}
					posting(t, conn, row.head, row.piece, 20)
					if res := answered(t, conn); res.StatusCode != row.status || time.Since(start) != row.after {
						t.Errorf("%s after %v, want %d after %v", res.Status, time.Since(start), row.status, row.after)
					}
				})
			})
		})
	}
}

func TestCloseEndsGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 1, nil)
		conn, start := piped(t, wrapHTTP(t, middleware.Config{Shedder: s}, reading))(), time.Now()
		posting(t, conn, "Content-Length: 20\r\n", "x", 20)
		time.Sleep(1500 * time.Millisecond)
		s.Close()
		if res := answered(t, conn); res.StatusCode != 503 || time.Since(start) != 1500*time.Millisecond {
			t.Errorf("%s after %v", res.Status, time.Since(start))
		}
	})
}

// The handler's own deadline holds where it is the sooner one, and is not taken for a lack of pace.
func TestTheHandlersOwnReadDeadlineHolds(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 1, nil)
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Second)); err != nil {
					t.Error(err)
				}
				reading(w, r)
			})
			conn, start := piped(t, a.wrap(t, middleware.Config{Shedder: s}, h))(), time.Now()
			go fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n%s", strings.Repeat("x", 20000))
			if res := answered(t, conn); res.StatusCode != http.StatusTeapot || time.Since(start) != time.Second {
				t.Errorf("%s after %v", res.Status, time.Since(start))
			}
		})
	})
}

// Who asks first whether to send a body, or whether to go on in another protocol, is answered before any of it comes.
func TestWhoAsksFirstIsAnsweredFirst(t *testing.T) {
	for _, row := range []struct {
		head   string
		status int // 0 if the handler says nothing
	}{
		{"Expect: 100-continue", 413}, {"Expect: 100-continue", 0}, {"Connection: Upgrade\r\nUpgrade: tcp", 413},
	} {
		forEachAdapter(t, func(t *testing.T, a adapter) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, 1, nil)
				h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if row.status != 0 {
						w.WriteHeader(row.status)
					}
				})
				conn, start := piped(t, a.wrap(t, middleware.Config{Shedder: s}, h))(), time.Now()
				go fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Length: 60000\r\n\r\n", row.head)
				if res := answered(t, conn); res.StatusCode != cmp.Or(row.status, 200) || time.Since(start) != 0 {
					t.Errorf("%s: %s after %v", row.head, res.Status, time.Since(start))
				}
			})
		})
	}
}

// A connection that was taken over while a body was still to come is its new owner's: no deadline of ours ends it.
func TestAConnectionThatIsTakenOverKeepsNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 1, nil)
		ended := make(chan error, 1)
		h := wrapHTTP(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			go func() {
				_, err := io.Copy(io.Discard, conn)
				ended <- err
			}()
		}))
		conn := piped(t, h)()
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 40000\r\n\r\n%s", strings.Repeat("x", 20000))
		time.Sleep(time.Minute)
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Error(err)
		}
		conn.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// More bodies than may be gathered at once take no places.
func TestMoreBodiesThanAreGatheredAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 4, nil)
		connect := piped(t, wrapHTTP(t, middleware.Config{Shedder: s}, reading))
		ask := func() net.Conn {
			conn := connect()
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nX-API-Key: slow\r\nContent-Length: 9\r\n\r\n")
			return conn
		}
		for range 4096 {
			go func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }(ask())
		}
		synctest.Wait()
		if n := s.Status().Refused[shed.Overloaded]; n != 0 {
			t.Errorf("%d refused while there was room", n)
		}
		res := answered(t, ask())
		refused(t, res, 503, shed.Overloaded)
		if wait, _ := strconv.Atoi(res.Header.Get("Retry-After")); wait < 5 || wait > 10 { // by then those have shown their pace
			t.Errorf("Retry-After %d", wait)
		}
		if st := s.Status(); st.InFlight != 0 {
			t.Errorf("%d in flight", st.InFlight)
		}
		time.Sleep(6 * time.Second)
	})
}

// A handler may give an upload more time than the server's ReadTimeout, and without that the ReadTimeout holds. The pace holds all the
// same.
func TestAHandlerExtendsTheReadTimeout(t *testing.T) {
	long := strings.Repeat("x", 20000)
	for _, row := range []struct {
		extends bool
		piece   string
		n       int // of four that are announced
		status  int
		after   time.Duration
	}{
		{true, long, 4, 200, 4 * time.Second}, {false, long, 4, http.StatusTeapot, 2500 * time.Millisecond},
		{true, long, 1, 408, 6 * time.Second}, {true, "x", 3, 408, 2500 * time.Millisecond}, // the handler is not reached in time
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 1, nil)
			h := wrapHTTP(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if row.extends {
					_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Minute))
				}
				reading(w, r)
			}))
			srv := &http.Server{Handler: h, Protocols: new(http.Protocols), ReadTimeout: 2500 * time.Millisecond}
			conn, start := pipedServer(t, srv)(), time.Now()
			posting(t, conn, fmt.Sprintf("Content-Length: %d\r\n", 4*len(row.piece)), row.piece, row.n)
			if res := answered(t, conn); res.StatusCode != row.status || time.Since(start) != row.after {
				t.Errorf("%d pieces of %d bytes, extends %t: %s after %v, want %d after %v",
					row.n, len(row.piece), row.extends, res.Status, time.Since(start), row.status, row.after)
			}
		})
	}
}

// The server's ReadTimeout is for the request. A handler that works for longer, once the body has come, is not told that its client
// had left.
func TestAHandlerMayWorkForLongerThanTheReadTimeout(t *testing.T) {
	for name, take := range map[string]func(r *http.Request){
		"reads":   func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
		"closes":  func(r *http.Request) { r.Body.Close() },
		"neither": func(*http.Request) {},
	} {
		for _, n := range []int{10, 40000} {
			forEachAdapter(t, func(t *testing.T, a adapter) {
				synctest.Test(t, func(t *testing.T) {
					s := open(t, 1, nil)
					h := a.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						take(r)
						time.Sleep(20 * time.Second)
						if err := r.Context().Err(); err != nil {
							t.Errorf("%s, %d bytes: %v", name, n, err)
						}
						ok(w, r)
					}))
					srv := &http.Server{Handler: h, Protocols: new(http.Protocols), ReadTimeout: 2500 * time.Millisecond}
					conn := pipedServer(t, srv)()
					go fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", n, strings.Repeat("x", n))
					allowed(t, answered(t, conn))
				})
			})
		}
	}
}

// Reading or closing after the handler's end leaves the connection's deadlines to the server: it idles out when it should.
func TestReadingAfterTheEndTouchesNoDeadline(t *testing.T) {
	for name, late := range map[string]func(body io.ReadCloser){
		"reads": func(body io.ReadCloser) { _, _ = io.Copy(io.Discard, body) }, "closes": func(body io.ReadCloser) { body.Close() },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 1, nil)
			h := wrapHTTP(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body := r.Body
				_, _ = body.Read(make([]byte, 1))
				time.AfterFunc(time.Second, func() { late(body) })
			}))
			srv := &http.Server{Handler: h, Protocols: new(http.Protocols), IdleTimeout: 3 * time.Second}
			conn, start := pipedServer(t, srv)(), time.Now()
			go fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n%s", strings.Repeat("x", 20000))
			answered(t, conn)
			_, err := conn.Read(make([]byte, 1))
			if took := time.Since(start); err != io.EOF || took != 3*time.Second {
				t.Errorf("%s: %v after %v", name, err, took)
			}
		})
	}
}
