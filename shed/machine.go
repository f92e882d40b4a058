package shed

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/queue"
)

// Machine decides exactly as a Shedder does, with the same code, but in the time that its driver says: it has no goroutine,
// never blocks and knows no clock. It is for simulations, which drive hours in seconds and get the same decisions from the
// same seed. Where a Shedder would let its caller wait, a Machine says until when, and the driver calls it again then.
//
// NewMachine makes one. It is for one goroutine at a time. All times count from the start and must not run backwards. There
// is no health sampler: Tick is told the pressure.
type Machine struct {
	s     *Shedder
	now   time.Duration
	scope map[string]reading   // what RoutePressure has said
	lines map[queue.Key][]*Job // those who are parked, in the order of their turns
	woken []*Job
	next  int // of woken, the first that Woken has not returned yet
}

// State says how far a Job has come.
type State uint8

// The states of a Job. The zero value is not at a Machine.
const (
	Outside    State = iota // not admitted yet, or ended
	Parked                  // waits for the turn that a delaying rule gave it, until Job.Until, which may come nearer
	Standing                // waits in the line of the gate, at most until Job.Until
	Granted                 // runs, until Machine.Done
	TurnedAway              // was refused; Job.Rejection says why
)

// Job is one request at a Machine, and its permit afterwards. The zero value is ready for use, and a Job can be used again
// once it has ended. It must not be copied in between.
type Job struct {
	// Owner is whatever the driver needs to find its own side of the job again.
	Owner any
	// Deadline is the caller's own, on the Machine's clock; 0 means that it has none.
	Deadline time.Duration

	// State is where the job is, Until how long it waits there, and Rejection why it was turned away.
	State     State
	Until     time.Duration
	Rejection *Rejection

	machine  *Machine
	visit    visit
	decision limits.Decision
	permit   Permit
	parked   time.Duration // when it began to wait for its turn
	line     queue.Key     // in which line of turns it is parked
	step     time.Duration // how much sooner those behind may start if it leaves
}

// NewMachine makes a Machine whose clock stands at start. Retry-After of refusals by load is drawn with seed. The settings
// of health are not used. Errors are those of New.
func NewMachine(cfg Config, start time.Time, seed uint64) (*Machine, error) {
	cfg.Health.Off = true
	m := new(Machine)
	s, err := build(cfg, clock{start: start, virtual: &m.now})
	if err != nil {
		return nil, err
	}
	s.jitter = rand.New(rand.NewPCG(seed, 0)).Int64N
	m.s = s
	return m, nil
}

// Admit is Shedder.Admit up to where it would block: afterwards j is Granted or TurnedAway, or it waits (Parked, Standing).
// Who waits is ended by TimeUp when Job.Until has come, by Leave when its caller goes away, or by Woken.
func (m *Machine) Admit(now time.Duration, j *Job, req Request) {
	m.now = now
	s := m.s
	route := s.current().route(req.Route)
	j.machine, j.Rejection, j.permit = m, nil, Permit{}
	if err := req.check(); err != nil {
		j.end(err)
		return
	}
	if route.Exempt || req.Exempt {
		j.end(s.admitExempt(context.Background(), route))
		return
	}
	if err := s.switchedOff(context.Background(), route, req.Client); err != nil {
		j.end(err)
		return
	}
	v := &j.visit
	if v.s == nil {
		v.s, v.job, v.Owner = s, j, &v.ticket
	}
	v.begin(context.Background(), route, &req)
	v.hard = sooner(v.hard, j.Deadline)
	j.decision = limits.Decision{}
	var turn *limits.Verdict
	err := v.look()
	if err == nil {
		turn, err = v.arrive(&req, &j.decision)
	}
	switch {
	case err != nil:
		j.end(err)
	case turn != nil:
		j.park(now+turn.Delay, turn)
	default:
		m.enter(j)
	}
}

// park lets j wait for its turn, unless its deadline comes before.
func (j *Job) park(until time.Duration, turn *limits.Verdict) {
	if hard := j.visit.hard; hard > 0 && hard <= until {
		j.visit.giveBack(&j.decision)
		j.end(j.visit.gone(context.DeadlineExceeded))
		return
	}
	m := j.machine
	j.State, j.Until, j.parked = Parked, until, m.now
	j.line = queue.Key{Policy: turn.Policy.Name(), Client: turn.Key}
	j.step = step(turn.Policy, turn.Cost)
	if m.lines == nil {
		m.lines = make(map[queue.Key][]*Job)
	}
	line := m.lines[j.line]
	at, _ := slices.BinarySearchFunc(line, until, func(o *Job, until time.Duration) int {
		if o.Until <= until {
			return -1 // behind those who have the same turn
		}
		return 1
	})
	m.lines[j.line] = slices.Insert(line, at, j)
}

