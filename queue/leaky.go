package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// DefaultParked is how many callers a Leaky holds when nothing else is said.
const DefaultParked = 10_000

// Errors of Leaky.Wait. After any error the caller has no turn and gives its charge back.
var (
	// ErrFull says that as many callers are parked as may be.
	ErrFull = errors.New("queue: too many callers wait for their turn")
	// ErrClosed says that the queue was closed before the turn came.
	ErrClosed = errors.New("queue: closed")
	// ErrTooLate says that the caller's deadline comes before its turn, so that waiting would be in vain. It wraps
	// context.DeadlineExceeded.
	ErrTooLate = fmt.Errorf("queue: the turn comes after the caller's deadline: %w", context.DeadlineExceeded)
)

// Key names one line of a Leaky: the rule that delays, and the balance of that rule. It is a struct so that no caller has to
// join strings, and so that no two pairs can be joined to the same one.
type Key struct {
	Policy string
	Client string
}

// Leaky is the leaky bucket as a queue. A rule of package limits computes for each admitted charge how long it must wait
// for its turn; Leaky parks the callers until exactly then, each key in a line of its own in the order of their turns. Who
// gives up gives its turn on: all behind it move up.
//
// NewLeaky makes one; the zero value is a closed one. All methods are safe for concurrent use. It has one timer
// for each line that is not empty, and no goroutine.
type Leaky struct {
	max   int
	start time.Time

	mu     sync.Mutex // guards all below and the contents of lines; nothing blocks under it
	lines  map[Key]*turns
	parked int
	closed bool
	counts LeakyCounts
}

// LeakyCounts counts how waits ended, since the start.
type LeakyCounts struct {
	Started uint64 `json:"started"`  // had their turn, at once or after waiting
	GaveUp  uint64 `json:"gave_up"`  // left when their context ended
	TooLate uint64 `json:"too_late"` // were refused because their deadline came before their turn
	Full    uint64 `json:"full"`     // were refused because too many waited
	Closed  uint64 `json:"closed"`   // were sent away by Close
}

// LeakyStatus is a snapshot of a Leaky for a debug view.
type LeakyStatus struct {
	Parked    int `json:"parked"`     // callers that wait now
	Lines     int `json:"lines"`      // keys on which somebody waits
	MaxParked int `json:"max_parked"` // bound of Parked
	LeakyCounts
}

// NewLeaky returns a queue that holds at most maxParked callers, over all keys together; 0 or less means DefaultParked.
func NewLeaky(maxParked int) *Leaky {
	if maxParked <= 0 {
		maxParked = DefaultParked
	}
	return &Leaky{max: maxParked, start: time.Now(), lines: make(map[Key]*turns)}
}

// Wait parks the caller until its turn, which comes turn from now, and returns how long it has waited. It never returns
// early without an error. A turn of 0 or less has come already.
//
// step is how much sooner those behind may start if this caller gives up: the time that its cost takes, cost/leak, rounded
// down so that nobody ever starts early. A negative step counts as 0.
//
// If ctx ends first, the error wraps both ctx.Err() and the cause. ErrTooLate, ErrFull and ErrClosed are the other errors;
// in all cases the turn has been given on and the caller should give its charge back.
func (l *Leaky) Wait(ctx context.Context, key Key, turn, step time.Duration) (waited time.Duration, err error) {
	arrived := l.now()
	p := &parked{due: arrived + max(turn, 0), step: max(step, 0)}
	if p.due < arrived { // the sum overflowed: as late as can be said
		p.due = 1<<63 - 1
	}
	ended := ctx.Err() // the context may take locks of its own, so it is asked outside ours
	deadline, bounded := ctx.Deadline()
	tooLate := bounded && deadline.Sub(l.start) <= p.due
	line, err := l.join(key, p, arrived, ended != nil, tooLate)
	switch {
	case err == errGaveUp:
		return 0, gaveUp(ctx)
	case err != nil || line == nil:
		return 0, err
	}
	select {
	case err = <-p.ready:
	case <-ctx.Done():
		if err = l.leave(line, p); err == errGaveUp {
			err = gaveUp(ctx)
		}
	}
	return l.now() - arrived, err
}

// errGaveUp stands for the error of the caller's context, which is only asked outside the lock.
var errGaveUp = errors.New("queue: gave up its turn")

// join puts p into the line of key. It returns a nil line if there is nothing to wait for.
func (l *Leaky) join(key Key, p *parked, now time.Duration, ended, tooLate bool) (*turns, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	switch {
	case l.closed || l.lines == nil:
		l.counts.Closed++
		err = ErrClosed
	case ended:
		l.counts.GaveUp++
		err = errGaveUp
	case p.due <= now:
		l.counts.Started++
		return nil, nil
	case tooLate:
		l.counts.TooLate++
		err = ErrTooLate
	case l.parked >= l.max:
		l.counts.Full++
		err = ErrFull
	}
	line := l.lines[key]
	if err != nil {
		if line != nil { // who was charged after p may be parked already, one step too late
			line.moveUp(line.behind(p.due), p.step)
			line.arm(now)
		}
		return nil, err
	}
	if line == nil {
		line = &turns{owner: l, key: key}
		l.lines[key] = line
	}
	p.ready = make(chan error, 1)
	line.insert(p)
	l.parked++
	line.arm(now)
	return line, nil
}

// leave takes p, whose context has ended, out of its line, unless its turn came in the same instant: then it has been
// released already, under the same lock, and whoever holds a turn keeps it. So exactly one of the two happens.
func (l *Leaky) leave(line *turns, p *parked) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.released {
		return <-p.ready // never blocks: release has put it there
	}
	now := l.now()
	behind := p.next
	line.unlink(p)
	l.parked--
	l.counts.GaveUp++
	line.moveUp(behind, p.step)
	line.arm(now)
	return errGaveUp
}

// Close sends all parked callers away with ErrClosed, and all that come later. It can be called again.
func (l *Leaky) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, line := range l.lines {
		for line.head != nil {
			l.counts.Closed++
			line.release(line.head, ErrClosed)
		}
		line.arm(0)
	}
}

// Len returns how many callers are parked.
func (l *Leaky) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.parked
}

// Status returns a snapshot for a debug view.
func (l *Leaky) Status() LeakyStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return LeakyStatus{Parked: l.parked, Lines: len(l.lines), MaxParked: l.max, LeakyCounts: l.counts}
}

// now is the time since the queue was made; monotonic, so that no step of the wall clock moves a turn.
func (l *Leaky) now() time.Duration { return time.Since(l.start) }

func gaveUp(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", errGaveUp, err)
	}
	return fmt.Errorf("%w: %w: %w", errGaveUp, err, cause)
}
