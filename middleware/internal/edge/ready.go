package edge

import (
	"maps"
	"sync"
	"sync/atomic"
)

// maxReady bounds what a ready keeps. Keys come from the configuration and from operators' words, so far fewer are in use;
// whoever changes those for months shall not fill the memory.
const maxReady = 256

// ready keeps values that are made once and used often. A look-up takes no lock and makes no garbage. The zero value is empty and
// ready for use.
type ready[K comparable, V any] struct {
	values atomic.Pointer[map[K]V]
	mu     sync.Mutex // held while a copy with one more value is made
}

// all returns the values as they are now, for reading only; nil if there are none.
func (r *ready[K, V]) all() map[K]V {
	if values := r.values.Load(); values != nil {
		return *values
	}
	return nil
}

// keep remembers v under key and returns it.
func (r *ready[K, V]) keep(key K, v V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := make(map[K]V)
	if old := r.all(); len(old) < maxReady {
		maps.Copy(next, old)
	}
	next[key] = v
	r.values.Store(&next)
	return v
}

// spellings remember how numbers were last written that are needed again and again, in a fixed number of places. The zero value is
// empty and ready for use.
type spellings [64]atomic.Pointer[spelling]

type spelling struct {
	a, b int64
	text string
}

func (s *spellings) place(a, b int64) *atomic.Pointer[spelling] {
	return &s[uint64(a+b)%uint64(len(s))]
}

func (s *spellings) find(a, b int64) (text string, ok bool) {
	if found := s.place(a, b).Load(); found != nil && found.a == a && found.b == b {
		return found.text, true
	}
	return "", false
}

func (s *spellings) keep(a, b int64, text string) { s.place(a, b).Store(&spelling{a, b, text}) }
