package middleware_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// A CONNECT that is granted lasts as long as its ends like; over HTTP/2 WebSockets are such (RFC 8441). One that is refused is a
// request like any other.
func TestATunnelTakesNobodysPlace(t *testing.T) {
	for _, row := range []struct {
		method   string
		status   int
		inFlight int
	}{
		{http.MethodConnect, http.StatusOK, 0},
		{http.MethodConnect, http.StatusForbidden, 1},
		{http.MethodGet, http.StatusOK, 1},
	} {
		s := open(t, 1, nil)
		h := wrapHTTP(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(row.status)
			if st := s.Status(); st.InFlight != row.inFlight || st.Streams != 1-row.inFlight {
				t.Errorf("%s, %d: in flight %d, streams %d", row.method, row.status, st.InFlight, st.Streams)
			}
		}))
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(row.method, "http://example.test/chat", nil))
		want := map[string]int64{"success": 1}
		if row.method == http.MethodConnect {
			want = map[string]int64{"ignored": 1}
		}
		atRest(t, s, want)
	}
}

// Over HTTP/1 a tunnel has no body. Who sends one with the method nevertheless is as slow as others may be.
func TestATunnelWithABodyIsARequestLikeAnyOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 1, nil)
		conn, start := piped(t, wrapHTTP(t, middleware.Config{Shedder: s}, reading))(), time.Now()
		go fmt.Fprint(conn, "CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\nX-API-Key: slow\r\nContent-Length: 100\r\n\r\nabc")
		res := answered(t, conn)
		refused(t, res, 408, shed.BodyTooSlow)
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("after %v", took)
		}
		atRest(t, s, nil)
	})
}

// Who takes the connection over gives the place back, whatever is said on it, and whoever asks twice.
func TestAConnectionThatIsTakenOverHoldsNoPlace(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 1, nil)
		srv := world{a, false}.serve(t, a.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			control := http.NewResponseController(w)
			conn, _, err := control.Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			if st := s.Status(); st.InFlight != 0 || st.Streams != 1 {
				t.Errorf("in flight %d, streams %d", st.InFlight, st.Streams)
			}
			if _, _, err := control.Hijack(); err == nil {
				t.Error("taken over twice")
			}
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
		})))
		allowed(t, send(t, srv, "GET", "/"))
	})
}
