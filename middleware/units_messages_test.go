package middleware_test

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/websocket"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

func TestEventsOfAStreamArePacedAndCommentsAreNot(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 1, limited(slow("chat", shed.Messages, 2, 1), func() shed.Limit {
				l := slow("large", shed.Messages, 1, 1)
				l.MinSize = 1000
				return l
			}()))
			for why, c := range map[string]struct {
				parts []string
				took  time.Duration
				all   int64
				large int64
			}{
				"two events":        {[]string{"data: a\n\n", "data: b\n\n"}, 0, 2, 0},
				"four events":       {[]string{"data: a\n\ndata: b\n\n", "data: c\n\ndata: d\n\n"}, 2 * time.Second, 4, 0},
				"cut anywhere":      {[]string{"da", "ta: a\n", "\nda", "ta: b", "\r", "\n\r", "\ndata: c\r\r"}, time.Second, 3, 0},
				"several lines":     {[]string{"id: 1\nevent: x\ndata: a\ndata: b\n\n"}, 0, 1, 0},
				"comments":          {[]string{":\n\n: ping\n\n", ": a\n: b\n\n\n\n"}, 0, 0, 0},
				"comment and event": {[]string{": a\ndata: b\n\n"}, 0, 1, 0},
				"event and comment": {[]string{"data: a\n: b\n\n"}, 0, 1, 0},
				"short line":        {[]string{"x\n\n"}, 0, 1, 0},
				"large, CRLF":       {[]string{"data: " + strings.Repeat("x", 991) + "\r\n\r\n"}, 0, 1, 1},
				"incomplete":        {[]string{"data: a\n"}, 0, 0, 0},
				"large ones":        {[]string{"data: " + strings.Repeat("x", 1000) + "\n\n", "data: " + strings.Repeat("x", 993) + "\n\n"}, time.Second, 2, 2},
				"just not large":    {[]string{"data: " + strings.Repeat("x", 991) + "\n\n", "data: " + strings.Repeat("x", 991) + "\n\n"}, 0, 2, 0},
			} {
				h := a.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					for _, part := range c.parts {
						_, _ = io.WriteString(w, part)
					}
				}))
				start, all, large := time.Now(), units(t, s, "chat"), units(t, s, "large")
				w := call(h, "GET", "/", "192.0.2.1:1")
				if took := time.Since(start); took != c.took || w.Body.String() != strings.Join(c.parts, "") {
					t.Errorf("%s: took %v, want %v; %q", why, took, c.took, w.Body)
				}
				if got := units(t, s, "chat").Units - all.Units; got != c.all {
					t.Errorf("%s: %d events, want %d", why, got, c.all)
				}
				if got := units(t, s, "large").Units - large.Units; got != c.large {
					t.Errorf("%s: %d large events, want %d", why, got, c.large)
				}
				time.Sleep(time.Hour)
			}
			plain := a.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, strings.Repeat("data: a\n\n", 100))
			}))
			start := time.Now()
			if call(plain, "GET", "/", "192.0.2.1:1"); time.Since(start) != 0 {
				t.Error("what is no event stream has no events")
			}
		})
	})
}

// messages-of-websockets: real ones, over real connections, by a library that is not ours.
func TestMessagesOfAWebSocketAreCountedAsTheyComeIn(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		large := slow("large", shed.Messages, 1_000_000, 1)
		large.MinSize = 1000
		s := open(t, 1, limited(slow("chat", shed.Messages, 1_000_000, 1), large))
		echoes := websocket.Server{Handler: func(c *websocket.Conn) { _, _ = io.Copy(c, c) }}
		srv := world{a, false}.serve(t, a.wrap(t, middleware.Config{Shedder: s}, echoes))
		c, err := websocket.Dial("ws"+strings.TrimPrefix(srv.URL, "http"), "", srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		sizes := []int{0, 1, 125, 126, 999, 1000, 65535, 65536, 200_000}
		for _, size := range sizes {
			if err := websocket.Message.Send(c, make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			for got := 0; got < size; {
				buf := make([]byte, size)
				n, err := c.Read(buf)
				if err != nil {
					t.Fatal(err)
				}
				got += n
			}
		}
		if got := units(t, s, "chat").Units; got != int64(len(sizes)) {
			t.Errorf("%d messages were counted, want %d", got, len(sizes))
		}
		if got := units(t, s, "large").Units; got != 4 {
			t.Errorf("%d large messages were counted, want 4", got)
		}
		c.Close()
	})
}

