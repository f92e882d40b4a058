package pumpkin

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The pace of polls that a Config asks for which names none.
const (
	DefaultPollAfter = 15 * time.Second
	DefaultPollIdle  = time.Minute
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
	// Token is what the admin endpoint's callers must bear, see AdminToken. Empty, and no Tokens,
	// means that all are refused, and that Admin warns.
	Token string
	// Tokens are more of them, each with its bearer's name, see AdminTokens. Names and digests must differ.
	Tokens []Token
	// Hosts are the names under which the admin endpoint may be asked, beside localhost and addresses: a page whose name was
	// made to point at this machine is refused. Nil means no other name.
	Hosts []string
	// Templates are prepared texts by name, for PUT /mode, the page and automation. They must pass as items, without a start,
	// a reason and a ticket. SiteDown, Degraded and PlannedMaintenance are there in any case, if they know DefaultLang.
	Templates map[string]Entry
	// AuditFile is appended a line of JSON for each Record, made with mode 0600. Empty means that the trail is in memory only.
	AuditFile string
	// File is the break-glass file, looked at every second. While it is there and sound, what it says is what the public
	// sees, whatever else is going on. Empty means none.
	File string
	// Logger is told about every write, every expiry and wrong tokens. Nil means slog.Default().
	Logger *slog.Logger
}

// withDefaults returns c with its zero fields filled in.
func (c Config) withDefaults() Config {
	c.PollAfter = cmp.Or(c.PollAfter, DefaultPollAfter)
	c.PollIdle = cmp.Or(c.PollIdle, max(DefaultPollIdle, c.PollAfter))
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
	for _, host := range c.Hosts {
		if host == "" || strings.ContainsAny(host, ":/* ") {
			return fmt.Errorf("pumpkin: Hosts: %q is not a host name; write it without scheme, port and wildcard", host)
		}
	}
	return nil
}

// allTokens returns Token and Tokens, or what is wrong with them.
func (c Config) allTokens() ([]Token, error) {
	var all []Token
	if c.Token != "" {
		if err := checkToken(c.Token); err != nil {
			return nil, fmt.Errorf("pumpkin: Token %w", err)
		}
		all = append(all, Token{Name: soleToken, Digest: sha256.Sum256([]byte(c.Token))})
	}
	for _, t := range c.Tokens {
		if !isName(t.Name) || t.Digest == ([sha256.Size]byte{}) {
			return nil, fmt.Errorf("pumpkin: Tokens: %q has no proper name or no digest; make it with NewToken", t.Name)
		}
		for _, other := range all {
			if other.Name == t.Name || other.Digest == t.Digest {
				return nil, fmt.Errorf("pumpkin: Tokens: %q has the name or the digest of another one", t.Name)
			}
		}
		all = append(all, t)
	}
	return all, nil
}

// Pumpkin holds the items in force and serves the document. Make it with New; it is safe for concurrent use. Readers
// (Public, FeatureOff, Rev, Status) take no lock.
type Pumpkin struct {
	log   *slog.Logger
	guard guard
	hosts []string
	admin http.Handler
	// locked says once that nobody can use admin.
	locked sync.Once
	glass  glass // touched by New, then by its watcher alone

	current            atomic.Pointer[snapshot]
	polls, notModified atomic.Uint64
	writes             atomic.Uint64

	audit     trail
	templates map[string]Entry

	timers sync.WaitGroup // an armed or running timer

	auto    atomic.Pointer[Auto]  // nil: none
	store   atomic.Pointer[Store] // nil: the state lives here alone
	telling sync.Mutex            // held while the store is told of a change

	mu    sync.Mutex
	board board
	// enforced are the features that routes have, sorted; nil as long as nobody has said.
	enforced []string
	timer    *time.Timer // for what happens next; nil when nothing will
	closed   bool
}

// New returns a Pumpkin with nothing in force, under a new epoch. Close stops its timer.
func New(c Config) (*Pumpkin, error) { return newPumpkin(c, newULID(time.Now())) }

// newPumpkin is New for a given epoch: instances of one epoch agree on every byte.
func newPumpkin(c Config, epoch string) (*Pumpkin, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	tokens, err := c.allTokens()
	if err != nil {
		return nil, err
	}
	templates, err := newTemplates(c.Templates, c.DefaultLang)
	if err != nil {
		return nil, err
	}
	p := &Pumpkin{
		log:       c.Logger,
		guard:     guard{tokens: tokens},
		hosts:     slices.Clone(c.Hosts),
		templates: templates,
		audit:     trail{log: c.Logger, file: c.AuditFile},
		board:     newBoard(epoch, c.DefaultLang, int(c.PollAfter/time.Second), int(c.PollIdle/time.Second)),
	}
	p.board.unseen = true
	if err := p.audit.open(); err != nil {
		return nil, err
	}
	p.current.Store(newSnapshot(p.board))
	p.admin = p.newAdmin()
	p.watch(c.File)
	return p, nil
}

// Close stops the timer and the watch of the break-glass file, and refuses further writes. The document stays as it is;
// features of items that expire later come back at their time. A second Close does nothing.
func (p *Pumpkin) Close() {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	p.disarmLocked()
	p.mu.Unlock()
	if first {
		close(p.glass.stop)
	}
	<-p.glass.stopped
	p.timers.Wait()
	p.audit.queue.close()
}

// Put replaces the item id by e, on behalf of actor, who is named in the log. It is the admin endpoint's PUT for programs,
// except that features with Everything need no confirmation. The error is a *Refusal; then nothing has changed.
func (p *Pumpkin) Put(actor, id string, e Entry) error {
	_, err := p.put(write{actor: actor, id: id, origin: Manual}, e)
	return err
}

// Clear ends the item id at once, on behalf of actor, and reports whether it was in force. The error is a *Refusal, after
// Close only.
func (p *Pumpkin) Clear(actor, id string) (bool, error) {
	return p.clear(write{actor: actor, id: id, origin: Manual})
}

// Rev returns the identity of the state, "<epoch>.<rev>": the value of the header Pumpkin-Rev.
func (p *Pumpkin) Rev() string { return p.current.Load().id }

// Document returns what the public sees now. The caller must not change its maps.
func (p *Pumpkin) Document() Document { return p.current.Load().board.document() }
