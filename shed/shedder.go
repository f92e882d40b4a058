package shed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/concurrency"
	"github.com/spillway-go/spillway/queue"
)

// ErrClosed is what Admit returns once Close has been called.
var ErrClosed = errors.New("shed: the shedder is closed")

// longestMaxWait bounds what a configuration may ask of those who wait.
const longestMaxWait = 24 * time.Hour

// TickEvery is how often time passes for the gate when nothing else happens.
const TickEvery = 100 * time.Millisecond

// Shedder decides, for each request, whether it may run now, must wait, or is turned away. It is safe for concurrent use.
// Make one with New and end it with Close.
//
// Lock order: mu is the only lock of this package and is held for a few dozen instructions; no store, observer or waiter
// is ever called while it is held.
type Shedder struct {
	settings   atomic.Pointer[settings] // looked up once per request; replaced whole by Reload
	store      limits.Store
	features   Features
	observer   Observer
	health     atomic.Pointer[health.Sampler]
	turns      *queue.Leaky
	guard      []limits.Charge // bound exempt routes and exempt requests; charged in a store of their own
	guards     *limits.Memory
	running    *limits.Memory // what is in flight, for the rules that count that
	clock      clock
	jitter     func(n int64) int64 // at random from [0, n), for the Retry-After of refusals by load
	counts     counts
	pseudonyms pseudonyms // hides clients' names in the status
	visits     sync.Pool

	closing context.Context // ends with Close
	stop    func()          // ends it, and the ticking
	done    chan struct{}   // closed when that has ended

	mu       sync.Mutex
	gate     gate
	finished [3]int64    // permits that came back, by Outcome
	answers  durations   // of the current moment
	closed   atomic.Bool // set under mu

	history history

	contextual ContextObserver // the observer, if it wants to know the caller's context
	memory     *limits.Memory  // the store, if it is this process's memory: it takes no time, and goes by our clock

	reloading sync.Mutex                                    // one Reload at a time, and none after Close; held before mu
	followers []func(cfg Config) (commit func(), err error) // under reloading
	reloads   reloads
	budgets   map[string]*budget // of long-lived routes, by name, also of some that are gone; under mu

	// crowded mirrors, for one cheap look before charging quota, whether a newcomer might have to wait. Under mu it is exact.
	crowded atomic.Bool
}

// clock is the time of the gate: it counts from New and is monotonic, whatever the wall clock does. In a Machine it stands
// where its driver has set it.
type clock struct {
	start   time.Time
	virtual *time.Duration
}

func (c clock) now() time.Duration {
	if c.virtual != nil {
		return *c.virtual
	}
	return time.Since(c.start)
}

// wall is the time for the store; the zero Time asks for its own clock, which is cheaper than reading ours.
func (c clock) wall() time.Time {
	if c.virtual != nil {
		return c.start.Add(*c.virtual)
	}
	return time.Time{}
}

// at is a time to come, for a look at what the store will say.
func (c clock) at(after time.Duration) time.Time {
	if c.virtual != nil {
		return c.start.Add(*c.virtual + after)
	}
	return time.Now().Add(after)
}

// New makes a Shedder and starts its two goroutines (health and tick), which end with Close. A configuration that cannot
// work is an error that says what is wrong and how to mend it.
func New(cfg Config) (*Shedder, error) {
	s, err := build(cfg, clock{start: time.Now()})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.closing, s.stop = ctx, stop
	s.reloads.status = ReloadStatus{OK: true, Since: time.Now()}
	s.health.Load().Start()
	go s.run(ctx)
	return s, nil
}

