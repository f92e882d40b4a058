package concurrency

import "time"

// line is who waits at the simulated gate: first come first served, newest first while refusals last, sized in time, as the
// gate of package shed does it in more detail. Without the estimate of the wait a small backend would answer all too late,
// whatever the limit.
type line struct {
	waiting []time.Duration // arrivals
	recent  [3]time.Duration
	sum     time.Duration
	n, at   int
	opened  time.Duration

	surge, refused time.Duration // when refusals began and when the last was
	surging        bool
}

// took notes the latency of one request.
func (l *line) took(now, latency time.Duration) {
	l.sum += latency
	if l.n++; l.n >= 20 && now-l.opened >= 100*time.Millisecond { // or a hiccup would fill all three means of a large backend
		l.recent[l.at%3] = l.sum / time.Duration(l.n)
		l.sum, l.n, l.opened = 0, 0, now
		l.at++
	}
}

// typical is the median of three means.
func (l *line) typical() time.Duration {
	a, b, c := l.recent[0], l.recent[1], l.recent[2]
	return max(min(a, b), min(max(a, b), c))
}

// enter puts an arrival into the line unless it would wait too long.
func (l *line) enter(now time.Duration, limit, inFlight int, maxWait, budget time.Duration) bool {
	wait := time.Duration(len(l.waiting)+1) * l.typical() / time.Duration(limit)
	if (inFlight >= limit || len(l.waiting) > 0) && (wait > maxWait || wait+l.typical()*3/2 > budget) {
		l.refusal(now)
		return false
	}
	l.waiting = append(l.waiting, now)
	return true
}

func (l *line) refusal(now time.Duration) {
	if now-l.refused > 200*time.Millisecond {
		l.surge = now
	}
	l.refused = now
	l.surging = l.surging && now-l.refused < time.Second || now-l.surge >= 300*time.Millisecond
}

// expire sends away who has waited too long and returns how many.
func (l *line) expire(now, maxWait time.Duration) (n int) {
	for n < len(l.waiting) && l.waiting[n]+maxWait <= now {
		n++
	}
	if n > 0 {
		l.waiting = l.waiting[n:]
		l.refusal(now)
	}
	if now-l.refused >= time.Second {
		l.surging = false
	}
	return n
}

// take returns the arrival of who is next.
func (l *line) take() (arrived time.Duration) {
	last := len(l.waiting) - 1
	if l.surging {
		arrived, l.waiting = l.waiting[last], l.waiting[:last]
		return arrived
	}
	arrived, l.waiting = l.waiting[0], l.waiting[1:]
	return arrived
}

// lack is the time since somebody was turned away until all that ran then has ended, as the gate of package shed knows it.
type lack struct {
	at   time.Duration
	owed int
}

func (s *lack) begin(now time.Duration, inFlight int) { s.at, s.owed = now, inFlight }

// ended reports whether the shortage is over with the end of work that began at a time.
func (s *lack) ended(began time.Duration) bool {
	if s.owed == 0 || began > s.at {
		return false
	}
	s.owed--
	return s.owed == 0
}

// usual is how long work usually takes, as the gate knows it of a route: the mean of the last 256.
type usual struct {
	mean float64
	n    int
}

func (u *usual) add(took time.Duration) {
	u.n = min(u.n+1, 256)
	u.mean += (float64(took) - u.mean) / float64(u.n)
}

func (u *usual) time() time.Duration {
	if u.n < 32 {
		return 0
	}
	return time.Duration(u.mean)
}

// heap is a binary heap; before says what comes first.
type heap[T any] struct {
	all    []T
	before func(a, b T) bool
}

func (h *heap[T]) push(v T) {
	h.all = append(h.all, v)
	for i := len(h.all) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.before(h.all[i], h.all[up]) {
			return
		}
		h.all[i], h.all[up] = h.all[up], h.all[i]
		i = up
	}
}

func (h *heap[T]) pop() T {
	first, last := h.all[0], len(h.all)-1
	h.all[0], h.all = h.all[last], h.all[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= len(h.all) {
			return first
		}
		if down+1 < len(h.all) && h.before(h.all[down+1], h.all[down]) {
			down++
		}
		if !h.before(h.all[down], h.all[i]) {
			return first
		}
		h.all[i], h.all[down] = h.all[down], h.all[i]
		i = down
	}
}

// fix makes all a heap again after it was written to.
func (h *heap[T]) fix() {
	old := h.all
	h.all = nil
	for _, v := range old {
		h.push(v)
	}
}
