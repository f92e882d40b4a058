package scenarios

import (
	"errors"
	"fmt"
	"time"
)

// Switch is a feature that the pumpkin switches off for a while. In the spillway arm its routes refuse, and populations that
// poll leave it alone once they know.
type Switch struct {
	Feature string        `yaml:"feature"`
	At      time.Duration `yaml:"at"`
	For     time.Duration `yaml:"for"`
	// PollAfter is the pace of the polls, and RecoverSpread the time over which clients spread their return.
	PollAfter     time.Duration `yaml:"poll_after"`
	RecoverSpread time.Duration `yaml:"recover_spread"`
	// Lost is the share of polls that get no answer.
	Lost float64 `yaml:"lost"`
}

// OffAt reports whether the feature is off at t.
func (s *Switch) OffAt(t time.Duration) bool { return s.At <= t && t < s.At+s.For }

func (s *Scenario) checkSwitch() error {
	for i := range s.Populations {
		switch p := &s.Populations[i]; {
		case p.Polls && s.Switch == nil:
			return fmt.Errorf("populations[%d]: polls: there is nothing to poll for; add a switch", i)
		case p.Polls && p.Churn > 0:
			return fmt.Errorf("populations[%d]: polls: clients that change their identities are not followed", i)
		}
	}
	w := s.Switch
	switch {
	case w == nil:
		return nil
	case w.Feature == "" || w.At < 0 || w.For <= 0 || w.RecoverSpread < 0 || w.Lost < 0 || w.Lost >= 1:
		return errors.New("switch: needs a feature, at: when, for: how long, and lost: a share below 1")
	case w.PollAfter < 5*time.Second || w.PollAfter > 10*time.Minute:
		return fmt.Errorf("switch: poll_after is %v; clients keep to 5s to 10m", w.PollAfter)
	case len(s.Modes) > 0:
		return errors.New("switch: is played in virtual time only; leave modes out")
	}
	return nil
}
