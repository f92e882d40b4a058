package shed

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits/concurrency"
)

// Reload puts cfg in the place of the configuration in force, whole or not at all, and returns what changed, one line each;
// nothing when cfg says the same. Store, Features, Observer and the functions that health asks stay those that New was given,
// whatever cfg says: they are the program's, and only a restart changes them.
//
// Nothing is lost on the way. Who waits goes on waiting as it was promised, what runs goes on running and is counted under
// the same limits, and counters go on. Limits are known by their names: one that did not change keeps the state of all its
// balances, one that did keeps what was used, clamped to what it allows now, from the next decision of each key on. The state of a
// limit that is gone lives on in the store until it is full again. The concurrency limit stays where it is, within the new bounds.
//
// An error is one of New's, of somebody who follows (Follow), or ErrClosed, and then nothing has changed. Either way the outcome
// shows in Status.
func (s *Shedder) Reload(cfg Config) (changes []string, err error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if changes, err = s.reload(cfg); err != nil {
		s.reloads.failed(err)
		return nil, err
	}
	s.reloads.applied(changes)
	return changes, nil
}

// ReloadFailed notes in Status that there was a new configuration that could not even be read, or that somebody else refused.
func (s *Shedder) ReloadFailed(err error) { s.reloads.failed(err) }

// Follow lets prepare look at each configuration to come, for who keeps something made of the present one. Prepare says what
// is wrong with it, and then it does not come into force, or returns what to do once it is in force. Prepare may be called without
// its answer being used, and must not call Reload. It is first asked here, about the present configuration; what it says against
// that is the error, and then it is not asked again.
func (s *Shedder) Follow(prepare func(cfg Config) (commit func(), err error)) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	commit, err := prepare(s.current().config)
	if err != nil {
		return err
	}
	if commit != nil {
		commit()
	}
	s.followers = append(s.followers, prepare)
	return nil
}

func (s *Shedder) reload(cfg Config) ([]string, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	old := s.current()
	cfg.Store, cfg.Features, cfg.Observer = old.config.Store, old.config.Features, old.config.Observer
	next, err := compile(cfg)
	if err != nil {
		return nil, err
	}
	places, maxWait, err := cfg.Queue.resolve()
	if err != nil {
		return nil, err
	}
	if _, err := concurrency.New(cfg.Concurrency); err != nil {
		return nil, fmt.Errorf("shed: %w", err)
	}
	var sampler *health.Sampler
	if len(differences("health", old.config.Health, cfg.Health)) > 0 {
		if sampler, err = health.New(cfg.Health.Warmed(s.clock.now())); err != nil {
			return nil, fmt.Errorf("shed: %w", err)
		}
	}
	commits, err := s.prepare(cfg)
	if err != nil {
		if sampler != nil {
			sampler.Close()
		}
		return nil, err
	}
	next.keepTallies(old)
	s.swap(next, places, maxWait)
	tell(s.features, cfg.Routes)
	if sampler != nil {
		sampler.Start()
		s.health.Swap(sampler).Close()
	}
	for _, commit := range commits {
		commit()
	}
	return changes(old.config, cfg), nil
}

// prepare asks all who follow.
func (s *Shedder) prepare(cfg Config) ([]func(), error) {
	commits := make([]func(), 0, len(s.followers))
	for _, prepare := range s.followers {
		commit, err := prepare(cfg)
		if err != nil {
			return nil, fmt.Errorf("shed: %w", err)
		}
		if commit != nil {
			commits = append(commits, commit)
		}
	}
	return commits, nil
}

// keepTallies lets limits go on counting where their namesakes were.
func (set *settings) keepTallies(old *settings) {
	for _, r := range set.rules {
		if i := slices.IndexFunc(old.rules, func(o *rule) bool { return o.Name == r.Name }); i >= 0 {
			r.tally = old.rules[i].tally
		}
	}
}

// swap is the moment at which the new configuration comes into force. There may be more room now, so those who wait are asked
// whether it is their turn.
func (s *Shedder) swap(next *settings, places places, maxWait time.Duration) {
	now := s.clock.now()
	s.mu.Lock()
	s.keepBudgets(next)
	g := &s.gate
	_ = g.estimate.Reconfigure(next.config.Concurrency) // New has found nothing wrong with it
	g.floor, _ = g.estimate.Bounds()
	g.reserve = next.config.Reserve
	g.change.reload = true
	g.noteLimit(now)
	g.places, g.maxWait = places, maxWait
	g.fit()
	next.keepLanes(s.current())
	g.lanes.replace(next.lanes())
	s.settings.Store(next)
	woken := g.settle(now)
	s.unlock()
	s.wake(woken)
}

// keepBudgets lets long-lived routes go on with what runs on their namesakes. A budget whose route is gone, or is not
// long-lived any more, is remembered while something runs on it: should the route come back it is still counted.
func (s *Shedder) keepBudgets(next *settings) {
	if s.budgets == nil {
		s.budgets = make(map[string]*budget)
	}
	for name, r := range s.current().routes {
		if r.budget != nil {
			s.budgets[name] = r.budget
		}
	}
	for name, r := range next.routes {
		if kept := s.budgets[name]; r.budget != nil && kept != nil {
			kept.max = r.budget.max
			r.budget = kept
		}
	}
	maps.DeleteFunc(s.budgets, func(_ string, b *budget) bool { return b.inUse == 0 })
}

// keepLanes lets routes go on with what is known about their namesakes.
func (set *settings) keepLanes(old *settings) {
	keep := func(next, old *route) {
		if next.lane != nil && old.lane != nil {
			old.lane.scoped = next.lane.scoped
			if !old.lane.scoped {
				old.lane.cap = concurrency.Cap{}
			}
			next.lane = old.lane
		}
	}
	for name, r := range set.routes {
		if was := old.routes[name]; was != nil {
			keep(r, was)
		}
	}
	keep(set.other, old.other)
}

// ReloadStatus tells what became of new configurations, since New.
type ReloadStatus struct {
	// Applied and Failed count them; one that says the same as the last counts as applied.
	Applied int64 `json:"applied"`
	Failed  int64 `json:"failed"`
	// Last is when the last one came, zero if none has, and OK whether it is in force. Error is what was wrong with it, and
	// Changes what it changed.
	Last    time.Time `json:"last,omitzero"`
	OK      bool      `json:"ok"`
	Error   string    `json:"error,omitempty"`
	Changes []string  `json:"changes,omitempty"`
	// Since is when the configuration in force was put there.
	Since time.Time `json:"since"`
}

// reloads keeps the ReloadStatus. Its lock is held for copies only.
type reloads struct {
	mu     sync.Mutex
	status ReloadStatus
}

func (r *reloads) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := &r.status
	st.Failed++
	st.Last, st.OK, st.Error, st.Changes = time.Now(), false, err.Error(), nil
}

func (r *reloads) applied(changes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := &r.status
	st.Applied++
	st.Last, st.OK, st.Error, st.Changes = time.Now(), true, "", slices.Clone(changes)
	st.Since = st.Last
}

func (r *reloads) read() ReloadStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := r.status
	st.Changes = slices.Clone(st.Changes)
	return st
}
