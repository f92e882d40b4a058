package edge

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/shed"
)

// bodies is how slowly bodies may come, ready for use.
type bodies struct {
	grace   time.Duration
	quantum int64 // how many bytes have to come in grace; 0 if bodies may be as slow as they like
	gather  int
}

// mostAwaited bounds how many bodies are gathered at once, and so the memory for it. Beyond it a body holds a place while it comes.
const mostAwaited = 4096

func newBodies(b shed.Bodies) bodies {
	if b.Unwatched {
		return bodies{}
	}
	b = b.WithDefaults()
	quantum := float64(b.MinRate.Amount) * float64(b.Grace) / float64(b.MinRate.Per)
	return bodies{b.Grace, max(1, int64(min(quantum, 1<<62))), b.Gather}
}

// errSlow is what reading a body that is too slow ends with.
var errSlow = errors.New("the request body comes too slowly")

// watch puts a slowBody around the body of r, or returns nil where there is nothing to watch: no body, one that cannot be given up on,
// or a conversation, in which the client may wait for us.
func (b *bodies) watch(w http.ResponseWriter, r *http.Request, awaited *atomic.Int64) *slowBody {
	if b.quantum == 0 || r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody || r.Method == http.MethodConnect ||
		strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		return nil
	}
	s := &slowBody{bodies: b, inner: r.Body, length: r.ContentLength, control: http.NewResponseController(w), awaited: awaited}
	if srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && srv.ReadTimeout > 0 {
		s.until = time.Now().Add(srv.ReadTimeout) // what the server had set
	}
	if s.control.SetReadDeadline(s.until) != nil {
		return nil
	}
	// Over HTTP/2 a body of unknown length may be one side of a conversation: that it has begun is enough.
	s.whole = r.ContentLength > 0 || r.ProtoMajor == 1
	r.Body = s
	return s
}

// slowBody is a body that has to come fast enough. Only time in which it is awaited counts: whoever reads it may take as long as they
// like.
type slowBody struct {
	*bodies
	inner   io.ReadCloser
	length  int64 // below 0 if that is not known
	control *http.ResponseController
	awaited *atomic.Int64 // how many bodies are awaited
	until   time.Time     // the server's own deadline; the zero Time if there is none
	whole   bool          // whether all of it may be gathered

	gathered []byte // came before there was a place, and has not been read
	failed   error  // what the next Read of inner would say

	waited time.Duration // in which came less than quantum bytes
	came   int64         // so many

	permit shed.Permit // once there is one
	cut    atomic.Bool // it was too slow for the place it had
}

// await gathers the beginning, before the request takes a place.
func (s *slowBody) await(context.Context) error {
	if s.gather == 0 {
		return nil
	}
	defer s.awaited.Add(-1)
	if s.awaited.Add(1) > mostAwaited {
		return nil
	}
	all := s.gather // of what is awaited
	if s.length > 0 {
		all = int(min(int64(all), s.length))
		s.gathered = make([]byte, 0, all)
	}
	for len(s.gathered) < all && s.failed == nil {
		s.gathered = slices.Grow(s.gathered, min(512, all-len(s.gathered)))
		n, err := s.receive(s.gathered[len(s.gathered):min(cap(s.gathered), all)])
		s.gathered, s.failed = s.gathered[:len(s.gathered)+n], err
		if !s.whole {
			break
		}
	}
	if s.failed == errSlow {
		return &shed.Rejection{Reason: shed.BodyTooSlow}
	}
	return nil // who reads the body is told what else has failed
}

// receive reads from the client, who has to keep the pace.
func (s *slowBody) receive(p []byte) (n int, err error) {
	began := time.Now()
	deadline, ours := began.Add(s.grace-s.waited), true
	if !s.until.IsZero() && s.until.Before(deadline) {
		deadline, ours = s.until, false
	}
	_ = s.control.SetReadDeadline(deadline)
	n, err = s.inner.Read(p)
	_ = s.control.SetReadDeadline(s.until)
	s.waited += time.Since(began)
	if s.came += int64(n); s.came >= s.quantum {
		s.waited, s.came = 0, 0
	}
	if err != nil && ours && errors.Is(err, os.ErrDeadlineExceeded) {
		return n, errSlow
	}
	return n, err
}

// Read implements io.Reader.
func (s *slowBody) Read(p []byte) (n int, err error) {
	if len(s.gathered) > 0 {
		n = copy(p, s.gathered)
		s.gathered = s.gathered[n:]
		return n, nil
	}
	if s.failed == nil && len(p) > 0 {
		if n, s.failed = s.receive(p); s.failed == errSlow && !s.cut.Swap(true) {
			s.permit.Cut()
		}
	}
	return n, s.failed
}

// Close implements io.Closer.
func (s *slowBody) Close() error { return s.inner.Close() }

// tooSlow is the answer to a request that was running when the rest of its body came too slowly.
var tooSlow = &shed.Rejection{Reason: shed.BodyTooSlow}