// build makes all of a Shedder that needs no goroutine.
func build(cfg Config, clock clock) (*Shedder, error) {
	set, err := compile(cfg)
	if err != nil {
		return nil, err
	}
	places, maxWait, err := cfg.Queue.resolve()
	if err != nil {
		return nil, err
	}
	estimate, err := concurrency.New(cfg.Concurrency)
	if err != nil {
		return nil, fmt.Errorf("shed: %w", err)
	}
	sampler, err := health.New(cfg.Health)
	if err != nil {
		return nil, fmt.Errorf("shed: %w", err)
	}
	guard, err := limits.NewPolicy("exempt-guard", limits.TokenBucket{Capacity: exemptGuard, Refill: limits.PerSecond(exemptGuard)})
	if err != nil {
		return nil, fmt.Errorf("shed: %w", err)
	}
	guards, err := limits.NewMemory(limits.MemoryConfig{MaxKeys: 2})
	if err != nil {
		return nil, fmt.Errorf("shed: %w", err)
	}
	running, err := limits.NewMemory(limits.MemoryConfig{})
	if err != nil {
		return nil, fmt.Errorf("shed: %w", err)
	}
	store := cfg.Store
	if store == nil {
		if store, err = limits.NewMemory(limits.MemoryConfig{}); err != nil {
			return nil, fmt.Errorf("shed: %w", err)
		}
	}
	floor, _ := estimate.Bounds()
	s := &Shedder{
		store:      store,
		features:   cfg.Features,
		observer:   cfg.Observer,
		turns:      queue.NewLeaky(0),
		pseudonyms: newPseudonyms(),
		guard:      []limits.Charge{{Policy: guard, Key: "routes", Cost: 1}, {Policy: guard, Key: "requests", Cost: 1}},
		guards:     guards,
		running:    running,
		clock:      clock,
		jitter:     rand.Int64N,
		done:       make(chan struct{}),
		gate: gate{
			estimate: estimate,
			floor:    floor,
			line:     queue.NewFair(places.capacity),
			places:   places,
			maxWait:  maxWait,
			reserve:  cfg.Reserve,
		},
	}
	s.gate.lanes.all = set.lanes()
	s.settings.Store(set)
	s.health.Store(sampler)
	s.contextual, _ = cfg.Observer.(ContextObserver)
	s.memory, _ = store.(*limits.Memory)
	s.visits.New = func() any { return s.newVisit() }
	tell(s.features, cfg.Routes)
	return s, nil
}

// run lets time pass for the gate.
func (s *Shedder) run(ctx context.Context) {
	defer close(s.done)
	t := time.NewTicker(TickEvery)
	defer t.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			sampler := s.health.Load()
			pressure, known := sampler.Pressure()
			s.tick(pressure, known && sampler.State() != health.Stale, sampler.PressureOf) // what is stale moves nothing
			if n%int(MomentEvery/TickEvery) == 0 {
				s.remember(pressure, known)
			}
		}
	}
}

// tick lets time pass for the gate once.
func (s *Shedder) tick(pressure float64, known bool, scoped scopedPressure) {
	now := s.clock.now()
	s.mu.Lock()
	a := s.gate.Tick(now, pressure, known, scoped)
	s.unlock()
	s.wake(a.wake)
}

// unlock ends a visit to the gate: it notes whether there is a crowd now and lets the next one in.
func (s *Shedder) unlock() {
	crowded := s.gate.line.Len() > 0 || s.gate.inFlight >= s.gate.room(int(Sheddable)) || s.gate.lanes.shut > 0
	if s.crowded.Load() != crowded {
		s.crowded.Store(crowded)
	}
	s.mu.Unlock()
}

// wake tells each ticket that its wait has ended. The next one is read first: a woken ticket is its owner's again.
func (s *Shedder) wake(w *queue.Waiter) {
	for w != nil {
		t := ticketOf(w)
		w, w.Next = w.Next, nil
		if t.job != nil {
			t.job.wake()
			continue
		}
		t.ready <- struct{}{} // has room for the one signal that a wait ends with
	}
}

// Close ends the shedder: nobody is admitted any more, everybody who waits is told so, and no goroutine is left behind.
// Permits that are out can still be ended. It is safe to call twice.
func (s *Shedder) Close() error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	s.mu.Lock()
	first := !s.closed.Swap(true)
	var a answer
	if first {
		a = s.gate.Empty(reasonClosed)
	}
	s.unlock()
	s.wake(a.wake)
	s.turns.Close()
	s.stop()
	<-s.done
	s.health.Load().Close()
	return nil
}

// current is the configuration in force.
func (s *Shedder) current() *settings { return s.settings.Load() }

// Clients returns the identity settings, defaults not filled in.
func (s *Shedder) Clients() Clients { return s.current().config.Clients }

func (set *settings) route(name string) *route {
	if r := set.routes[name]; r != nil {
		return r
	}
	return set.other
}