// Waiting flushes what has been written before. Once a connection has been taken over there is no response to be flushed, and net/http
// panics where one tries, in whatever goroutine that is: neither messages that wait nor what is still written to the response do.
func TestWhoWaitsOnAConnectionThatWasTakenOverFlushesNothing(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 1, limited(slow("chat", shed.Messages, 2, 100), slow("egress", shed.ResponseBytes, 2, 100)))
		failures := make(chan any, 9)
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() { failures <- recover() }()
			websocket.Server{Handler: func(c *websocket.Conn) { _, _ = io.Copy(c, c) }}.ServeHTTP(w, r)
			if _, err := io.WriteString(w, "to nobody"); !errors.Is(err, http.ErrHijacked) {
				t.Errorf("writing to it: %v, want %v", err, http.ErrHijacked)
			}
		})
		srv := world{a, false}.serve(t, a.wrap(t, middleware.Config{Shedder: s}, h))
		c, err := websocket.Dial("ws"+strings.TrimPrefix(srv.URL, "http"), "", srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		for range 6 { // four of them wait
			if err := websocket.Message.Send(c, "m"); err != nil {
				t.Fatal(err)
			}
			var echo string
			if err := websocket.Message.Receive(c, &echo); err != nil || echo != "m" {
				t.Fatalf("%q, %v", echo, err)
			}
		}
		c.Close()
		if p := <-failures; p != nil {
			t.Errorf("the handler panics: %v", p)
		}
	})
}

// hijackable is a writer whose connection can be taken over, without a network.
type hijackable struct {
	http.ResponseWriter
	conn  net.Conn
	early string
}

func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	r := bufio.NewReader(io.MultiReader(strings.NewReader(h.early), h.conn))
	if h.early != "" {
		if _, err := r.Peek(len(h.early)); err != nil {
			return nil, nil, err
		}
	}
	return h.conn, bufio.NewReadWriter(r, bufio.NewWriter(h.conn)), nil
}

// frame is a masked frame of a client.
func frame(head byte, size int) string {
	switch {
	case size < 126:
		return string([]byte{head, 0x80 | byte(size), 0, 0, 0, 0}) + strings.Repeat("x", size)
	case size < 1<<16:
		return string([]byte{head, 0x80 | 126, byte(size >> 8), byte(size), 0, 0, 0, 0}) + strings.Repeat("x", size)
	}
	return string([]byte{head, 0x80 | 127, 0, 0, 0, 0, byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size), 0, 0, 0, 0}) + strings.Repeat("x", size)
}

func TestMessagesOfAWebSocketArePacedWhateverTheFrames(t *testing.T) {
	const text, more, last, ping = 0x81, 0x01, 0x80, 0x89
	for why, c := range map[string]struct {
		frames string
		early  int // bytes that are there before the connection is taken over
		took   time.Duration
		into   string // what the connection is upgraded to
	}{
		"two messages":          {frame(text, 5) + frame(text, 0), 0, 0, ""},
		"five":                  {strings.Repeat(frame(text, 5), 5), 0, 3 * time.Second, ""},
		"five, some early":      {strings.Repeat(frame(text, 5), 5), 25, 3 * time.Second, ""},
		"pings are none":        {strings.Repeat(frame(ping, 5), 50), 0, 0, ""},
		"one in many frames":    {frame(more, 5) + strings.Repeat(frame(0, 5), 50) + frame(last, 5), 0, 0, ""},
		"with pings in between": {strings.Repeat(frame(more, 5)+frame(ping, 1)+frame(last, 300), 3), 0, time.Second, ""},
		"huge":                  {strings.Repeat(frame(text, 70_000), 4), 0, 2 * time.Second, ""},
		"closing is none":       {strings.Repeat(frame(0x88, 2), 50), 0, 0, ""},
		"another protocol":      {strings.Repeat(frame(text, 5), 5), 0, 0, "tcp"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 1, limited(slow("chat", shed.Messages, 2, 1)))
			ours, client := net.Pipe()
			var got []byte
			var took time.Duration
			done := make(chan struct{})
			h := wrapHTTP(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				defer close(done)
				start := time.Now()
				_, rw, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				got, _ = io.ReadAll(rw)
				took = time.Since(start)
			}))
			go func() {
				_, _ = io.WriteString(client, c.frames[c.early:])
				client.Close()
			}()
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Upgrade", cmp.Or(c.into, "WebSocket"))
			r.Header.Set("Connection", "Upgrade")
			h.ServeHTTP(hijackable{httptest.NewRecorder(), ours, c.frames[:c.early]}, r)
			<-done
			if string(got) != c.frames || took != c.took {
				t.Errorf("%s: %d of %d bytes in %v, want %v", why, len(got), len(c.frames), took, c.took)
			}
		})
	}
}

