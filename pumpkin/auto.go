package pumpkin

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// Levels are the thresholds of a signal, with 0 <= Low < High <= 1: at High something is wrong, at Low or below it is well, and in
// between nothing changes.
type Levels struct {
	High float64 `json:"high"`
	Low  float64 `json:"low"`
}

// AutoRule says when automation raises an item, and which. ID, Template and When are required.
type AutoRule struct {
	// ID is the item's.
	ID string
	// Template names the prepared text that it shows; automation has no words of its own.
	Template string
	// When are the levels by signal. One signal at its High is enough to raise; all have to be at their Low to lower.
	When map[string]Levels
	// EnterFor is how long a signal has to be high until an instance wants the item up, ExitFor how long all have to be low until
	// it does no more. Zero means 10 s and 60 s.
	EnterFor, ExitFor time.Duration
	// MinHold is how long the item stays at least; each return within half an hour doubles that, up to half an hour. Zero means
	// 2 min.
	MinHold time.Duration
	// Step is how long half of what the text switches off, and then a quarter, stay off after that. Zero means 30 s.
	Step time.Duration
	// TTL is how long the item lasts when automation stops without a word, 10 s to 24 h. Zero means 5 min.
	TTL time.Duration
}

func (r AutoRule) withDefaults() AutoRule {
	r.EnterFor, r.ExitFor = cmp.Or(r.EnterFor, 10*time.Second), cmp.Or(r.ExitFor, time.Minute)
	r.MinHold, r.Step = cmp.Or(r.MinHold, 2*time.Minute), cmp.Or(r.Step, 30*time.Second)
	r.TTL = cmp.Or(r.TTL, 5*time.Minute)
	return r
}

