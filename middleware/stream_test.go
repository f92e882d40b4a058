package middleware_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/middleware/echomw"
	"github.com/spillway-go/spillway/shed"
)

// writer-flush: an event reaches the client while the handler still runs, by either way of flushing.
func TestEventsArriveAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		for why, flush := range map[string]func(http.ResponseWriter) error{
			"assertion":  func(w http.ResponseWriter) error { w.(http.Flusher).Flush(); return nil },
			"controller": func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
		} {
			t.Run(why, func(t *testing.T) {
				s := open(t, 10, nil)
				read := make(chan struct{})
				srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprint(w, "data: first\n\n")
					if err := flush(w); err != nil {
						t.Error(err)
					}
					<-read // a client that gets nothing before the end would never let it end
					fmt.Fprint(w, "data: last\n\n")
				})))
				res := send(t, srv, "GET", "/")
				events := bufio.NewReader(res.Body)
				if line, err := events.ReadString('\n'); line != "data: first\n" {
					t.Errorf("%q, %v", line, err)
				}
				close(read)
				if rest, err := io.ReadAll(events); !strings.Contains(string(rest), "last") {
					t.Errorf("%q, %v", rest, err)
				}
				srv.Close()
				atRest(t, s, map[string]int64{"ignored": 1}) // a stream's length is no sample of latency
			})
		}
	})
}

// long-lived: streams that nobody has announced take no place from short requests, whether the limit is 1 or 500.
func TestAnOpenStreamTakesNobodysPlace(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 1, nil)
		end := make(chan struct{})
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/events" {
				ok(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: first\n\n")
			_ = http.NewResponseController(w).Flush()
			<-end
		})))
		for range 3 {
			res := send(t, srv, "GET", "/events")
			if line, err := bufio.NewReader(res.Body).ReadString('\n'); line != "data: first\n" {
				t.Fatalf("%q, %v", line, err)
			}
		}
		allowed(t, send(t, srv, "GET", "/"))
		if st := s.Status(); st.Streams != 3 || st.InFlight > 1 {
			t.Errorf("%d streams, %d in flight; want 3 and at most the short one", st.Streams, st.InFlight)
		}
		close(end)
		srv.Close()
		atRest(t, s, map[string]int64{"ignored": 3, "success": 1})
		if st := s.Status(); st.Streams != 0 {
			t.Errorf("%d streams are left", st.Streams)
		}
	})
}

// writer-hijack: an upgrade as WebSocket libraries do it, without the library.
func TestUpgradesTakeOverTheConnection(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 10, limited(bucket("per-client", 1)))
		srv := world{a, false}.serve(t, a.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_ = rw.Flush()
			line, _ := rw.ReadString('\n')
			fmt.Fprint(rw, line)
			_ = rw.Flush()
		})))
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		in := textproto.NewReader(bufio.NewReader(conn))
		if status, err := in.ReadLine(); status != "HTTP/1.1 101 Switching Protocols" {
			t.Fatalf("%q, %v", status, err)
		}
		if _, err := in.ReadMIMEHeader(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "hello\n")
		if line, err := in.ReadLine(); line != "hello" {
			t.Errorf("%q, %v", line, err)
		}
		if _, err := in.ReadLine(); err != io.EOF { // the handler is about to return
			t.Errorf("%v", err)
		}
		srv.Close()
		refused(t, call(a.wrap(t, middleware.Config{Shedder: s}, ok), "GET", "/", "127.0.0.1:1").Result(), 429, shed.OverLimit)
	})
}

func TestUpgradesAreNoSamples(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 10, nil)
		returned := make(chan struct{})
		h := a.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				fmt.Fprint(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
				conn.Close()
			}
		}))
		srv := world{a, false}.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(returned)
			h.ServeHTTP(w, r)
		}))
		if res := send(t, srv, "GET", "/"); res.StatusCode != 204 {
			t.Errorf("status %d", res.StatusCode)
		}
		<-returned
		atRest(t, s, map[string]int64{"ignored": 1})
	})
}

func TestHintsComeBeforeTheStatus(t *testing.T) {
	early := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusCreated)
	})
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 10, nil)
		h := wrapHTTP(t, middleware.Config{Shedder: s}, early)
		if w.name == "Echo" { // its Response takes a 103 for the final status; the writer in it does not
			e := echo.New()
			e.Use(echomw.Shed(s))
			e.GET("/", func(c echo.Context) error { early(c.Response().Writer, c.Request()); return nil })
			h = e
		}
		srv := w.serve(t, h)
		var hints []int
		req, err := http.NewRequest("GET", srv.URL+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req = req.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, _ textproto.MIMEHeader) error { hints = append(hints, code); return nil },
		}))
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if len(hints) != 1 || hints[0] != 103 || res.StatusCode != 201 {
			t.Errorf("hints %v, then %d; want 103, then 201", hints, res.StatusCode)
		}
		srv.Close()
		atRest(t, s, map[string]int64{"success": 1})
	})
}

// readsFrom tells whether somebody used the fast way for files.
type readsFrom struct {
	http.ResponseWriter
	used *bool
}

func (w readsFrom) ReadFrom(src io.Reader) (int64, error) {
	*w.used = true
	return w.ResponseWriter.(io.ReaderFrom).ReadFrom(src)
}

func TestFilesGoOutTheFastWay(t *testing.T) {
	content := bytes.Repeat([]byte("spillway\n"), 100_000)
	file := filepath.Join(t.TempDir(), "file.txt")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, 10, nil)
	h := wrapHTTP(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) }))
	used := false
	srv := world{adapters[0], false}.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(readsFrom{w, &used}, r)
	}))
	res := send(t, srv, "GET", "/")
	if body, err := io.ReadAll(res.Body); !bytes.Equal(body, content) {
		t.Errorf("%d bytes arrived, %v", len(body), err)
	}
	if !used {
		t.Error("ReadFrom was hidden: files are copied through this process")
	}
	wait.Until(t, "ended", func() bool { return s.Status().InFlight == 0 }) // before Close looks as if the client had left
	srv.Close()
	atRest(t, s, map[string]int64{"success": 1})
}

// long-lived: streams have a budget of their own and leave the gate to others.
func TestStreamsDoNotTakeThePlacesOfRequests(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 1, func(c *shed.Config) { c.Routes = []shed.Route{{Name: "events", Match: "GET /events", LongLived: 2}} })
		mux := http.NewServeMux()
		end := make(chan struct{})
		mux.HandleFunc("GET /events", func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush() // nothing of the response says that it is a stream: the route does
			<-end
		})
		mux.Handle("/", ok)
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, mux))
		for range 2 {
			if res := send(t, srv, "GET", "/events"); res.StatusCode != 200 {
				t.Fatalf("status %d", res.StatusCode)
			}
		}
		if res := send(t, srv, "GET", "/events"); res.StatusCode != 503 {
			t.Errorf("a third stream of two: status %d", res.StatusCode)
		}
		allowed(t, send(t, srv, "GET", "/"))
		close(end)
		srv.Close()
		atRest(t, s, map[string]int64{"ignored": 2, "success": 1})
	})
}
