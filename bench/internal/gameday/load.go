package gameday

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/middleware"
)

// deadline is how long customers wait for an answer. What comes later is no service.
const deadline = 2 * time.Second

// mostUnderWay is how many requests of the generator may be under way at once; what would be more is not sent, and counted.
const mostUnderWay = 8000

// group is customers who do the same. Their requests leave when they are due, whatever became of those before.
type group struct {
	name    string
	members []*customer
	ask     ask
	rate    float64               // requests a second of each member
	shape   func(float64) float64 // the rate's share over the time from 0 to 1; nil means 1
	atOnce  int                   // instead of a rate: so many of each member in the first moment
	retries int                   // how often a failure is tried again, at once
}

// shot is one attempt of a customer.
type shot struct {
	group  string
	member string
	at     time.Time     // when it was due
	lag    time.Duration // how much later it left
	took   time.Duration // from when it was due to its end
	status int           // 0: no answer; notCalled: the client itself left it alone
	after  int           // Retry-After in seconds; -1 means that there was none
	reason string        // of a refusal
	again  bool          // it is a retry
}

// notCalled is the status of what the client left alone because it was told to.
const notCalled = -1

// answered reports whether the customer got what it asked for, ok whether it got it in time.
func (s *shot) answered() bool { return s.status >= 200 && s.status < 300 }
func (s *shot) ok() bool       { return s.answered() && s.took <= deadline }

// ended is when the attempt ended.
func (s *shot) ended() time.Time { return s.at.Add(s.took) }

// refused reports whether the customer was told to come back later.
func (s *shot) refused() bool {
	return s.status == http.StatusTooManyRequests || s.status == http.StatusServiceUnavailable
}

// says reports whether the customer was refused in these words.
func (s *shot) says(status int, reason string) bool { return s.status == status && s.reason == reason }

// due is one request of the schedule.
type due struct {
	at    time.Duration
	group *group
	who   *customer
}

// schedule is when everything is due that groups ask for within length.
func schedule(length time.Duration, groups []*group) (all []due) {
	for _, g := range groups {
		for i, c := range g.members {
			for range g.atOnce {
				all = append(all, due{0, g, c})
			}
			if g.rate <= 0 {
				continue
			}
			every := 1 / g.rate
			t := every * (float64(i) + .5) / float64(len(g.members)) // spread over the members
			for t < length.Seconds() {
				all = append(all, due{time.Duration(t * float64(time.Second)), g, c})
				share := 1.0
				if g.shape != nil {
					share = max(g.shape(t/length.Seconds()), .05)
				}
				t += every / share
			}
		}
	}
	slices.SortStableFunc(all, func(a, b due) int { return int(a.at - b.at) })
	return all
}

// load is what a play of the schedule came to.
type load struct {
	mu     sync.Mutex
	shots  []shot
	unsent atomic.Int64
	under  atomic.Int64
}

// play sends what groups ask for and returns when the last answer is there.
func (l *load) play(ctx context.Context, length time.Duration, groups ...*group) {
	start := time.Now()
	var wg sync.WaitGroup
	timer := time.NewTimer(0)
	defer timer.Stop()
	for _, d := range schedule(length, groups) {
		if wait := time.Until(start.Add(d.at)); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			break
		}
		if l.under.Load() >= mostUnderWay {
			l.unsent.Add(1)
			continue
		}
		l.under.Add(1)
		at := start.Add(d.at)
		wg.Go(func() {
			defer l.under.Add(-1)
			l.deliver(ctx, d.group, d.who, at)
		})
	}
	wg.Wait()
	if rest := time.Until(start.Add(length)); rest > 0 && ctx.Err() == nil {
		select {
		case <-time.After(rest):
		case <-ctx.Done():
		}
	}
}

// keepPlaying sends what groups ask for until the returned function is called, which waits for the last answer.
func (l *load) keepPlaying(ctx context.Context, groups []*group) (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			l.play(ctx, 2*time.Second, groups...)
			select {
			case <-end:
				return
			default:
			}
		}
	}()
	return func() { close(end); <-done }
}

// deliver sends one request, and again as often as its group does.
func (l *load) deliver(ctx context.Context, g *group, c *customer, at time.Time) {
	for try := 0; ; try++ {
		s := shot{group: g.name, member: c.name, at: at, lag: time.Since(at), again: try > 0}
		send(ctx, g.ask, c, &s)
		if ctx.Err() != nil && s.status == 0 {
			return // the day is broken off: what would have become of it is not known
		}
		l.mu.Lock()
		l.shots = append(l.shots, s)
		l.mu.Unlock()
		if s.ok() || s.status == notCalled || try >= g.retries {
			return
		}
		at = time.Now()
	}
}

// send sends one request and waits for its end.
func send(ctx context.Context, a ask, c *customer, s *shot) {
	s.after = -1
	ctx, cancel := context.WithDeadline(ctx, s.at.Add(deadline))
	defer cancel()
	r, err := a.request(ctx, c)
	if err != nil {
		s.reason = err.Error()
		return
	}
	res, err := c.client.Do(r)
	s.took = time.Since(s.at)
	var call *middleware.CallError
	switch {
	case errors.As(err, &call):
		s.status, s.reason = notCalled, string(call.Reason)
		return
	case err != nil:
		s.reason = err.Error()
		return
	}
	defer res.Body.Close()
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
		s.after = seconds
	}
	if res.StatusCode >= 400 {
		var problem struct {
			Reason string `json:"reason"`
		}
		if json.NewDecoder(io.LimitReader(res.Body, 4096)).Decode(&problem) == nil {
			s.reason = problem.Reason
		}
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		s.reason, s.took = err.Error(), time.Since(s.at)
		return
	}
	s.status, s.took = res.StatusCode, time.Since(s.at)
}
