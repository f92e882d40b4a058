package edge

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/shed"
)

// bare is a writer with the minimum; the others add one ability each.
type bare struct{ http.ResponseWriter }

type (
	canFlush  struct{ did *string }
	canHijack struct{ did *string }
	canRead   struct{ did *string }
	canPush   struct{ did *string }
)

func (c canFlush) Flush() { *c.did += "flush " }
func (c canHijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	*c.did += "hijack "
	return nil, nil, nil
}
func (c canRead) ReadFrom(io.Reader) (int64, error)    { *c.did += "read "; return 7, nil }
func (c canPush) Push(string, *http.PushOptions) error { *c.did += "push "; return nil }

func TestWriterCanDoExactlyWhatTheInnerOneCan(t *testing.T) {
	for abilities := range 16 {
		var did, want string
		b, f, h, r, p := bare{httptest.NewRecorder()}, canFlush{&did}, canHijack{&did}, canRead{&did}, canPush{&did}
		inner := [16]http.ResponseWriter{
			b,
			struct {
				bare
				canFlush
			}{b, f},
			struct {
				bare
				canHijack
			}{b, h},
			struct {
				bare
				canFlush
				canHijack
			}{b, f, h},
			struct {
				bare
				canRead
			}{b, r},
			struct {
				bare
				canFlush
				canRead
			}{b, f, r},
			struct {
				bare
				canHijack
				canRead
			}{b, h, r},
			struct {
				bare
				canFlush
				canHijack
				canRead
			}{b, f, h, r},
			struct {
				bare
				canPush
			}{b, p},
			struct {
				bare
				canFlush
				canPush
			}{b, f, p},
			struct {
				bare
				canHijack
				canPush
			}{b, h, p},
			struct {
				bare
				canFlush
				canHijack
				canPush
			}{b, f, h, p},
			struct {
				bare
				canRead
				canPush
			}{b, r, p},
			struct {
				bare
				canFlush
				canRead
				canPush
			}{b, f, r, p},
			struct {
				bare
				canHijack
				canRead
				canPush
			}{b, h, r, p},
			struct {
				bare
				canFlush
				canHijack
				canRead
				canPush
			}{b, f, h, r, p},
		}[abilities]
		rec := &recorder{route: unmatched}
		w := record(inner, rec)
		if x, ok := w.(http.Flusher); ok {
			x.Flush()
			want += "flush "
		}
		if x, ok := w.(http.Hijacker); ok {
			_, _, _ = x.Hijack()
			want += "hijack "
		}
		if x, ok := w.(io.ReaderFrom); ok {
			rec.status = 0
			if n, _ := x.ReadFrom(nil); n != 7 || rec.status != 200 {
				t.Errorf("abilities %04b: ReadFrom returned %d, and the status is %d", abilities, n, rec.status)
			}
			want += "read "
			rec.deaf = true
			if n, _ := x.ReadFrom(strings.NewReader("late")); n != 4 { // and nothing is sent
				t.Errorf("abilities %04b: ReadFrom returned %d after the answer", abilities, n)
			}
		}
		if x, ok := w.(http.Pusher); ok {
			_ = x.Push("", nil)
			want += "push "
		}
		names := ""
		for i, name := range []string{"flush ", "hijack ", "read ", "push "} {
			if abilities&(1<<i) != 0 {
				names += name
			}
		}
		if did != names || want != names {
			t.Errorf("abilities %04b: the wrapper has %q and did %q, the inner writer has %q", abilities, want, did, names)
		}
		if rec.hijacked != strings.Contains(names, "hijack") {
			t.Errorf("abilities %04b: hijacked is %v", abilities, rec.hijacked)
		}
		if w.(interface{ Unwrap() http.ResponseWriter }).Unwrap() != inner {
			t.Errorf("abilities %04b: Unwrap leads elsewhere", abilities)
		}
	}
}

// failing is a writer that can do nothing.
type failing struct{ bare }

var errFailing = errors.New("failing")

