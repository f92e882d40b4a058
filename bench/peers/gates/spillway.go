package gates

import (
	"context"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/shed"
)

// openSpillway opens a shedder with nothing set but the longest wait. Health is off, because generator and backend share
// the process with it.
func openSpillway(int) (*Gate, error) {
	s, err := shed.New(shed.Config{
		Queue:  shed.Queue{MaxWait: MaxWait},
		Health: health.Config{Off: true},
	})
	if err != nil {
		return nil, err
	}
	return &Gate{
		Enter: func(ctx context.Context) (Leave, bool) {
			permit, err := s.Admit(ctx, shed.Request{})
			if err != nil {
				return nil, false
			}
			return func(e End) { permit.Done(outcome(e)) }, true
		},
		Limit: func() int { return s.Status().Limit },
		Close: func() { _ = s.Close() },
	}, nil
}

// outcome says what the middleware says: a client that left makes no sample, and a 503 from behind counts as dropped.
func outcome(e End) shed.Outcome {
	switch e {
	case Good:
		return shed.Success
	case Failed:
		return shed.Dropped
	}
	return shed.Ignored
}
