package edge

import (
	"maps"
	"sync"
	"sync/atomic"
)

// maxReady bounds what a ready keeps. Keys come from the configuration and from operators' words, so far fewer are in use;
// whoever changes those for months shall not fill the memory.
const maxReady = 256

// ready keeps values that are made once and used often, under the bytes that describe them. A look-up takes no lock and
// makes no garbage. The zero value is empty and ready for use.
type ready[V any] struct {
	values atomic.Pointer[map[string]V]
	mu     sync.Mutex // held while a copy with one more value is made
}

// find returns the value for key. It does not hold on to key.
func (r *ready[V]) find(key []byte) (v V, ok bool) {
	if values := r.values.Load(); values != nil {
		v, ok = (*values)[string(key)]
	}
	return v, ok
}

// keep remembers v under key and returns it.
func (r *ready[V]) keep(key string, v V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := make(map[string]V)
	if old := r.values.Load(); old != nil && len(*old) < maxReady {
		maps.Copy(next, *old)
	}
	next[key] = v
	r.values.Store(&next)
	return v
}
