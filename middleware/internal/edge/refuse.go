package edge

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/spillway-go/spillway/shed"
)

// StatusGone is how a request ends whose client went away before it was admitted: the word of nginx's logs for it. No body
// and no fields go with it, for nobody is left to read them. Saying nothing at all would leave it to net/http to say 200,
// and contexts are cancelled on living clients too, by servers that shut down: those must not take it for success.
const StatusGone = 499

// Refuse answers a request that was turned away, without a word if rejection is nil: see Rejection. It is the only write to the
// response.
func (e *Edge) Refuse(w http.ResponseWriter, r *http.Request, rejection *shed.Rejection) {
	if rejection == nil {
		w.WriteHeader(StatusGone)
		return
	}
	a := e.Head(w.Header(), r, rejection)
	if e.Page(w, r, a) {
		return
	}
	w.WriteHeader(a.Problem.Status)
	_, _ = w.Write(a.Body) // nobody can be told if the client is gone
}

// Page writes an answer whose fields Head has set as a page, if that is what the client wants, and reports whether it did.
func (e *Edge) Page(w http.ResponseWriter, r *http.Request, a *Answer) bool {
	if !e.html || !PrefersHTML(r) || !e.view.Load().html {
		return false
	}
	h := w.Header()
	h["Content-Type"] = []string{HTMLContentType}
	text := a.page.with(h.Get("Retry-After"))
	w.WriteHeader(a.Problem.Status)
	_, _ = io.WriteString(w, text)
	return true
}

// Head sets the fields of a refusal and returns what to send with them, for frameworks that write errors themselves.
func (e *Edge) Head(header http.Header, r *http.Request, rejection *shed.Rejection) *Answer {
	if len(header) > 0 {
		// They described a body that is not sent after all.
		delete(header, "Content-Length")
		delete(header, "Content-Encoding")
		delete(header, "Etag")
		delete(header, "Last-Modified")
	}
	seen := e.view.Load()
	a := seen.answers.of(rejection)
	values := new(values) // one allocation for the usual fields
	header["Content-Type"] = one(&values.contentType, ProblemContentType)
	header["Cache-Control"] = one(&values.cacheControl, "no-store")
	if seconds := retrySeconds(rejection); seconds > 0 {
		if later := header["Retry-After"]; len(later) == 1 {
			n, _ := strconv.ParseInt(later[0], 10, 64)
			seconds = max(seconds, n)
		}
		header["Retry-After"] = one(&values.retryAfter, e.waits.decimal(seconds))
	}
	if rejection.Feature != "" && rejection.Reason == shed.FeatureOff {
		header["Pumpkin-Feature"] = []string{rejection.Feature}
		letPagesRead(header, r)
	}
	if unread(r) || rejection.Reason == Closed && r.ProtoMajor == 1 {
		header["Connection"] = []string{"close"}
	}
	if len(rejection.Verdicts) > 0 {
		e.show(header, seen, &values.quota, nil, rejection.Verdicts, true)
	}
	return a
}

// values holds the values of the fields that most refusals have, each of which is a list of one.
type values struct {
	contentType, cacheControl, retryAfter [1]string
	quota                                 [2]string
}

// one stores a value and returns it as a list that cannot grow into its neighbours.
func one(place *[1]string, value string) []string {
	place[0] = value
	return place[:1:1]
}

// decimal returns n as text.
func (s *spellings) decimal(n int64) string {
	text, ok := s.find(n, 0)
	if !ok {
		text = strconv.FormatInt(n, 10)
		s.keep(n, 0, text)
	}
	return text
}

// unread reports whether the connection has to be closed because of a body that nobody reads. On HTTP/1.x net/http would
// first drain up to 256 KiB of it before the answer leaves, at whatever pace the client sends: a refusal would take as
// long as the client likes (golang/go#25475). HTTP/2 resets the one stream and needs no help.
func unread(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody
}

// retrySeconds returns the wait in whole seconds, rounded up, so that nobody is early; at least 1, for 0 invites to ask
// again at once. It is 0 where waiting cannot help.
func retrySeconds(r *shed.Rejection) int64 {
	if r.Reason == shed.CostTooLarge || r.Reason == shed.NoIdentity || r.Reason == shed.BodyTooSlow {
		return 0
	}
	return max(1, ceilSeconds(r.RetryAfter))
}

// ceilSeconds rounds up to whole seconds; what is negative counts as 0.
func ceilSeconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Second) + 1
}
