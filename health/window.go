package health

import "time"

// carriedFor is how old something may be and still be carried on into a new value. Nothing is known about a process that was
// stopped, or a machine that slept, for longer.
const carriedFor = 5 * time.Second

// window remembers what a source read during the last span of time, from the newest moment back to the last one that is at
// least span older. Its memory is made once.
type window[T any] struct {
	span     time.Duration
	slots    []slot[T] // a ring
	first, n int
}

type slot[T any] struct {
	at    time.Time
	value T
}

func newWindow[T any](span time.Duration) window[T] {
	return window[T]{span: span, slots: make([]slot[T], span/interval+2)}
}

// add makes now the newest moment and returns the place for its value, which holds a value that was forgotten: its memory may
// be used again. After a gap of more than carriedFor it starts anew.
func (w *window[T]) add(now time.Time) (*T, error) {
	if w.n > 0 {
		switch gap := now.Sub(w.newest().at); {
		case gap <= 0:
			return nil, errClockStood
		case gap > carriedFor:
			w.n = 0
		}
	}
	for w.n == len(w.slots) || w.n > 1 && now.Sub(w.at(1).at) >= w.span {
		w.first, w.n = (w.first+1)%len(w.slots), w.n-1
	}
	w.n++
	s := w.newest()
	s.at = now
	return &s.value, nil
}

// at is the slot number i from the oldest.
func (w *window[T]) at(i int) *slot[T] { return &w.slots[(w.first+i)%len(w.slots)] }

func (w *window[T]) oldest() *slot[T] { return w.at(0) }
func (w *window[T]) newest() *slot[T] { return w.at(w.n - 1) }

// covers is the time between the oldest and the newest moment.
func (w *window[T]) covers() time.Duration { return w.newest().at.Sub(w.oldest().at) }

// forget leaves only the newest moment: the counter behind the others is another one.
func (w *window[T]) forget() { w.first, w.n = (w.first+w.n-1)%len(w.slots), 1 }

// pace tells how long ago a gauge, which has no time of its own, was read before.
type pace struct{ last time.Time }

func (p *pace) next(now time.Time) time.Duration {
	dt := now.Sub(p.last)
	if p.last.IsZero() || dt < 0 {
		dt = interval
	}
	p.last = now
	return dt
}
