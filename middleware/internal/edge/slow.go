package edge

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
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

// mostAwaited bounds how many bodies are gathered at once, and so the memory for it. Beyond it requests with bodies are refused.
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

// slowBody is a body that has to come fast enough. Only time in which it is awaited counts: whoever reads it may take as long as they
// like.
type slowBody struct {
	*bodies
	edge    *Edge
	inner   io.ReadCloser
	length  int64 // below 0 if that is not known
	control *http.ResponseController
	http2   bool // nobody else waits for this one
	pieces  bool // may be gathered until its beginning is there, and not only until something is

	gathered []byte        // came before there was a place, and has not been read
	failed   error         // what reading will end with from now on
	waited   time.Duration // in which came less than quantum bytes
	came     int64         // so many

	permit shed.Permit // once there is one
	cut    atomic.Bool // it was too slow for the place it had

	mu        sync.Mutex // guards what is below, and is held while the deadline of the connection, or of the stream, is set
	own       time.Time  // the deadline that the server or the handler has set; the zero Time is none
	pace      time.Time  // the one that the pace asks for, while a Read is under way
	reading   bool
	awaited   bool // is being gathered
	ended     bool // gathering has to end
	unwatched bool // deadlines cannot be set
	whole     bool // there is nothing left that the server would look for the end of
	over      bool // the connection is somebody else's from now on
}

// watch puts a slowBody around the body of r, or returns nil where there is nothing to watch: no body, or one side of a conversation
// over HTTP/2, in which the client may wait for us.
func (e *Edge) watch(b *bodies, w http.ResponseWriter, r *http.Request) *slowBody {
	if b.quantum == 0 || r.Body == nil || r.Body == http.NoBody || converses(r) {
		return nil
	}
	s := &slowBody{bodies: b, edge: e, inner: r.Body, length: r.ContentLength, control: http.NewResponseController(w)}
	if srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && srv.ReadTimeout > 0 {
		s.own = time.Now().Add(srv.ReadTimeout) // what the server has set, for it does not tell
	}
	// Over HTTP/2 a body of unknown length may be one side of a conversation: that it has begun is enough.
	s.http2 = r.ProtoMajor >= 2
	s.pieces = r.ContentLength > 0 || !s.http2
	r.Body = s
	return s
}

// converses reports whether r is a tunnel or a call of gRPC. Over HTTP/1 there are no such calls, whatever its fields say, and a tunnel
// begins when the connection is taken over: a CONNECT with a body is a request like any other.
func converses(r *http.Request) bool {
	if r.ProtoMajor < 2 || r.ContentLength >= 0 {
		return false
	}
	rest, ok := strings.CutPrefix(r.Header.Get("Content-Type"), "application/grpc")
	return r.Method == http.MethodConnect || ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// expects reports whether the client of r asks first whether it may send the body. Reading would tell it so.
func expects(r *http.Request) bool {
	return r.Header["Expect"] != nil && strings.EqualFold(r.Header.Get("Expect"), "100-continue")
}

// upgrades reports whether the client of r may wait for another protocol before it goes on.
func upgrades(r *http.Request) bool {
	return r.Header["Upgrade"] != nil && strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade")
}

// await gathers the beginning, before the request takes a place, for as long as ctx allows.
func (s *slowBody) await(ctx context.Context) error {
	defer s.edge.awaited.Add(-1)
	if s.edge.awaited.Add(1) > mostAwaited { // by the time that they are told, those have shown their pace
		return &shed.Rejection{Reason: shed.Overloaded, RetryAfter: s.grace + rand.N(s.grace)}
	}
	s.awaited = true
	defer context.AfterFunc(ctx, s.end)()
	err := s.collect()
	s.mu.Lock()
	s.awaited = false
	ended := s.ended
	s.mu.Unlock()
	switch {
	case errors.Is(err, errSlow): // whatever ctx says: net/http cancels it when reading fails
		return tooSlow()
	case ended:
		return ctx.Err()
	case s.unwatched:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return tooSlow()
	}
	s.failed = err // who reads the body is told
	return nil
}

// collect reads until enough has been gathered.
func (s *slowBody) collect() error {
	all := s.gather // of what is awaited
	if s.length > 0 {
		all = int(min(int64(all), s.length))
		s.gathered = make([]byte, 0, all)
	}
	for len(s.gathered) < all {
		s.gathered = slices.Grow(s.gathered, min(512, all-len(s.gathered)))
		n, err := s.receive(s.gathered[len(s.gathered):min(cap(s.gathered), all)])
		if s.gathered = s.gathered[:len(s.gathered)+n]; err != nil || !s.pieces {
			return err
		}
	}
	return nil
}

// receive reads from the client, who has to keep the pace.
func (s *slowBody) receive(p []byte) (n int, err error) {
	began := time.Now()
	if !s.begin(began) {
		if s.awaited {
			return 0, io.ErrNoProgress // and await finds out why
		}
		return s.inner.Read(p)
	}
	n, err = s.inner.Read(p)
	late := s.done(err)
	s.waited += time.Since(began)
	if s.came += int64(n); s.came >= s.quantum {
		s.waited, s.came = 0, 0
	}
	if late {
		return n, errSlow
	}
	return n, err
}

// begin sets the deadline for one Read, and reports false where there is none to be set.
func (s *slowBody) begin(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.unwatched || s.ended {
		return false
	}
	s.pace, s.reading = now.Add(s.grace-s.waited), true
	if err := s.apply(); err != nil {
		s.reading, s.unwatched = false, true
		s.edge.warnUnwatched(err)
		return false
	}
	return true
}

// done takes back what begin has set, and reports whether err is because the pace was not kept. A client that did not keep it sends
// nothing any more that is worth waiting for.
func (s *slowBody) done(err error) (late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends(err == io.EOF)
	late = errors.Is(err, os.ErrDeadlineExceeded) && !time.Now().Before(s.pace) && (s.own.IsZero() || s.pace.Before(s.own))
	if s.reading = false; !late && !s.ended && !s.over {
		_ = s.apply()
	}
	return late
}

// apply sets the deadline that holds now: the sooner one.
func (s *slowBody) apply() error {
	if s.reading && (s.own.IsZero() || s.pace.Before(s.own)) {
		return s.control.SetReadDeadline(s.pace)
	}
	return s.control.SetReadDeadline(s.own)
}

// end ends gathering, also a Read that is under way.
func (s *slowBody) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.awaited {
		return
	}
	if s.ended = true; s.reading {
		_ = s.control.SetReadDeadline(time.Unix(1, 0))
	}
}