func TestAConversationThatWaitsKeepsItsDeadlineAndCanBeClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 1, limited(slow("chat", shed.Messages, 1, 1)))
		ours, client := net.Pipe()
		h := wrapHTTP(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			buf, start := make([]byte, 1000), time.Now()
			for i, set := range []func(time.Time) error{conn.SetReadDeadline, conn.SetDeadline} {
				_ = set(time.Now().Add(500 * time.Millisecond))
				if i == 0 {
					if _, err := conn.Read(buf); err != nil {
						t.Errorf("the first message: %v", err)
					}
				}
				if _, err := conn.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("the second comes after the deadline, but: %v", err)
				}
				_ = set(time.Time{})
			}
			// What was read and did not pass comes when it may, however little is asked for at a time.
			var second []byte
			for range len(frame(0x81, 5)) {
				n, err := conn.Read(buf[:1])
				if err != nil {
					t.Errorf("the second message: %v", err)
					return
				}
				second = append(second, buf[:n]...)
			}
			if took := time.Since(start); string(second) != frame(0x81, 5) || took != time.Second {
				t.Errorf("the second message is %q after %v", second, took)
			}
			time.AfterFunc(100*time.Millisecond, func() { conn.Close() })
			start = time.Now()
			if _, err := conn.Read(buf); !errors.Is(err, net.ErrClosed) || time.Since(start) != 100*time.Millisecond {
				t.Errorf("closed after 100ms, and read for %v: %v", time.Since(start), err)
			}
			if err := conn.SetDeadline(time.Now()); err == nil {
				t.Error("a deadline of what is closed")
			}
			if err := conn.SetReadDeadline(time.Now()); err == nil {
				t.Error("a deadline of what is closed")
			}
		}))
		go func() {
			for range 4 {
				_, _ = io.WriteString(client, frame(0x81, 5))
			}
		}()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Upgrade", "websocket")
		h.ServeHTTP(hijackable{httptest.NewRecorder(), ours, ""}, r)
		client.Close()
	})
}

func TestHandlersCountWhatOnlyTheyKnow(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 1, limited(slow("rows", "rows", 100, 10), slow("never", "never", 0, 1), bucket("per-client", 1000)))
			h := a.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var n int64
				_, _ = fmt.Sscan(r.URL.Query().Get("n"), &n)
				f := middleware.Charge
				if r.URL.Path == "/pace" {
					f = middleware.Pace
				}
				var refusal *shed.Rejection
				switch err := f(r.Context(), "rows", n); {
				case errors.As(err, &refusal):
					w.WriteHeader(http.StatusTooManyRequests)
					_, _ = fmt.Fprint(w, refusal.Reason, refusal.RetryAfter)
				case err != nil:
					t.Error(err)
				}
				if err := middleware.Charge(r.Context(), "columns", 1<<60); err != nil {
					t.Errorf("nobody limits columns: %v", err)
				}
				if err := middleware.Pace(r.Context(), "columns", 1<<60); err != nil {
					t.Errorf("nobody limits columns: %v", err)
				}
				if err := middleware.Pace(r.Context(), "never", 1); !errors.Is(err, limits.ErrNoFlow) {
					t.Errorf("what may never pass: %v", err)
				}
			}))
			for _, c := range []struct {
				path, want string
				took       time.Duration
			}{
				{"/charge?n=60", "", 0}, {"/charge?n=60", "over_limit2s", 0}, {"/charge?n=40", "", 0}, {"/charge?n=101", "cost_too_large0s", 0},
				{"/pace?n=50", "", 5 * time.Second}, {"/pace?n=250", "", 25 * time.Second},
			} {
				start := time.Now()
				if c.took > 0 { // meanwhile the place is another's
					time.AfterFunc(time.Second, func() {
						if w := call(h, "GET", "/charge?n=0", "192.0.2.1:1"); w.Code != 200 {
							t.Errorf("while %s waits: %s", c.path, w.Body)
						}
					})
				}
				if w := call(h, "GET", c.path, "192.0.2.1:1"); w.Body.String() != c.want || time.Since(start) != c.took {
					t.Errorf("%s: %q in %v, want %q in %v", c.path, w.Body, time.Since(start), c.want, c.took)
				}
			}
			if u := units(t, s, "rows"); u.Units != 400 || u.Unit != "rows" {
				t.Errorf("%+v", u)
			}
		})
	})
}

func TestWithoutAMiddlewareThereIsNothingToCount(t *testing.T) {
	if err := middleware.Charge(t.Context(), "rows", 1); err != nil {
		t.Error(err)
	}
	if err := middleware.Pace(t.Context(), "rows", 1); err != nil {
		t.Error(err)
	}
	if middleware.SetCost(t.Context(), 1) {
		t.Error("a cost without a request")
	}
}

func TestAMuxBehindACopiedRequestStillTellsItsPattern(t *testing.T) {
	s := open(t, 1, nil)
	mux := http.NewServeMux()
	mux.Handle("GET /orders/{id}", ok)
	h := wrapHTTP(t, middleware.Config{Shedder: s, Accounts: true}, mux)
	r := httptest.NewRequest("GET", "/orders/7", nil)
	if h.ServeHTTP(httptest.NewRecorder(), r); r.Pattern != "GET /orders/{id}" {
		t.Errorf("outside the pattern is %q", r.Pattern)
	}
	mux.HandleFunc("POST /files", func(_ http.ResponseWriter, r *http.Request) { _ = r.FormValue("a") })
	r = httptest.NewRequest("POST", "/files", strings.NewReader("--x\r\nContent-Disposition: form-data; name=a\r\n\r\nb\r\n--x--\r\n"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	if h.ServeHTTP(httptest.NewRecorder(), r); r.MultipartForm == nil || r.MultipartForm.Value["a"][0] != "b" {
		t.Errorf("outside the form is %v, so that nobody would remove its files", r.MultipartForm)
	}
}
