package pumpkin

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Config says how clients poll and who may write. The zero value polls every 15 s while something is active, every 60 s
// else, in English, and lets nobody in at the admin endpoint.
type Config struct {
	// PollAfter is how long clients wait between polls while an item is in force: whole seconds, 5 s to 10 min, for that is
	// what clients keep to. Zero means 15 s.
	PollAfter time.Duration
	// PollIdle is the same while all is well. Zero means 60 s, or PollAfter where that is longer.
	PollIdle time.Duration
	// DefaultLang is the language that every message must have, a BCP 47 tag. Empty means "en".
	DefaultLang string
	// Token is what the admin endpoint's callers must bear, see AdminToken. Empty means that all are refused.
	Token string
	// Logger is told about every write, every expiry and wrong tokens. Nil means slog.Default().
	Logger *slog.Logger
}

// withDefaults returns c with its zero fields filled in.
func (c Config) withDefaults() Config {
	c.PollAfter = cmp.Or(c.PollAfter, 15*time.Second)
	c.PollIdle = cmp.Or(c.PollIdle, max(time.Minute, c.PollAfter))
	c.DefaultLang = cmp.Or(c.DefaultLang, "en")
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// validate refuses what clients would not keep to.
func (c Config) validate() error {
	for _, poll := range []struct {
		name  string
		value time.Duration
	}{{"PollAfter", c.PollAfter}, {"PollIdle", c.PollIdle}} {
		if poll.value < 5*time.Second || poll.value > 10*time.Minute || poll.value%time.Second != 0 {
			return fmt.Errorf("pumpkin: %s is %v; it must be whole seconds from 5s to 10m", poll.name, poll.value)
		}
	}
	if c.PollIdle < c.PollAfter {
		return fmt.Errorf("pumpkin: PollIdle is %v, shorter than PollAfter (%v); make it at least as long", c.PollIdle, c.PollAfter)
	}
	if !isLanguage(c.DefaultLang) {
		return fmt.Errorf("pumpkin: DefaultLang %q is not a language tag; use one such as \"en\" or \"pt-BR\"", c.DefaultLang)
	}
	if c.Token == "" {
		return nil
	}
	if err := checkToken(c.Token); err != nil {
		return fmt.Errorf("pumpkin: Token %w", err)
	}
	return nil
}

// Pumpkin holds the items in force and serves the document. Make it with New; it is safe for concurrent use. Readers
// (Public, FeatureOff, Rev, Status) take no lock.
type Pumpkin struct {
	log             *slog.Logger
	pollAfter       time.Duration
	placeKey        uint64
	cacheControl    []string
	cdnCacheControl []string
	guard           guard
	admin           http.Handler

	current            atomic.Pointer[snapshot]
	polls, notModified atomic.Uint64
	writes             atomic.Uint64

	timers sync.WaitGroup // an armed or running timer

	mu     sync.Mutex
	board  board
	timer  *time.Timer // for the next expiry; nil when nothing is in force
	closed bool
}

// New returns a Pumpkin with nothing in force, under a new epoch. Close stops its timer.
func New(c Config) (*Pumpkin, error) { return newPumpkin(c, newULID(time.Now())) }

// newPumpkin is New for a given epoch: instances of one epoch agree on every byte.
func newPumpkin(c Config, epoch string) (*Pumpkin, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	key := sha256.Sum256([]byte("pumpkin places " + epoch))
	p := &Pumpkin{
		log:       c.Logger,
		pollAfter: c.PollAfter,
		placeKey:  binary.BigEndian.Uint64(key[:]),
		guard:     newGuard(c.Token),
		board:     newBoard(epoch, c.DefaultLang, int(c.PollAfter/time.Second), int(c.PollIdle/time.Second)),
	}
	p.cacheControl, p.cdnCacheControl = cacheHeaders(int(c.PollAfter / time.Second))
	p.current.Store(newSnapshot(p.board))
	p.admin = p.newAdmin()
	return p, nil
}

// Close stops the timer and refuses further writes. The document stays as it is; features of items that expire later come
// back at their time. A second Close does nothing.
func (p *Pumpkin) Close() {
	p.mu.Lock()
	p.closed = true
	p.disarmLocked()
	p.mu.Unlock()
	p.timers.Wait()
}

// Put replaces the item id by e, on behalf of actor, who is named in the log. It is the admin endpoint's PUT for programs,
// except that features with Everything need no confirmation. The error is a *Refusal; then nothing has changed.
func (p *Pumpkin) Put(actor, id string, e Entry) error {
	_, err := p.put(write{actor: actor, id: id}, e)
	return err
}

// Clear ends the item id at once, on behalf of actor, and reports whether it was in force. The error is a *Refusal, after
// Close only.
func (p *Pumpkin) Clear(actor, id string) (bool, error) {
	return p.clear(write{actor: actor, id: id})
}

// Rev returns the identity of the state, "<epoch>.<rev>": the value of the header Pumpkin-Rev.
func (p *Pumpkin) Rev() string { return p.current.Load().id }

// Document returns what the public sees now. The caller must not change its maps.
func (p *Pumpkin) Document() Document { return p.current.Load().board.document() }