// setReadDeadline is what the handler asks for.
func (s *slowBody) setReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own = t
	return s.apply()
}

// leave lets go of the connection: the handler has ended, and nobody wants the rest.
func (s *slowBody) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bound() {
		s.over = true
		return
	}
	s.yield()
}

// takenOver lets go of the connection: it is the handler's.
func (s *slowBody) takenOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.yield()
}

// yield leaves the connection to somebody else, who may read on for as long as the server lets them.
func (s *slowBody) yield() {
	if s.over = true; s.reading {
		s.reading = false
		_ = s.apply()
	}
}

// bound bounds how long the server may look for the end of what nobody wants, and reports false where it does not.
func (s *slowBody) bound() bool {
	if s.over || s.unwatched || s.whole || s.http2 {
		return false
	}
	end := time.Now().Add(s.grace)
	if !s.own.IsZero() && s.own.Before(end) {
		end = s.own
	}
	_ = s.control.SetReadDeadline(end)
	return true
}

// unread reports whether the server would have to look for the end before the answer leaves, for as long as the client likes.
func (s *slowBody) unread() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.whole && !s.http2
}

// Read implements io.Reader.
func (s *slowBody) Read(p []byte) (n int, err error) {
	if len(s.gathered) > 0 {
		n = copy(p, s.gathered)
		s.gathered = s.gathered[n:]
		return n, nil
	}
	if s.failed != nil || len(p) == 0 {
		return 0, s.failed
	}
	if n, err = s.receive(p); errors.Is(err, errSlow) {
		s.failed = err
		if !s.cut.Swap(true) {
			s.permit.Cut()
		}
	}
	return n, err
}

// Close implements io.Closer. The server's own bodies look for their end then.
func (s *slowBody) Close() error {
	s.mu.Lock()
	s.bound()
	s.mu.Unlock()
	err := s.inner.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends(err == nil); s.whole && !s.over && !s.unwatched {
		_ = s.apply() // the bound was for this alone
	}
	return err
}

// ends notes whether the body has come whole. No deadline is left then: from here on net/http reads on to see whether the client leaves,
// and takes a deadline that passes for that. It drops its own, and so do we.
func (s *slowBody) ends(whole bool) {
	if whole && !s.whole {
		s.whole, s.own = true, time.Time{}
	}
}

// tooSlow is the answer to a request whose body comes too slowly.
func tooSlow() *shed.Rejection { return &shed.Rejection{Reason: shed.BodyTooSlow} }

// unwatched is for telling once that nobody can be hurried.
var unwatched sync.Once

// warnUnwatched says that bodies may be as slow as they like.
func (e *Edge) warnUnwatched(err error) {
	unwatched.Do(func() {
		e.logger.Warn("spillway: how slowly bodies come is not watched: a writer further out hides SetReadDeadline. Give it an Unwrap method, or put Spillway outside of it, as with http.TimeoutHandler",
			"error", err)
	})
}
