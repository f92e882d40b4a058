package probe

import (
	"context"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/bench/internal/flawed"
	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/scenarios"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/concurrency"
	"github.com/spillway-go/spillway/shed"
)

// Virtual asks the library in virtual time: two machines that share one store. NewVirtual makes one.
type Virtual struct {
	machines [2]*shed.Machine
	open     bool // nothing is in front
	now      time.Duration
}

// Settings is what a server is that keeps the quota of q.
func Settings(q *scenarios.Probe) shed.Config {
	rule := limits.TokenBucket{Capacity: q.Capacity, Refill: limits.PerSecond(q.Refill)}
	return shed.Config{Limits: []shed.Limit{{Name: "each", Rule: rule}}}
}

// NewVirtual makes two servers of the arm.
func NewVirtual(q *scenarios.Probe, arm, flaw string) (*Virtual, error) {
	v := &Virtual{open: arm != "spillway"}
	cfg := Settings(q)
	store, err := limits.NewMemory(limits.MemoryConfig{})
	if err != nil {
		return nil, err
	}
	cfg.Store = store
	if err := flawed.Break(&cfg, flaw); err != nil {
		return nil, err
	}
	for i := range v.machines {
		if v.machines[i], err = shed.NewMachine(cfg, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), 1); err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
	}
	return v, nil
}

// Ask implements Asker. Each call begins a second after the one before has ended.
func (v *Virtual) Ask(_ context.Context, asks []Ask) ([]Answer, error) {
	answers := make([]Answer, len(asks))
	begin := v.now + time.Second
	for i, a := range asks {
		v.now = begin + a.At
		answers[i] = Answer{OK: v.open, Sent: a.At, Done: a.At}
		if v.open {
			continue
		}
		var j shed.Job
		m := v.machines[a.Server]
		m.Admit(v.now, &j, shed.Request{Client: a.Client})
		answers[i].OK = j.State == shed.Granted
		m.Leave(v.now, &j)
		m.Done(v.now, &j, shed.Success)
	}
	return answers, nil
}

// waiters is how many requests the gate turns away in the check of refunds.
const waiters = 5

// Refund checks that what the gate turns away costs no quota: the gate is kept busy, some requests wait in vain, and then
// the whole quota must still be there. It needs to hold the gate, so that it is for virtual time only.
func Refund(s *scenarios.Scenario, flaw string) (judge.Verdict, error) {
	c := check{
		name: "what was turned away costs no quota", plain: "Requests that a client can still make after others of its requests waited in vain, beyond its quota (fewer, below 0).",
		try: "Quota that was taken has to be given back when the request does not run.",
	}
	cfg := Settings(s.Probe)
	cfg.Concurrency = concurrency.Config{Algorithm: concurrency.Fixed, Initial: 1}
	cfg.Queue = shed.Queue{Capacity: waiters, MaxWait: 100 * time.Millisecond}
	store, err := limits.NewMemory(limits.MemoryConfig{})
	if err != nil {
		return judge.Verdict{}, err
	}
	cfg.Store = store
	if err := flawed.Break(&cfg, flaw); err != nil {
		return judge.Verdict{}, err
	}
	m, err := shed.NewMachine(cfg, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), 1)
	if err != nil {
		return judge.Verdict{}, err
	}
	var busy shed.Job
	m.Admit(0, &busy, shed.Request{Client: "other"})
	waiting := make([]shed.Job, waiters)
	for i := range waiting {
		m.Admit(time.Millisecond, &waiting[i], shed.Request{Client: "client"})
	}
	now := time.Duration(0)
	for i := range waiting {
		if waiting[i].State == shed.Standing {
			now = max(now, waiting[i].Until)
			m.TimeUp(waiting[i].Until, &waiting[i])
		}
	}
	m.Done(now, &busy, shed.Success)
	ok := int64(0)
	for range s.Probe.Capacity + beyond {
		var j shed.Job
		m.Admit(now, &j, shed.Request{Client: "client"})
		if j.State == shed.Granted {
			ok++
			m.Done(now, &j, shed.Success)
		}
	}
	return verdict(s, &Target{Arm: "spillway", Mode: "sim"}, &c, result{ok - s.Probe.Capacity, 0, 0}), nil
}