func (failing) Flush()                                       {}
func (failing) FlushError() error                            { return errFailing }
func (failing) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errFailing }
func (failing) Push(string, *http.PushOptions) error         { return errFailing }

func TestWhatFailsInTheInnerWriterFails(t *testing.T) {
	rec := &recorder{route: unmatched}
	w := record(failing{bare{httptest.NewRecorder()}}, rec)
	if _, _, err := w.(http.Hijacker).Hijack(); err != errFailing || rec.hijacked {
		t.Errorf("Hijack: %v, and the connection counts as taken over: %t", err, rec.hijacked)
	}
	if err := http.NewResponseController(w).Flush(); err != errFailing {
		t.Errorf("Flush: %v", err)
	}
	if err := w.(http.Pusher).Push("", nil); err != errFailing {
		t.Errorf("Push: %v", err)
	}
	rec.rare = &rarities{slow: &slowBody{control: http.NewResponseController(rec.ResponseWriter)}}
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("SetReadDeadline: %v", err)
	}
	rec.deaf, rec.status = true, 408 // whoever writes on is not told: the answer has been given
	if n, err := w.Write([]byte("late")); n != 4 || err != nil {
		t.Errorf("Write after the answer: %d, %v", n, err)
	}
	if n, err := io.WriteString(w, "late"); n != 4 || err != nil {
		t.Errorf("WriteString after the answer: %d, %v", n, err)
	}
	if got := rec.ResponseWriter.(failing).ResponseWriter.(*httptest.ResponseRecorder).Body; got.Len() > 0 {
		t.Errorf("%q was written after the answer", got)
	}
}

func TestWhatAStatusCountsAs(t *testing.T) {
	for status, want := range map[int]shed.Result{
		200: shed.Succeeded, 399: shed.Succeeded, 400: shed.Failed, 499: shed.Failed, 500: shed.NoResult, 503: shed.NoResult,
	} {
		if got := ResultOf(status); got != want {
			t.Errorf("%d counts as %v, want %v", status, got, want)
		}
	}
}

func TestStatusIsTheFinalOneThatWasSent(t *testing.T) {
	for _, row := range []struct {
		why  string
		send func(http.ResponseWriter)
		want int
	}{
		{"nothing", func(w http.ResponseWriter) {}, 0},
		{"a body", func(w http.ResponseWriter) { _, _ = w.Write(nil) }, 200},
		{"a string", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "x") }, 200},
		{"a flush", func(w http.ResponseWriter) { w.(http.Flusher).Flush() }, 200},
		{"a flush by controller", func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }, 200},
		{"a status", func(w http.ResponseWriter) { w.WriteHeader(404) }, 404},
		{"a status after hints", func(w http.ResponseWriter) { w.WriteHeader(103); w.WriteHeader(100); w.WriteHeader(201) }, 201},
		{"switching protocols", func(w http.ResponseWriter) { w.WriteHeader(101); w.WriteHeader(200) }, 101},
		{"two statuses", func(w http.ResponseWriter) { w.WriteHeader(200); w.WriteHeader(503) }, 200},
		{"a status after the body", func(w http.ResponseWriter) { _, _ = w.Write(nil); w.WriteHeader(503) }, 200},
	} {
		rec := &recorder{route: unmatched}
		w := record(httptest.NewRecorder(), rec)
		if row.send(w); int(rec.status) != row.want {
			t.Errorf("%s: status %d, want %d", row.why, rec.status, row.want)
		}
	}
}

func TestAdmissionIsSeenThroughWritersBetween(t *testing.T) {
	a, b := new(shed.Shedder), new(shed.Shedder)
	w := record(httptest.NewRecorder(), &recorder{edge: &Edge{shedder: a}, route: unmatched})
	w = record(between{w}, &recorder{edge: &Edge{shedder: b}, route: unmatched})
	if admitted(between{between{w}}, a) == nil || admitted(w, b) == nil || admitted(w, new(shed.Shedder)) != nil || admitted(httptest.NewRecorder(), a) != nil {
		t.Error("whom a request was admitted by is not told apart")
	}
}

