package main

import (
	"errors"
	"io"
	"sync"
)

// errStopping ends upgraded connections when the gateway stops.
var errStopping = errors.New("the gateway stops")

// streams are the answers that would never end by themselves: event streams, upgraded connections, whatever a long-lived
// route sends. When the gateway stops it ends them.
type streams struct {
	mu    sync.Mutex
	open  map[*stream]struct{}
	ended bool
}

// stream is the body of an answer. An upgraded connection is also written to.
type stream struct {
	of       *streams
	body     io.ReadCloser
	upgraded bool
	once     sync.Once
}

// add returns body under the watch of s.
func (s *streams) add(body io.ReadCloser, upgraded bool) io.ReadWriteCloser {
	st := &stream{of: s, body: body, upgraded: upgraded}
	s.mu.Lock()
	ended := s.ended
	if !ended {
		if s.open == nil {
			s.open = make(map[*stream]struct{})
		}
		s.open[st] = struct{}{}
	}
	s.mu.Unlock()
	if ended {
		body.Close()
	}
	return st
}

// end ends all streams, and those that come later at once.
func (s *streams) end() {
	s.mu.Lock()
	s.ended = true
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for st := range open {
		st.body.Close()
	}
}

func (s *streams) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Read reads until the upstream ends or the gateway stops. For the client of an event stream that is a proper end.
func (st *stream) Read(b []byte) (int, error) {
	n, err := st.body.Read(b)
	if err != nil {
		st.of.mu.Lock()
		ended := st.of.ended
		st.of.mu.Unlock()
		switch {
		case ended && st.upgraded:
			err = errStopping // a plain end would leave the other direction open
		case ended:
			err = io.EOF
		}
	}
	return n, err
}

func (st *stream) Write(b []byte) (int, error) {
	if w, ok := st.body.(io.Writer); ok {
		return w.Write(b)
	}
	return 0, errors.ErrUnsupported
}

func (st *stream) Close() error {
	st.once.Do(func() {
		st.of.mu.Lock()
		delete(st.of.open, st)
		st.of.mu.Unlock()
	})
	return st.body.Close()
}
