package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spillway-go/spillway/middleware"
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