// validate refuses what could not work, apart from the text.
func (r AutoRule) validate() error {
	if !isName(r.ID) {
		return fmt.Errorf("its ID %q must be 1 to %d letters, digits, '.', '_' or '-', beginning with a letter or digit", r.ID, maxName)
	}
	if len(r.When) == 0 {
		return errors.New("its When names no signal; say which one at which levels")
	}
	for name, l := range r.When {
		if name == "" || !(0 <= l.Low && l.Low < l.High && l.High <= 1) { // written so that NaN is refused
			return fmt.Errorf("its When %q: Low is %g and High %g; it must be 0 <= Low < High <= 1", name, l.Low, l.High)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{{"EnterFor", r.EnterFor, time.Second}, {"ExitFor", r.ExitFor, time.Second}, {"MinHold", r.MinHold, time.Second}, {"Step", r.Step, time.Second}, {"TTL", r.TTL, 10 * time.Second}} {
		if d.value < d.least || d.value > maxTTL {
			return fmt.Errorf("its %s is %v; it must be from %v to %v", d.name, d.value, d.least, maxTTL)
		}
	}
	return nil
}

// Quorum lets instances decide together; redispumpkin.Store is one.
type Quorum interface {
	// Vote makes ballot, which is not empty, that of this instance from now on, and returns those of all instances that live by
	// their names, and which of them this one is. ok is false while that is not known. It returns at once.
	Vote(ballot string) (self string, all map[string]string, ok bool)
}

// AutoConfig is what automation goes by. Rules and Signals are required.
type AutoConfig struct {
	// Rules are at most 8, for automation may hold half of the items.
	Rules []AutoRule
	// Signals returns how this instance is doing, each in [0,1]; it is called every second. What is not there, or no number, is
	// missing, which is not well: an item that is up then stays until its TTL is over.
	Signals func() map[string]float64
	// Quorum are the other instances. Nil means that this one decides alone.
	Quorum Quorum
}

// autoTick is how often automation looks.
const autoTick = time.Second

// afterPerson is how long automation leaves an item alone that a person has ended.
const afterPerson = 30 * time.Minute

// Auto raises and lowers items by what is measured. NewAuto makes it.
type Auto struct {
	p    *Pumpkin
	c    AutoConfig
	stop chan struct{}
	wg   sync.WaitGroup
	once sync.Once

	mu    sync.Mutex
	rules []*autoRule
}

// autoRule is a rule at work.
type autoRule struct {
	AutoRule
	text    Entry // the prepared text
	sensor  sensor
	stair   stair
	votes   tally
	known   bool   // whether votes are those of all
	leads   bool   // whether this instance is the one that writes
	begun   bool   // has looked at what was there before it
	blocked string // why a person's word holds; empty: it does not
	why     string // what was high last
	refused string // why the last write was refused
	retry   time.Time

	raised, lowered uint64
}

// NewAuto raises and lowers items of p from now on, until Close. A person always wins: an item that a person holds, or keeps
// automation from, is left alone, and one that a person ends stays away for half an hour. Close does not lower what is up: that
// ends with its TTL, unless another instance prolongs it. An error says what in c cannot work, or that p has an Auto already.
func NewAuto(p *Pumpkin, c AutoConfig) (*Auto, error) {
	if c.Signals == nil || len(c.Rules) == 0 {
		return nil, errors.New("pumpkin: automation needs Rules and Signals")
	}
	rules, err := checkRules(c.Rules, p.templates, p.current.Load().board.lang)
	if err != nil {
		return nil, fmt.Errorf("pumpkin: automation %w", err)
	}
	a := &Auto{p: p, c: c, rules: rules, stop: make(chan struct{})}
	if !p.auto.CompareAndSwap(nil, a) {
		return nil, errors.New("pumpkin: this one is automated already; give it all rules at once")
	}
	a.wg.Go(a.run)
	return a, nil
}

// CheckAuto returns why rules cannot be those of a Pumpkin made of c, or nil.
func (c Config) CheckAuto(rules []AutoRule) error {
	c = c.withDefaults()
	templates, err := newTemplates(c.Templates, c.DefaultLang)
	if err != nil {
		return err
	}
	_, err = checkRules(rules, templates, c.DefaultLang)
	return err
}

// checkRules makes rules ready for work, or says which of them cannot work and why.
func checkRules(rules []AutoRule, templates map[string]Entry, lang string) (ready []*autoRule, err error) {
	trial := newBoard(newULID(time.Now()), lang, 15, 60)
	for _, r := range rules {
		r = r.withDefaults()
		r.When = maps.Clone(r.When)
		if err := r.validate(); err != nil {
			return nil, fmt.Errorf("%q: %w", r.ID, err)
		}
		text, ok := templates[r.Template]
		if !ok {
			return nil, fmt.Errorf("%q: there is no prepared text %q; there are %s", r.ID, r.Template, strings.Join(slices.Sorted(maps.Keys(templates)), ", "))
		}
		if slices.ContainsFunc(ready, func(o *autoRule) bool { return o.ID == r.ID }) {
			return nil, fmt.Errorf("%q is there twice; give each rule an item of its own", r.ID)
		}
		text = text.clone()
		text.TTL, text.Reason = r.TTL, "trial"
		if trial, err = trial.raise(time.Now(), held{notice: Notice{ID: r.ID}}, text); err != nil {
			return nil, fmt.Errorf("%q: %w", r.ID, err) // all together must fit
		}
		ready = append(ready, &autoRule{
			AutoRule: r, text: text,
			sensor: sensor{enterFor: r.EnterFor, exitFor: r.ExitFor}, stair: stair{minHold: r.MinHold, step: r.Step},
		})
	}
	return ready, nil
}

// Close stops it.
func (a *Auto) Close() {
	a.once.Do(func() { close(a.stop) })
	a.wg.Wait()
	a.p.auto.CompareAndSwap(a, nil)
}

func (a *Auto) run() {
	ticker := time.NewTicker(autoTick)
	defer ticker.Stop()
	for {
		select {
		case <-a.stop:
			return
		case <-ticker.C:
			a.tick(time.Now())
		}
	}
}

// tick is one look: measure, vote, and, where this instance is the one that writes, write.
func (a *Auto) tick(now time.Time) {
	signals := a.c.Signals()
	a.mu.Lock()
	for _, r := range a.rules {
		r.measure(now, signals)
	}
	a.count()
	var acts []func()
	state := a.p.State()
	for _, r := range a.rules {
		acts = append(acts, r.decide(now, a.p, state))
	}
	a.mu.Unlock()
	for _, act := range acts { // a write may wait for the shared store
		if act != nil {
			act()
		}
	}
}

// measure holds the signals against the levels.
func (r *autoRule) measure(now time.Time, signals map[string]float64) {
	high, calm, missing := false, true, false
	for _, name := range slices.Sorted(maps.Keys(r.When)) {
		level, ok := signals[name]
		if !ok || math.IsNaN(level) {
			missing = true
			continue
		}
		if levels := r.When[name]; level >= levels.High {
			if !high {
				r.why = fmt.Sprintf("%s is %.3g, high is %.3g", name, level, levels.High)
			}
			high = true
		} else if level > levels.Low {
			calm = false
		}
	}
	r.sensor.sense(now, high, calm, missing)
}

// count asks the others.
func (a *Auto) count() {
	self, all, known := "", map[string]string(nil), true
	if a.c.Quorum != nil {
		var ballot []string
		for _, r := range a.rules {
			ballot = append(ballot, r.ID+"="+string(r.sensor.vote()))
		}
		self, all, known = a.c.Quorum.Vote(strings.Join(ballot, " "))
	}
	leads := a.c.Quorum == nil || !known || self == slices.Min(slices.Collect(maps.Keys(all)))
	for _, r := range a.rules {
		votes := []byte{r.sensor.vote()}
		for name, ballot := range all {
			if name != self {
				votes = append(votes, voteIn(ballot, r.ID))
			}
		}
		r.votes, r.known, r.leads = count(votes), known, leads
	}
}

// voteIn finds the vote for a rule in somebody else's ballot. One that has no such rule sees nothing of it.
func voteIn(ballot, id string) byte {
	for _, v := range strings.Fields(ballot) {
		if name, vote, ok := strings.Cut(v, "="); ok && name == id && len(vote) == 1 {
			return vote[0]
		}
	}
	return voteBlind
}
