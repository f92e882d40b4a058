package shed

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// contextKey finds what a test has put into a context.
type contextKey struct{}

// listener notes what it is told, and by which context.
type listener struct{ heard []string }

func (l *listener) Observe(e Event) { l.heard = append(l.heard, e.Kind.String()+" without") }

func (l *listener) ObserveContext(ctx context.Context, e Event) {
	who, _ := ctx.Value(contextKey{}).(string)
	l.heard = append(l.heard, e.Kind.String()+" "+who)
}

func TestAContextObserverGetsTheCallersContextFromTheFirstToTheLastEvent(t *testing.T) {
	var l listener
	plain := 0
	cfg := fixed(1, Queue{Capacity: -1})
	cfg.Limits = []Limit{bucket("per-client", 1, 1)}
	cfg.Observer = Observers(nil, ObserverFunc(func(Event) { plain++ }), &l)
	s := open(t, cfg)
	with := func(who string) context.Context { return context.WithValue(t.Context(), contextKey{}, who) }
	p, err := s.Admit(with("a"), Request{Client: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Admit(with("b"), Request{Client: "b"}); err == nil {
		t.Error("admitted without room")
	}
	p.Done(Success)
	if p.slot.held.ctx != nil {
		t.Error("the slot keeps the context of work that is done")
	}
	if _, err := s.Admit(with("c"), Request{Client: "a"}); err == nil {
		t.Error("admitted without quota")
	}
	if want := []string{"admitted a", "refused b", "finished a", "refused c"}; !slices.Equal(l.heard, want) {
		t.Errorf("heard %q, want %q", l.heard, want)
	}
	if plain != 4 {
		t.Errorf("the plain observer heard %d events, want 4", plain)
	}
}

func TestObserversWithoutContextKeepNone(t *testing.T) {
	cfg := fixed(1, Queue{})
	cfg.Observer = Observers(ObserverFunc(func(Event) {}))
	s := open(t, cfg)
	p := admitted(t, s, Request{})
	if p.slot.held.ctx != nil {
		t.Error("a context is kept for nobody")
	}
	p.Done(Success)
	Observers().Observe(Event{}) // nobody is told
}

// slowStore takes its time, as a store beyond a network does.
type slowStore struct {
	limits.Store
	takes time.Duration
	err   error
}

func (s slowStore) Take(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	time.Sleep(s.takes)
	if s.err != nil {
		return limits.Decision{}, s.err
	}
	d, err := s.Store.Take(ctx, now, charges)
	d.Source = limits.FromRedis
	return d, err
}

func TestEventsTellHowLongAStoreElsewhereTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, err := limits.NewMemory(limits.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		var events []Event
		cfg := fixed(5, Queue{})
		cfg.Limits = []Limit{bucket("per-client", 1, 1)}
		cfg.Observer = ObserverFunc(func(e Event) { events = append(events, e) })
		cfg.Store = slowStore{Store: memory, takes: 3 * time.Millisecond}
		s := open(t, cfg)
		admitted(t, s, Request{Client: "a"}).Done(Success)
		if _, err := s.Admit(t.Context(), Request{Client: "a"}); err == nil {
			t.Error("admitted without quota")
		}
		for i, want := range []EventKind{Admitted, Finished, Refused} {
			e := events[i]
			if e.Kind != want || want != Finished && (e.Store != 3*time.Millisecond || e.Source != limits.FromRedis) {
				t.Errorf("event %d: %+v", i, e)
			}
		}
		cfg.Store = nil
		s = open(t, cfg)
		admitted(t, s, Request{Client: "a"}).Done(Success)
		if e := events[3]; e.Store != 0 {
			t.Errorf("the memory is measured: %+v", e)
		}
	})
}
