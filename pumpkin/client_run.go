package pumpkin

import (
	"context"
	"reflect"
	"time"
)

// run polls until the client is closed.
func (c *Client) run(ctx context.Context) {
	defer close(c.ended)
	timer := time.NewTimer(c.untilNext())
	defer timer.Stop()
	tag := ""
	for ctx.Err() == nil { // of two cases that are ready, select takes either
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-timer.C:
			c.endHolds()
			if c.now() >= c.due() {
				tag = c.poll(ctx, tag)
			}
		}
		timer.Reset(c.untilNext())
	}
}

// due is when the next poll is.
func (c *Client) due() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.schedule.Due()
}

// untilNext is how long nothing happens: until the next poll, or until a feature comes back.
func (c *Client) untilNext() time.Duration {
	next := c.due()
	if v := c.view.Load(); v != nil {
		for _, h := range v.holds {
			next = min(next, h.until)
		}
	}
	return max(0, next-c.now())
}

// poll asks once and returns the entity tag of what is known then.
func (c *Client) poll(ctx context.Context, tag string) string {
	d, newTag, retryAfter, err := c.fetch(ctx, tag)
	if ctx.Err() != nil {
		return tag // closed meanwhile: neither a failure nor news
	}
	if err != nil {
		c.failed.Add(1)
		c.mu.Lock()
		c.err = err
		c.schedule.Failed(c.now(), retryAfter, c.random())
		first := c.schedule.Failures() == 1
		c.mu.Unlock()
		if first {
			c.config.Logger.Warn("pumpkin: the document cannot be read; what is known stays", "url", c.config.URL, "error", err)
		}
		return tag
	}
	changed := false
	if d == nil {
		c.unchanged.Add(1)
	} else {
		c.answered.Add(1)
		old := c.view.Load()
		if old == nil || !d.olderThan(old.doc) {
			// Other words under the same rev count: items begin and end without a write.
			changed = old == nil || !reflect.DeepEqual(old.doc, *d)
			tag = newTag
		}
		if changed {
			c.view.Store(newClientView(*d, old, c.now(), c.random()))
		}
	}
	doc := c.view.Load().doc
	c.mu.Lock()
	failures := c.schedule.Failures()
	c.err, c.lastGood = nil, time.Now()
	if c.heard.olderThan(doc) {
		c.heard = doc
	}
	c.schedule.Answered(c.now(), time.Duration(doc.PollAfter)*time.Second, c.random())
	c.mu.Unlock()
	if failures > 0 {
		c.config.Logger.Info("pumpkin: the document can be read again", "url", c.config.URL, "failures", failures)
	}
	if changed && c.config.OnChange != nil {
		c.config.OnChange(doc)
	}
	return tag
}

// endHolds forgets the holds that are over, and tells.
func (c *Client) endHolds() {
	v := c.view.Load()
	if v == nil || len(v.holds) == 0 {
		return
	}
	left := v.holdsAt(c.now())
	if len(left) == len(v.holds) {
		return
	}
	next := *v
	next.holds = left
	c.view.Store(&next)
	if c.config.OnChange != nil {
		c.config.OnChange(next.doc)
	}
}
