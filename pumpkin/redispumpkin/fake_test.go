package redispumpkin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/internal/testlog"
	"github.com/spillway-go/spillway/pumpkin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.M(m)) }

// fake is a Redis in memory, in whatever time its test has.
type fake struct {
	mu      sync.Mutex
	state   stored
	ballots map[string]vote
	hints   map[*fakeLink]func()
	mute    bool // hints are lost
}

type vote struct {
	text string
	ends time.Time
}

// fakeLink is one instance's way to it, which can be cut.
type fakeLink struct {
	*fake
	cut       bool
	before    func() // once, before a swap is compared
	loseReply bool   // of the next swap: it is made, and nobody knows
	reads     int
}

var errCut = errors.New("connection refused")

func (l *fakeLink) read(context.Context) (stored, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	if l.cut {
		return stored{}, errCut
	}
	return l.state, nil
}

func (l *fakeLink) swap(_ context.Context, was, next stored) (bool, error) {
	l.mu.Lock()
	before := l.before
	l.before = nil
	l.mu.Unlock()
	if before != nil {
		before()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.cut:
		return false, errCut
	case l.state.epoch != was.epoch || l.state.seq != was.seq:
		return false, nil
	}
	l.state = next
	for _, hint := range l.hints {
		if !l.mute {
			hint()
		}
	}
	if l.loseReply {
		l.loseReply = false
		return false, errCut
	}
	return true, nil
}

func (l *fakeLink) listen(ctx context.Context, hint func()) {
	l.mu.Lock()
	l.hints[l] = hint
	l.mu.Unlock()
	hint()
	<-ctx.Done()
}

func (l *fakeLink) cast(_ context.Context, instance, ballot string, ttl time.Duration) (map[string]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil, errCut
	}
	l.ballots[instance] = vote{ballot, time.Now().Add(ttl)}
	maps.DeleteFunc(l.ballots, func(_ string, v vote) bool { return v.text == "" || !time.Now().Before(v.ends) })
	all := map[string]string{}
	for name, v := range l.ballots {
		all[name] = v.text
	}
	return all, nil
}

// set changes something of the fake.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// node is one instance.
type node struct {
	*pumpkin.Pumpkin
	*Store
	link *fakeLink
	log  *testlog.Log
}

func newFake() *fake { return &fake{ballots: map[string]vote{}, hints: map[*fakeLink]func(){}} }

// join adds an instance.
func (f *fake) join(t *testing.T, name, file string) node {
	t.Helper()
	n := node{link: &fakeLink{fake: f}, log: new(testlog.Log)}
	return f.joinBy(t, n, name, file)
}

func (f *fake) joinBy(t *testing.T, n node, name, file string) node {
	t.Helper()
	log := slog.New(slog.NewTextHandler(n.log, nil))
	var err error
	if n.Pumpkin, err = pumpkin.New(pumpkin.Config{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	c := Config{Instance: name, Logger: log, SnapshotFile: file}.withDefaults()
	if n.Store, err = join(n.Pumpkin, c, n.link); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.close)
	return n
}

func (n node) close() {
	n.Store.Close()
	n.Pumpkin.Close()
}

// ids lists what the public sees.
func (n node) ids() string {
	var all []string
	for _, it := range n.Document().Items {
		all = append(all, it.ID)
	}
	return strings.Join(all, " ")
}

func (n node) sees(t *testing.T, want string) {
	t.Helper()
	if got := n.ids(); got != want {
		t.Fatalf("%s sees %q, want %q", n.c.Instance, got, want)
	}
}

func (n node) put(t *testing.T, id string, ttl time.Duration) {
	t.Helper()
	if err := n.Put("ada", id, entry(id, ttl)); err != nil {
		t.Fatal(err)
	}
}

func entry(words string, ttl time.Duration) pumpkin.Entry {
	return pumpkin.Entry{Severity: pumpkin.Major, Message: map[string]string{"en": words}, TTL: ttl, Reason: "test"}
}

// agree fails unless all instances show the same bytes.
func agree(t *testing.T, all ...node) {
	t.Helper()
	for _, n := range all[1:] {
		if a, b := fmt.Sprint(all[0].Document()), fmt.Sprint(n.Document()); a != b {
			t.Fatalf("%s shows %s\n%s shows %s", all[0].c.Instance, a, n.c.Instance, b)
		}
	}
}

// virtual runs f in virtual time.
func virtual(t *testing.T, f func(t *testing.T, redis *fake)) {
	synctest.Test(t, func(t *testing.T) { f(t, newFake()) })
}
