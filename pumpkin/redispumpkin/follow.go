package redispumpkin

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway/pumpkin"
)

// calm is the most an instance waits, at random, before it stores what Redis has lost: one will be first, and the others find
// that it is there.
const calm = time.Second

// follow looks whenever there may be something new, and now and then in any case.
func (s *Store) follow(ctx context.Context) {
	for {
		pause := time.NewTimer(s.c.Poll*4/5 + rand.N(s.c.Poll*2/5))
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-s.news:
		case <-pause.C:
		}
		pause.Stop()
		s.look(ctx)
		s.castBallot(ctx)
	}
}

// look brings this instance and Redis into agreement, and notes whether it could.
func (s *Store) look(ctx context.Context) { s.note(s.agree(ctx)) }

func (s *Store) agree(ctx context.Context) error {
	_, there, err := s.read(ctx)
	if err != nil {
		return err
	}
	if s.p.Status().Unshared > 0 {
		return s.p.Resync(ctx)
	}
	switch judge(time.Now(), there, s.p.State()) {
	case same:
		return nil
	case ahead:
		if _, err = s.p.Adopt(there); errors.Is(err, pumpkin.ErrOlderEpoch) {
			return s.p.Resync(ctx) // clients know our lineage already
		}
		return err
	}
	pause := time.NewTimer(rand.N(calm))
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-pause.C:
	}
	if _, there, err = s.read(ctx); err != nil {
		return err
	}
	if judge(time.Now(), there, s.p.State()) != apart { // somebody else has stored it
		s.hint()
		return nil
	}
	return s.p.Resync(ctx)
}
