package redispumpkin

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// ballotTTL is how long a vote counts after it was cast last: an instance that is gone does not vote.
const ballotTTL = 15 * time.Second

// ballot is this instance's vote, and what is known of the others'.
type ballot struct {
	mu     sync.Mutex
	text   string            // empty: this instance does not vote
	all    map[string]string // by instance
	at     time.Time         // when all was read; zero: never
	failed bool              // the last time
}

// Vote makes text, which is not empty, the vote of this instance from now on, and returns the votes of all instances that live,
// by name, its own included. ok is false while they are not known: until Redis has been asked, and when it could not be for
// 15 s. It returns at once: what others vote is a poll old at most. It is pumpkin.Quorum's.
func (s *Store) Vote(text string) (self string, all map[string]string, ok bool) {
	b := &s.ballot
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text != text {
		b.text = text
		s.hint() // to tell the others soon
	}
	if b.at.IsZero() || time.Since(b.at) > ballotTTL {
		return s.c.Instance, nil, false
	}
	all = maps.Clone(b.all)
	all[s.c.Instance] = text
	return s.c.Instance, all, true
}

// castBallot tells the others what this instance votes.
func (s *Store) castBallot(ctx context.Context) {
	b := &s.ballot
	b.mu.Lock()
	text := b.text
	b.mu.Unlock()
	if text == "" || s.trouble.Load() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	all, err := s.link.cast(ctx, s.c.Instance, text, ballotTTL)
	b.mu.Lock()
	said := b.failed
	if b.failed = err != nil; err == nil {
		b.all, b.at = all, time.Now()
	}
	b.mu.Unlock()
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	if s.failures.Add(1); !said {
		s.c.Logger.Error("pumpkin: the votes of the instances cannot be exchanged through Redis; automation raises nothing meanwhile", slog.Any("error", err))
	}
}

// withdraw takes the vote back, so that the others do not count on an instance that is gone.
func (s *Store) withdraw() {
	s.ballot.mu.Lock()
	text := s.ballot.text
	s.ballot.text = ""
	s.ballot.mu.Unlock()
	if text == "" || s.trouble.Load() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.c.Timeout)
	defer cancel()
	_, _ = s.link.cast(ctx, s.c.Instance, "", ballotTTL) // else it runs out by itself
}