// unpark takes j out of its line of turns. If it gives its turn on, everybody behind moves up.
func (j *Job) unpark(givesOn bool) {
	m := j.machine
	line := m.lines[j.line]
	at := slices.Index(line, j)
	line = slices.Delete(line, at, at+1)
	if m.lines[j.line] = line; len(line) == 0 {
		delete(m.lines, j.line)
	}
	if !givesOn {
		return
	}
	for _, behind := range line[at:] {
		behind.Until = max(behind.Until-j.step, m.now)
		m.woken = append(m.woken, behind)
	}
}

// enter takes j to the gate.
func (m *Machine) enter(j *Job) {
	v := &j.visit
	waiting, err := v.offer(m.now)
	switch {
	case err != nil:
		v.giveBack(&j.decision)
		j.end(err)
	case waiting:
		j.State, j.Until = Standing, v.Deadline
	default:
		j.grant(v.permit())
	}
}

func (j *Job) grant(p Permit) {
	p.charged(&j.decision)
	j.State, j.permit = Granted, p
}

// end ends a job without a slot: refused, or let through where err is nil.
func (j *Job) end(err error) {
	if err == nil {
		j.State = Granted
		return
	}
	j.State = TurnedAway
	j.Rejection, _ = err.(*Rejection) // none if the caller has gone: there is nobody to tell a reason
}

// wake takes the answer that the gate has put into the ticket.
func (j *Job) wake() {
	m, v := j.machine, &j.visit
	p, err := v.answered(v.Arrived)
	if err != nil {
		v.giveBack(&j.decision)
		j.end(err)
	} else {
		j.grant(p)
	}
	m.woken = append(m.woken, j)
}

// TimeUp tells that Job.Until has come for a job that waits: a parked one has its turn and goes on to the gate, one that
// stands in the line is turned away. Any other job, and one whose time has not come, is left alone.
func (m *Machine) TimeUp(now time.Duration, j *Job) {
	if now < j.Until {
		return
	}
	m.now = now
	switch j.State {
	case Parked:
		j.unpark(false)
		j.visit.wait += now - j.parked
		m.enter(j)
	case Standing:
		v := &j.visit
		if v.stepOut() {
			v.timeIsUp()
			_, err := v.answered(v.Arrived)
			v.giveBack(&j.decision)
			j.end(err)
		}
	}
}

// Leave tells that the caller of a job that waits has gone away. Its place is free at once, what it was charged is given
// back, and the job is TurnedAway without a Rejection. Those who are parked behind it move up: Woken returns them, still Parked, with
// the Until that they have now.
func (m *Machine) Leave(now time.Duration, j *Job) {
	m.now = now
	switch j.State {
	case Standing:
		j.visit.stepOut()
	case Parked:
		j.unpark(true)
	default:
		return
	}
	j.visit.giveBack(&j.decision)
	j.end(j.visit.gone(context.Canceled))
}

// Done ends a Granted job as Permit.Done does.
func (m *Machine) Done(now time.Duration, j *Job, outcome Outcome) {
	m.now = now
	if j.State == Granted {
		j.State = Outside
		j.permit.Done(outcome)
	}
}

// Tick lets time pass for the estimate; it must be called every TickEvery. pressure and known are what health says.
func (m *Machine) Tick(now time.Duration, pressure float64, known bool) {
	m.now = now
	m.s.tick(pressure, known, m.scoped)
}

// RoutePressure is what health says from now on about what one route needs; Tick takes it in.
func (m *Machine) RoutePressure(route string, pressure float64, state health.State) {
	if m.scope == nil {
		m.scope = make(map[string]reading)
	}
	m.scope[route] = reading{pressure, state}
}

// reading is a pressure and what it rests on.
type reading struct {
	pressure float64
	state    health.State
}

func (m *Machine) scoped(route string) (float64, health.State) {
	if r, ok := m.scope[route]; ok {
		return r.pressure, r.state
	}
	return 0, health.Absent
}

// Woken returns the next job whose wait has ended, Granted or TurnedAway, or whose turn comes sooner, or nil. The driver asks after each call until
// there is none.
func (m *Machine) Woken() *Job {
	if m.next == len(m.woken) {
		m.woken, m.next = m.woken[:0], 0
		return nil
	}
	m.next++
	return m.woken[m.next-1]
}

// Status is Shedder.Status; it says nothing about health.
func (m *Machine) Status() Status { return m.s.Status() }