type between struct{ http.ResponseWriter }

func (b between) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func TestOutcomes(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	send := func(status int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.WriteHeader(status) }
	}
	nothing := func(http.ResponseWriter) {}
	for _, row := range []struct {
		why     string
		method  string
		ctx     context.Context
		handler func(http.ResponseWriter)
		status  int // what the framework says is going to be sent
		want    shed.Outcome
	}{
		{"200", "GET", nil, send(200), 0, shed.Success},
		{"nothing sent is 200", "GET", nil, nothing, 0, shed.Success},
		{"404", "GET", nil, send(404), 0, shed.Success},
		{"a client that left, as nginx says it", "GET", nil, send(499), 0, shed.Success},
		{"a bug", "GET", nil, send(500), 0, shed.Ignored},
		{"a proxy without its backend", "GET", nil, send(502), 0, shed.Ignored},
		{"overloaded behind", "GET", nil, send(503), 0, shed.Dropped},
		{"too slow behind", "GET", nil, send(504), 0, shed.Dropped},
		{"a quota of the application's own", "GET", nil, send(429), 0, shed.Ignored},
		{"an error that the framework will send", "GET", nil, nothing, 503, shed.Dropped},
		{"an error after the fact", "GET", nil, send(200), 503, shed.Success},
		{"the client left", "GET", gone, send(200), 0, shed.Ignored},
		{"the client left, and the backend failed for it", "GET", gone, send(503), 0, shed.Ignored},
		{"the deadline passed", "GET", late, send(200), 0, shed.Dropped},
		{"a tunnel", "CONNECT", nil, send(200), 0, shed.Ignored},
		{"an upgrade", "GET", nil, send(101), 0, shed.Ignored},
		{"an event stream", "GET", nil, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			w.WriteHeader(200)
		}, 0, shed.Ignored},
		{"an event stream without a byte", "GET", nil, func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/event-stream") }, 0, shed.Ignored},
	} {
		r := httptest.NewRequest(row.method, "/", nil)
		if row.ctx != nil {
			r = r.WithContext(row.ctx)
		}
		r.Header.Set("Accept", "text/event-stream") // a wish is no sign
		classify := func(r *http.Request, status int) shed.Outcome {
			if status < 200 {
				t.Errorf("%s: the status to classify is %d", row.why, status)
			}
			return Classify(r, status)
		}
		rec := &recorder{edge: &Edge{classify: classify}, route: unmatched, tunnel: row.method == http.MethodConnect}
		row.handler(record(httptest.NewRecorder(), rec))
		if got := rec.outcome(r, row.status); got != row.want {
			t.Errorf("%s: %v, want %v", row.why, got, row.want)
		}
	}
}

func TestUpgradeBehindTheRecordersBackIsNoSample(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Upgrade", "websocket")
	rec := &recorder{edge: &Edge{classify: Classify}, route: unmatched}
	record(httptest.NewRecorder(), rec)
	if got := rec.outcome(r, 0); got != shed.Ignored {
		t.Errorf("%v", got)
	}
}

func TestErrorsOfAdmitBecomeRefusalsUnlessNobodyIsLeft(t *testing.T) {
	e, r := new(Edge), httptest.NewRequest("GET", "/", nil)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	rejection := &shed.Rejection{Reason: shed.QueueFull}
	if got := e.Rejection(r, rejection); got != rejection {
		t.Errorf("a rejection: %v", got)
	}
	if got := e.Rejection(r, shed.ErrClosed); got.Reason != Closed {
		t.Errorf("closed: %v", got)
	}
	if got := e.Rejection(r.WithContext(gone), context.Canceled); got != nil {
		t.Errorf("gone: %v", got)
	}
	if got := e.Rejection(r, errors.New("new kind")); got == nil || statusOf(got.Reason) != 503 {
		t.Errorf("an error that nobody has heard of lets nobody through with a 200: %v", got)
	}
}
