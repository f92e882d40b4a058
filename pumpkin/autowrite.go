package pumpkin

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// autoActor is automation's name in the log and the audit trail.
const autoActor = "auto"

// retryAfter is how long a refused write is not tried again.
const retryAfter = 30 * time.Second

// decide moves the rule on and returns what has to be written, if anything.
func (r *autoRule) decide(now time.Time, p *Pumpkin, s State) func() {
	item, there := r.find(s)
	if r.blocked = r.block(now, s); r.blocked != "" {
		r.stair.reset()
		return nil
	}
	if !r.leads || !r.known || !r.begun {
		r.begun = true
		r.stair.follow(now, there, r.shareOf(item, there))
	}
	if !r.leads {
		return nil
	}
	votes := r.votes
	if !r.known {
		// Alone, this instance must not speak for all: it raises nothing and lowers nothing. It only keeps what is up from running
		// out where it sees the reason for it.
		if !there || !r.sensor.up || r.sensor.blind || item.ExpiresAt.Sub(now) >= r.TTL/2 {
			return nil
		}
		e := r.entry()
		e.Reason = r.reason(r.stair.phase, votes)
		return func() { r.write(p, "auto_prolong", e, false, 0) }
	}
	if !there && r.stair.phase != down && !votes.seen { // its time ran out while nobody knew how things were
		r.stair.follow(now, false, 0)
	}
	was := r.stair.phase
	raised := r.stair.move(now, votes)
	if r.stair.phase == down {
		if !there {
			return nil
		}
		return func() { r.lower(p) }
	}
	e := r.entry()
	same := there && maps.Equal(item.Features, e.Features)
	if same && (item.ExpiresAt.Sub(now) >= r.TTL/2 || !votes.seen) || now.Before(r.retry) && !raised {
		return nil
	}
	action := "auto_prolong"
	switch {
	case raised:
		action = "auto_raise"
	case r.stair.phase == recovering && !same:
		action = "auto_step"
	}
	e.Reason = r.reason(was, votes)
	latched, hold := r.stair.latched, r.stair.hold
	return func() { r.write(p, action, e, latched, hold) }
}

// find returns the rule's item, if it is automation's.
func (r *autoRule) find(s State) (Item, bool) {
	i := slices.IndexFunc(s.Items, func(it Item) bool { return it.ID == r.ID && it.Origin == Automatic })
	if i < 0 {
		return Item{}, false
	}
	return s.Items[i], true
}

// block returns why a person's word keeps automation from the item.
func (r *autoRule) block(now time.Time, s State) string {
	for _, it := range s.Items {
		if it.ID == r.ID && it.Origin == Manual {
			return "manual"
		}
	}
	for _, h := range s.Holds {
		if (h.ID == r.ID || h.ID == Everything) && now.Before(h.Until) {
			return "force_off"
		}
	}
	for _, c := range s.Cleared {
		if c.ID == r.ID && !c.Auto && now.Sub(c.ClearedAt) < afterPerson {
			return "cleared"
		}
	}
	return ""
}

// entry is the prepared text at the height of the stair.
func (r *autoRule) entry() Entry {
	e := r.text.clone()
	for name, f := range e.Features {
		e.Features[name] = Feature{Off: f.Off * r.stair.share}
	}
	if e.Features == nil {
		e.Features = map[string]Feature{}
	}
	return e
}

// shareOf is how much of the text the item has switched off.
func (r *autoRule) shareOf(item Item, there bool) float64 {
	if !there {
		return 0
	}
	for name, f := range r.text.Features {
		if f.Off > 0 {
			return min(1, item.Features[name].Off/f.Off)
		}
	}
	return 1
}

// reason says in words why.
func (r *autoRule) reason(was phase, v tally) string {
	text := "by automation"
	switch {
	case r.stair.phase == recovering:
		text = fmt.Sprintf("by automation: comes down, %g %% left", 100*r.stair.share)
	case r.why != "":
		text = "by automation: " + r.why
	}
	if v.live > 1 {
		text += fmt.Sprintf("; %d of %d instances, %d needed", v.up, v.live, v.need)
	}
	if was == recovering && r.stair.phase == up {
		text += "; it came back while coming down"
	}
	if checkText("reason", text, maxReason) != nil {
		text = "by automation"
	}
	return text
}

