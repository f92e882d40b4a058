package redispumpkin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/pumpkin"
)

// Store shares the state of one Pumpkin through Redis; it is its pumpkin.Store. Join makes it.
type Store struct {
	c    Config
	p    *pumpkin.Pumpkin
	link link
	disk disk

	news   chan struct{} // something may have changed in Redis
	fresh  chan struct{} // the state here has changed, for the disk
	cancel context.CancelFunc
	wg     sync.WaitGroup

	failures, reseeded atomic.Uint64
	trouble            atomic.Pointer[trouble] // nil while Redis can be asked

	ballot ballot
}

// trouble is what is wrong, and since when.
type trouble struct {
	since time.Time
	err   error
}

// Join makes p share its state from now on; call it before p serves, writes or is automated. What is in Redis comes first, else
// what the snapshot file says. That Redis does not answer is no error: then its state comes in when it does. Errors are about c.
func Join(p *pumpkin.Pumpkin, c Config) (*Store, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return join(p, c, newRedisLink(c.Client, c.Namespace))
}

func join(p *pumpkin.Pumpkin, c Config, l link) (*Store, error) {
	s := &Store{
		c: c, p: p, link: l, disk: disk{file: c.SnapshotFile, log: c.Logger},
		news: make(chan struct{}, 1), fresh: make(chan struct{}, 1),
	}
	if err := s.disk.restore(p); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	p.Join(s)
	s.look(ctx)
	s.wg.Go(func() { s.link.listen(ctx, s.hint) })
	s.wg.Go(func() { s.follow(ctx) })
	if c.SnapshotFile != "" {
		s.wg.Go(func() { s.keep(ctx) })
	}
	return s, nil
}

// Close stops following Redis and takes the vote back. The Pumpkin goes on with what it knows; what is written to it from then on
// may not reach the others. A second Close does nothing.
func (s *Store) Close() {
	s.cancel()
	s.wg.Wait()
	s.withdraw()
}

// Changed keeps the state for a start without Redis. It is pumpkin.Store's.
func (s *Store) Changed(pumpkin.State) { poke(s.fresh) }

// keep writes the snapshot file.
func (s *Store) keep(ctx context.Context) {
	for {
		s.disk.save(s.p.State())
		select {
		case <-ctx.Done():
			s.disk.save(s.p.State())
			return
		case <-s.fresh:
		}
	}
}

// hint says that it is time to look.
func (s *Store) hint() { poke(s.news) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is said already
	}
}

// read asks Redis for the state.
func (s *Store) read(ctx context.Context) (stored, pumpkin.State, error) {
	ctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	found, err := s.link.read(ctx)
	var state pumpkin.State
	if err == nil && found != (stored{}) {
		state, err = pumpkin.ParseState([]byte(found.text))
		if err == nil && (state.Epoch != found.epoch || state.Seq != found.seq) {
			err = errForeign
		}
	}
	return found, state, err
}

// note logs when trouble begins and ends.
func (s *Store) note(err error) {
	refusal, _ := errors.AsType[*pumpkin.Refusal](err)
	if errors.Is(err, context.Canceled) || refusal != nil && refusal.Reason == pumpkin.Closed { // the end
		return
	}
	if err == nil {
		if was := s.trouble.Swap(nil); was != nil {
			s.c.Logger.Info("pumpkin: Redis can be asked again; the instances share their state",
				slog.Duration("after", time.Since(was.since).Round(time.Millisecond)))
		}
		return
	}
	s.failures.Add(1)
	if s.trouble.CompareAndSwap(nil, &trouble{time.Now(), err}) {
		s.c.Logger.Error("pumpkin: the shared state cannot be read or written; this instance goes on with what it knows, and keeps what is written here until it can",
			slog.Any("error", err))
	}
}

// attempts bounds how often a write begins again because others were quicker.
const attempts = 32

// errRace ends a write that others have been quicker than each time.
var errRace = fmt.Errorf("redispumpkin: %d others were quicker", attempts)

// Update is pumpkin.Store's: it makes a write in Redis.
func (s *Store) Update(ctx context.Context, apply func(pumpkin.State) (pumpkin.State, error)) (pumpkin.State, error) {
	var made stored // what we have tried to store last
	for range attempts {
		found, there, err := s.read(ctx)
		if err != nil {
			return pumpkin.State{}, err
		}
		if made.text != "" && found == made { // it was stored, and the answer was lost on its way to the client, which asked again
			return there, nil
		}
		now, mine := time.Now(), s.p.State()
		next, err := s.apply(basis(now, there, mine), apply)
		if err != nil {
			return pumpkin.State{}, err
		}
		was := judge(now, there, mine)
		gone := there.Epoch == "" && mine.Seq > 0
		if there.Epoch != "" && was != apart && next.Epoch == there.Epoch && next.Rev == there.Rev && sameWords(next, there) {
			return there, nil
		}
		if gone {
			next.Epoch, next.Rev = pumpkin.NewEpoch(max(next.Epoch, mine.Epoch)), next.Rev+1
		}
		next.Seq = max(there.Seq, mine.Seq) + 1
		text, err := json.Marshal(next)
		if err != nil {
			return pumpkin.State{}, fmt.Errorf("redispumpkin: %w", err)
		}
		made = stored{next.Epoch, next.Seq, string(text)}
		ok, err := s.swap(ctx, found, made)
		if err != nil {
			return pumpkin.State{}, err
		}
		if ok {
			if was == apart {
				s.reseeded.Add(1)
				s.c.Logger.Warn("pumpkin: what Redis had lost, or instances had written apart, is joined and stored",
					slog.Bool("missing", gone), slog.String("epoch", next.Epoch), slog.Uint64("rev", next.Rev))
			}
			return next, nil
		}
	}
	return pumpkin.State{}, errRace
}

func (s *Store) swap(ctx context.Context, was, next stored) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	return s.link.swap(ctx, was, next)
}

// apply asks for the next state. What both sides of a partition have together may be more than fits; then the least is left out.
func (s *Store) apply(base pumpkin.State, apply func(pumpkin.State) (pumpkin.State, error)) (pumpkin.State, error) {
	for {
		next, err := apply(base)
		// A refusal of the write itself is wrapped; one of the state that it was to be made on is not.
		r, ok := err.(*pumpkin.Refusal) //nolint:errorlint // see above
		if !ok || len(base.Items) == 0 || r.Reason != pumpkin.TooManyItems && r.Reason != pumpkin.DocumentTooLarge {
			return next, err
		}
		var dropped pumpkin.Item
		base, dropped = lighter(base)
		base.Rev++
		s.c.Logger.Error("pumpkin: the instances' items together are more than fits; one is left out", slog.String("id", dropped.ID),
			slog.String("actor", dropped.Actor), slog.String("reason", dropped.Reason))
	}
}
