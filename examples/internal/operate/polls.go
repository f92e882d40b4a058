package operate

import (
	"fmt"
	"time"

	"github.com/spillway-go/spillway/pumpkin"
	"github.com/spillway-go/spillway/shed/configfile"
)

// Polls tells clients the pace that a new configuration asks for, and returns a line for each change. Idle says what a program makes of
// the pace while all is well.
func Polls(p *pumpkin.Pumpkin, was, next configfile.Pumpkin, idle func(configfile.Pumpkin) time.Duration) (changes []string) {
	if was.PollAfter == next.PollAfter && idle(was) == idle(next) {
		return nil
	}
	if p.SetPoll(next.PollAfter, idle(next)) != nil { // the file has been checked, so only Close refuses
		return nil
	}
	for _, c := range []struct {
		key     string
		was, is time.Duration
	}{{"poll_after", was.PollAfter, next.PollAfter}, {"poll_idle", was.PollIdle, next.PollIdle}} {
		if c.was != c.is {
			changes = append(changes, fmt.Sprintf("pumpkin.%s %s -> %s", c.key, orDefault(c.was), orDefault(c.is)))
		}
	}
	return changes
}

func orDefault(d time.Duration) string {
	if d == 0 {
		return "default"
	}
	return d.String()
}
