package middleware

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/spillway-go/spillway/shed"
)

// call is one RoundTrip.
type call struct {
	t      *Transport
	r      *http.Request
	ctx    context.Context
	key    string
	host   *host
	until  time.Time     // when it may not wait any longer
	waited time.Duration // for rules, pauses and retries

	used bool // the request's body has been given to the Base, or closed
}

// run makes attempts until one is final.
func (c *call) run() (*http.Response, error) {
	for retry := 0; ; retry++ {
		permit, err := c.enter()
		if err != nil {
			c.closeBody()
			return nil, err
		}
		answer, err := c.send(permit)
		if retry >= c.t.cfg.Retries || !again(c.r, answer, err) {
			return answer, err
		}
		// As long as the service says, and at random, so that those who failed together do not come back together.
		rest := c.host.pausedFor(c.t.now()) + backoff(retry, c.t.random)
		if !c.lasts(rest) || !c.host.budget.spend() {
			return answer, err // what there is, is the answer
		}
		if answer != nil { // its place is free meanwhile, and the connection too, if little is left to read
			_, _ = io.CopyN(io.Discard, answer.Body, 4<<10)
			answer.Body.Close()
		}
		if began, wrong := c.sleep(rest); wrong != nil {
			return nil, wrong
		} else if !began { // so many wait already
			return nil, c.tell(&CallError{Reason: shed.QueueFull, RetryAfter: rest})
		}
		if c.r, err = repeated(c.r); err != nil {
			return nil, err
		}
		c.t.counts.retries.Add(1)
		c.used = false
	}
}

// repeated returns the request with its body anew.
func repeated(r *http.Request) (*http.Request, error) {
	fresh := r.Clone(r.Context())
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		fresh.Body = body
	}
	return fresh, nil
}

// enter waits until the call may be made: for the end of a pause, for a place, for the rules. The permit ends with the call,
// and so does the place.
func (c *call) enter() (shed.Permit, error) {
	if err := c.ctx.Err(); err != nil {
		return shed.Permit{}, err
	}
	if err := c.pause(); err != nil {
		return shed.Permit{}, err
	}
	if !c.t.cfg.KeepCalling && c.host.holdsBack(c.t.now(), c.t.random) {
		c.t.counts.throttled.Add(1)
		return shed.Permit{}, c.tell(&CallError{Reason: Throttled})
	}
	req := c.request()
	for {
		if err := c.place(); err != nil {
			return shed.Permit{}, err
		}
		if c.host.pausedFor(c.t.now()) > 0 { // said to another call, while this one waited
			c.host.leave()
			if err := c.pause(); err != nil {
				return shed.Permit{}, err
			}
			continue
		}
		permit, err := c.t.shedder.Admit(c.ctx, req)
		if err == nil {
			return permit, nil
		}
		c.host.leave() // nobody keeps a place while waiting for quota
		if err := c.outlast(err); err != nil {
			return shed.Permit{}, err
		}
	}
}

// pause waits until the service wants to be called again. Those who wait come back one by one, over a tenth of the pause.
func (c *call) pause() error {
	for {
		left := c.host.pausedFor(c.t.now())
		if left <= 0 {
			return nil
		}
		spread := min(left/10, time.Second)
		began, err := c.sleep(left + time.Duration(c.t.random(int64(spread)+1)))
		if err != nil {
			return err
		}
		if !began {
			c.t.counts.paused.Add(1)
			return c.tell(&CallError{Reason: ServerSaid, RetryAfter: left})
		}
	}
}

// place waits for one of the places that calls to the service have.
func (c *call) place() error {
	if c.host.enter() {
		return nil
	}
	wait := time.Until(c.until)
	if wait <= 0 || !c.t.mayWait() {
		return c.tell(&CallError{Reason: shed.InFlight})
	}
	defer c.t.waiting.Add(-1)
	begun := time.Now()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	defer func() { c.waited += time.Since(begun) }()
	select {
	case c.host.places <- struct{}{}:
		c.host.entered()
		return nil
	case <-timer.C:
		return c.tell(&CallError{Reason: shed.WaitExpired})
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

// outlast waits until the Limits, which have refused, say yes. The error is why that is not worth trying.
func (c *call) outlast(err error) error {
	rejection, ok := errors.AsType[*shed.Rejection](err)
	if !ok {
		return err
	}
	if rejection.Reason == shed.OverLimit && rejection.RetryAfter > 0 {
		if began, err := c.sleep(rejection.RetryAfter); began || err != nil {
			return err
		}
	}
	return &CallError{Reason: rejection.Reason, Key: c.key, Rule: rejection.Rule, RetryAfter: rejection.RetryAfter, cause: rejection}
}

// send makes one attempt. Its place and permit are given back when the answer has been read or closed, or there is none.
func (c *call) send(permit shed.Permit) (*http.Response, error) {
	c.used = true
	done := false
	defer func() {
		if !done { // the Base has panicked
			permit.Done(shed.Ignored)
			c.host.leave()
		}
	}()
	answer, err := c.t.cfg.Base.RoundTrip(c.r)
	done = true
	outcome := shed.Success
	switch {
	case err != nil && c.ctx.Err() != nil:
		outcome = shed.Ignored // the caller's own doing says nothing about the service
	case !accepted(answer, err):
		outcome = shed.Dropped
		c.host.count(c.t.now(), false)
	default:
		c.host.count(c.t.now(), true)
	}
	if err != nil {
		permit.Done(outcome)
		c.host.leave()
		return nil, err
	}
	if pause := pauseOf(answer); pause > 0 {
		c.host.pause(c.t.now(), pause)
	}
	release := func() {
		if c.ctx.Err() != nil {
			outcome = shed.Ignored
		}
		permit.Done(outcome)
		c.host.leave()
	}
	if answer.Body == nil || answer.Body == http.NoBody {
		release() // some do not close what is empty
		return answer, nil
	}
	answer.Body = held(answer.Body, release)
	return answer, nil
}

// closeBody keeps the promise of a RoundTripper for a request that is not sent.
func (c *call) closeBody() {
	if c.r.Body != nil && !c.used {
		c.used = true
		c.r.Body.Close()
	}
}
