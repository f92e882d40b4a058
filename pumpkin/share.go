package pumpkin

import (
	"context"
	"errors"
	"time"
)

// Store holds the State for several instances; pumpkin/redispumpkin is one. Join attaches it.
type Store interface {
	// Update replaces the stored state by what apply makes of it, in one atomic step, and returns what is stored then.
	// apply sees the newest stored state (the zero State if the store is empty) and is called again when another instance
	// was quicker. An error of apply ends it: nothing is stored and the error is returned as it is. Any other error means
	// that the store cannot say whether it has the write: the Pumpkin then makes it here alone, and the Store calls Resync
	// when it can be asked again.
	Update(ctx context.Context, apply func(State) (State, error)) (State, error)
	// Changed is told, outside of the Pumpkin's locks and never at the same time as another call, that the state here has
	// changed, for whatever reason: by a write, by time, or by Adopt, before which it returns. It must return soon.
	Changed(State)
}

// Reporter is a Store that tells how it does; Pumpkin.Status asks it.
type Reporter interface{ Report() StoreReport }

// StoreReport is how the sharing of the state goes, seen from one instance. All counts are since the Store was made.
type StoreReport struct {
	// Reachable says that the store could be read, and written where need be, when it was asked last; else Trouble says in words
	// why not, and TroubleFor for how many seconds.
	Reachable  bool    `json:"reachable"`
	Trouble    string  `json:"trouble,omitempty"`
	TroubleFor float64 `json:"trouble_for,omitempty"`
	// Seq is the State.Seq that this instance knows.
	Seq uint64 `json:"seq"`
	// Instances is how many vote on what automation does; 0 if this is not known, or this one does not vote.
	Instances int `json:"instances,omitempty"`
	// Failures counts questions to the store that had no answer, Reseeded states that this instance has stored because the store
	// had lost something or instances had written apart.
	Failures uint64 `json:"failures"`
	Reseeded uint64 `json:"reseeded"`
}

// updateWithin is how long a write waits for the store. An operator's banner is up here at the end of it in any case.
const updateWithin = 2 * time.Second

// errRefusedHere marks what apply refused, so that it is told from a failure of the store.
type errRefusedHere struct{ error }

func (e errRefusedHere) Unwrap() error { return e.error }

// Join shares the state through s from now on: writes go through s.Update, and s brings in what others wrote with Adopt.
// It is called once, before the first write. A nil s is ignored.
func (p *Pumpkin) Join(s Store) {
	if s != nil {
		p.store.Store(&s)
	}
}

// State returns what this instance has to share: all but the break-glass file.
func (p *Pumpkin) State() State { return p.current.Load().board.state() }

// Adopt replaces the state by s, which came from elsewhere, and reports whether the public sees something else now. Within
// an epoch the rev shown never falls: where s is behind and says something else, the rev grows by one. What was written here
// while the store could not be asked is merged with s and not lost; see Resync. Ordering is the caller's business otherwise:
// s counts even if it is older than the state here, except that within an epoch a State with a Seq never undoes one with a
// higher Seq. The error is ErrOlderEpoch or a *Refusal
// that says what in s could not have been written; then nothing has changed.
func (p *Pumpkin) Adopt(s State) (changed bool, err error) {
	var before, after string
	_, err = p.change(func(now time.Time, b board) (board, error) {
		before = b.identity()
		b, err := p.asSeen(b).adopt(now, s)
		after = b.identity()
		return b, err
	})
	return err == nil && before != after, err
}

// Resync brings the store and this instance into agreement: what was written here alone while the store could not be asked
// goes there, and what others have written comes here. The Store calls it when it can be asked again, and when it has lost
// its state. The error is the store's; then nothing has changed.
func (p *Pumpkin) Resync(ctx context.Context) error {
	s := p.store.Load()
	if s == nil {
		return nil
	}
	_, err := p.update(ctx, *s, func(_ time.Time, b board) (board, error) { return b, nil })
	return err
}

// commit makes a write, through the store if there is one. local reports that the store could not be asked.
func (p *Pumpkin) commit(f func(now time.Time, b board) (board, error)) (b board, local bool, err error) {
	s := p.store.Load()
	if s == nil {
		b, err = p.change(f)
		return b, false, err
	}
	if p.isClosed() {
		return p.current.Load().board, false, refuse(Closed, "this pumpkin is closed")
	}
	ctx, cancel := context.WithTimeout(context.Background(), updateWithin)
	defer cancel()
	b, err = p.update(ctx, *s, f)
	if refused, ok := errors.AsType[errRefusedHere](err); ok {
		return p.current.Load().board, false, refused.error
	}
	if err == nil {
		return b, false, nil
	}
	b, err = p.change(func(now time.Time, b board) (board, error) {
		b, err := f(now, b)
		if err == nil {
			b.locals++
		}
		return b, err
	})
	return b, true, err
}

// update makes a write in the store and brings what is stored then here.
func (p *Pumpkin) update(ctx context.Context, s Store, f func(now time.Time, b board) (board, error)) (board, error) {
	var locals int
	stored, err := s.Update(ctx, func(s State) (State, error) {
		now, b := time.Now(), p.asSeen(p.current.Load().board)
		locals = b.locals
		if s.Epoch != "" {
			adopted, err := b.adopt(now, s)
			if errors.Is(err, ErrOlderEpoch) { // ours is what clients know
				adopted, err = b.adopt(now, Merge(s, b.state()))
			}
			if err != nil {
				return State{}, err // the store holds what we do not understand: write here alone
			}
			b = adopted
		}
		b, _ = b.advance(now)
		next, err := f(now, b)
		if err != nil {
			return State{}, errRefusedHere{err}
		}
		return next.state(), nil
	})
	if err != nil {
		return board{}, err
	}
	return p.change(func(now time.Time, b board) (board, error) {
		if b = p.asSeen(b); b.locals == locals { // nothing was written here alone meanwhile, so the store has it all
			b.locals = 0
		}
		return b.adopt(now, stored)
	})
}

// asSeen is b, whose epoch cannot be taken back once it was polled.
func (p *Pumpkin) asSeen(b board) board {
	b.unseen = b.unseen && p.polls.Load()+p.notModified.Load() == 0
	return b
}

func (p *Pumpkin) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// tell passes a changed state on to the store. Calls are one after the other, and the last one tells the last state.
func (p *Pumpkin) tell() {
	s := p.store.Load()
	if s == nil {
		return
	}
	p.telling.Lock()
	defer p.telling.Unlock()
	(*s).Changed(p.State())
}
