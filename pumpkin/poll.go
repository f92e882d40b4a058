package pumpkin

import "time"

// SetPoll changes how long clients wait between polls, as Config.PollAfter and PollIdle say, zeros included. Clients learn it with
// their next poll. The error says what clients would not keep to, and then nothing has changed.
func (p *Pumpkin) SetPoll(after, idle time.Duration) error {
	c := Config{PollAfter: after, PollIdle: idle}.withDefaults()
	if err := c.validate(); err != nil {
		return err
	}
	_, err := p.change(func(_ time.Time, b board) (board, error) {
		b.pollActive, b.pollIdle = int(c.PollAfter/time.Second), int(c.PollIdle/time.Second)
		return b.publish(), nil
	})
	return err
}
