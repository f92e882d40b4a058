package middleware

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// baseFunc makes a call.
type baseFunc func(*http.Request) (*http.Response, error)

func (f baseFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// However a call ends, its place comes back, once: what follows would else find none, or more than there are.
func TestEveryEndOfACallGivesItsPlaceBackOnce(t *testing.T) {
	answer := func(body io.ReadCloser) baseFunc {
		return func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: body, Request: r}, nil
		}
	}
	closed := func(res *http.Response) { res.Body.Close(); res.Body.Close() }
	for what, row := range map[string]struct {
		base baseFunc
		end  func(*http.Response)
	}{
		"an error":                    {func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }, nil},
		"nothing to read, not closed": {answer(http.NoBody), func(*http.Response) {}},
		"no body, not closed":         {answer(nil), func(*http.Response) {}},
		"read to its end":             {answer(io.NopCloser(strings.NewReader("x"))), func(res *http.Response) { _, _ = io.Copy(io.Discard, res.Body) }},
		"closed twice, unread":        {answer(io.NopCloser(strings.NewReader("x"))), closed},
		"read and closed":             {answer(io.NopCloser(strings.NewReader("x"))), func(res *http.Response) { _, _ = io.Copy(io.Discard, res.Body); closed(res) }},
	} {
		tr, err := NewTransport(TransportConfig{Base: row.base, Parallel: 1, Retries: -1, Wait: -1, KeepCalling: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, api, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := tr.RoundTrip(r)
			if reason := reasonOf(err); reason != "" || (err == nil) == (row.end == nil) {
				t.Errorf("%s, call %d: %v", what, i, err)
			}
			if err == nil {
				row.end(res)
			}
			if st := tr.Status(); st.Services[0].Running != 0 || tr.Shedder().Status().InFlight != 0 {
				t.Errorf("%s, call %d: %+v", what, i, st)
			}
		}
		tr.Close()
	}
}

// Who finds no room to wait takes none from those who come later.
func TestWhoMayNotWaitTakesNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := service{takes: time.Second}
		tr := calling(t, &s, TransportConfig{Parallel: 1, Waiting: 1})
		for range 2 {
			done := make(chan error, 9)
			for range 5 {
				go func() { _, err := get(tr, t.Context(), api); done <- err }()
			}
			passed := 0
			for range 5 {
				if <-done == nil {
					passed++
				}
			}
			if st := tr.Status(); passed != 2 || st.Waiting != 0 {
				t.Errorf("%d passed, %d wait; want one that ran at once, one that waited, and nobody left", passed, st.Waiting)
			}
		}
	})
}