// write raises, steps or prolongs the item.
func (r *autoRule) write(p *Pumpkin, action string, e Entry, latched bool, hold time.Duration) {
	_, err := p.put(write{actor: autoActor, id: r.ID, origin: Automatic, action: action}, e)
	r.note(p, err, func() {
		if action == "auto_raise" {
			r.raised++
		}
	})
	if err != nil || action == "auto_prolong" {
		return
	}
	attrs := []any{slog.String("id", r.ID), slog.String("template", r.Template), slog.String("reason", e.Reason)}
	switch {
	case action == "auto_step":
		p.log.Info("pumpkin: automation brings an item down a step", append(attrs, slog.Any("features", e.Features))...)
	case latched:
		p.log.Error("pumpkin: automation has raised an item for the fourth time in half an hour and leaves it up; a person has to look, and to delete it when it is mended", attrs...)
	default:
		p.log.Warn("pumpkin: automation raises an item", append(attrs, slog.Duration("for_at_least", hold))...)
	}
}

// lower ends the item.
func (r *autoRule) lower(p *Pumpkin) {
	found, err := p.clear(write{actor: autoActor, id: r.ID, origin: Automatic, action: "auto_lower"})
	r.note(p, err, func() {
		if found {
			r.lowered++
		}
	})
	if found {
		p.log.Warn("pumpkin: automation ends an item", slog.String("id", r.ID), slog.String("template", r.Template))
	}
}

// note remembers what was refused, and says it once. What was not is counted.
func (r *autoRule) note(p *Pumpkin, err error, count func()) {
	a := p.auto.Load()
	if a == nil {
		return
	}
	refusal, _ := errors.AsType[*Refusal](err)
	if refusal != nil && refusal.Reason == Closed {
		return
	}
	a.mu.Lock()
	was := r.refused
	if r.refused = ""; err != nil {
		r.refused, r.retry = err.Error(), time.Now().Add(retryAfter)
	} else {
		count()
	}
	is := r.refused
	a.mu.Unlock()
	if is != "" && is != was {
		p.log.Error("pumpkin: automation cannot raise an item", slog.String("id", r.ID), slog.String("error", is))
	}
}

// AutoStatus is how a rule stands.
type AutoStatus struct {
	ID string `json:"id"`
	// State is ok, pending (this instance sees something high), on, clearing (on, and no longer wanted), recovering, or, where a
	// person's word holds: manual, force_off or cleared.
	State string `json:"state"`
	// Share is how much of what the text switches off is off.
	Share float64 `json:"share"`
	// Latched says that it went up too often and waits for a person.
	Latched bool `json:"latched"`
	// Vote says that this instance wants the item up; Up of Instances do, Needed have to. Known is false while the others cannot
	// be asked: then nothing new is raised.
	Vote      bool `json:"vote"`
	Up        int  `json:"up"`
	Needed    int  `json:"needed"`
	Instances int  `json:"instances"`
	Known     bool `json:"known"`
	// Blind says that a signal is missing here.
	Blind bool `json:"blind,omitempty"`
	// Leads says that this instance is the one that writes for all.
	Leads bool `json:"leads"`
	// Refused is why the last write was refused, empty if it was not.
	Refused string `json:"refused,omitempty"`
	// Raised and Lowered count what this instance has done.
	Raised  uint64 `json:"raised"`
	Lowered uint64 `json:"lowered"`
}

// Status returns how each rule stands, in the order of the configuration.
func (a *Auto) Status() []AutoStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]AutoStatus, len(a.rules))
	for i, r := range a.rules {
		all[i] = AutoStatus{
			ID: r.ID, State: r.state(), Share: r.stair.share, Latched: r.stair.latched,
			Vote: r.sensor.up, Up: r.votes.up, Needed: r.votes.need, Instances: r.votes.live, Known: r.known,
			Blind: r.sensor.blind, Leads: r.leads, Refused: r.refused, Raised: r.raised, Lowered: r.lowered,
		}
	}
	return all
}

func (r *autoRule) state() string {
	switch {
	case r.blocked != "":
		return r.blocked
	case r.stair.phase == recovering:
		return "recovering"
	case r.stair.phase == up && !r.votes.want:
		return "clearing"
	case r.stair.phase == up:
		return "on"
	case r.sensor.up || !r.sensor.since.IsZero():
		return "pending"
	}
	return "ok"
}
