package shed

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/concurrency"
	"github.com/spillway-go/spillway/queue"
)

// Status is the state of a Shedder at one moment, for the debug view, the metrics and the person on call. Counters count
// since New. It holds no client's name or key, only hashes.
type Status struct {
	// Explain says why.
	Explain Explanation `json:"explain"`
	// Limit is how many may run at once now; Estimate is what the algorithm alone would allow.
	Limit    int `json:"limit"`
	Estimate int `json:"estimate"`
	// Reserved is how many of the limit only the critical priorities may use.
	Reserved int `json:"reserved,omitempty"`
	// InFlight is how many run under the limit, Waiting how many stand in its line, Parked how many wait for the turn that
	// a delaying rule gave them.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`
	Parked   int `json:"parked"`
	// QueueCapacity and QueueMaxWait bound the line.
	QueueCapacity int      `json:"queue_capacity"`
	QueueMaxWait  Duration `json:"queue_max_wait"`
	// Line tells who stands in it.
	Line LineStatus `json:"line"`
	// Latency is what successful work takes typically, waiting excluded.
	Latency Duration `json:"latency"`

	Concurrency concurrency.Status `json:"concurrency"`
	Health      health.Status      `json:"health"`

	// Admitted, Refused (by reason), Exempt and Gone (the caller left before the answer) add up to all requests that were
	// answered; Finished counts ended permits by outcome.
	Admitted int64             `json:"admitted"`
	Refused  map[Reason]int64  `json:"refused"`
	Exempt   int64             `json:"exempt"`
	Gone     int64             `json:"gone"`
	Finished map[string]int64  `json:"finished"`
	Rules    []RuleStatus      `json:"rules"`
	Budgets  []LongLivedStatus `json:"long_lived,omitempty"`
	// Shadow says that nothing is refused, see Config.Shadow. WouldRefuse counts, by reason, the Admitted that would have been
	// refused were they, their routes or all, not shadows; Beyond is how many of them run now, outside the limit.
	Shadow      bool             `json:"shadow,omitempty"`
	WouldRefuse map[Reason]int64 `json:"would_refuse,omitempty"`
	Beyond      int              `json:"beyond,omitempty"`
	// Routes are those under the limit; empty without configured routes.
	Routes []RouteStatus `json:"routes,omitempty"`
	// Streams is how many permits were detached: streams on routes without a budget of their own.
	Streams int `json:"streams"`
	// Answers is what clients are told beside the decisions.
	Answers AnswersStatus `json:"answers"`
	// Reloads tells what became of new configurations.
	Reloads ReloadStatus `json:"reloads"`
	// Store tells how a store outside of the process is doing; nil if there is none, or it does not tell.
	Store *limits.Report `json:"store,omitempty"`
	// Memory tells how full a store in this process is; nil if it is another, or does not tell.
	Memory *limits.Stats `json:"memory,omitempty"`
	// BodiesCut counts requests that ran and whose long body then came too slowly. Those that did not get so far are among the Refused.
	BodiesCut int64 `json:"bodies_cut,omitempty"`
	// RefundErrors counts refunds that the store could not make.
	RefundErrors int64 `json:"refund_errors,omitempty"`
}

// AnswersStatus is Config.Answers as the middleware has it, which may hide more by a configuration of its own.
type AnswersStatus struct {
	// RateLimit says that responses tell what is left of quotas, HTML that browsers are refused with a page.
	RateLimit bool `json:"rate_limit"`
	HTML      bool `json:"html"`
	// Legacy names the older fields that are sent too, or is "none".
	Legacy string `json:"legacy"`
}

// RuleStatus counts what one rule decided.
type RuleStatus struct {
	Name string `json:"name"`
	Rule string `json:"rule"`
	// Admitted includes the Delayed.
	Admitted int64 `json:"admitted"`
	Delayed  int64 `json:"delayed"`
	Refused  int64 `json:"refused"`
	// OverSoft counts the Admitted that went over the soft rate of a burst.
	OverSoft int64 `json:"over_soft,omitempty"`
	// Shadow says that the limit does not act, and WouldRefuse counts what it would have refused.
	Shadow      bool  `json:"shadow,omitempty"`
	WouldRefuse int64 `json:"would_refuse,omitempty"`
	// Units is how much a limit has charged that does not count requests, and Paced how often something had to wait for it. Settled
	// is what was given back because the work came to less: requests in their cost, other units in theirs.
	Units   int64 `json:"units,omitempty"`
	Paced   int64 `json:"paced,omitempty"`
	Settled int64 `json:"settled,omitempty"`
	// Unit is what the limit counts, if not requests; Plans are the rules of plans.
	Unit  string            `json:"unit,omitempty"`
	Plans map[string]string `json:"plans,omitempty"`
	// OnFailure is the limit's own choice for when the store cannot decide, and Strict that it must never be exceeded.
	OnFailure string `json:"on_failure,omitempty"`
	Strict    bool   `json:"strict,omitempty"`
	// Sharing is the limit's own choice of how instances share it.
	Sharing string `json:"sharing,omitempty"`
	// SubBuckets is into how many parts the limit's balance is split in a shared store.
	SubBuckets int `json:"sub_buckets,omitempty"`
}

// LongLivedStatus is the budget of one long-lived route.
type LongLivedStatus struct {
	Route string `json:"route"`
	InUse int    `json:"in_use"`
	Max   int    `json:"max"`
}

// RouteStatus tells how much of one route runs.
type RouteStatus struct {
	// Route is the route's name, empty for the default route.
	Route    string `json:"route"`
	InFlight int    `json:"in_flight"`
	// Usual is how many run on average while all is well, and UsualLatency how long they take.
	Usual        float64  `json:"usual"`
	UsualLatency Duration `json:"usual_latency"`
	// Bound is how many may run at once while the route is narrowed, 0 while it is not: because it is Slow, its work takes far
	// longer than usual, or because of HealthCap, which follows the health of what the route needs (0: none).
	Bound     int  `json:"bound,omitempty"`
	Slow      bool `json:"slow,omitempty"`
	HealthCap int  `json:"health_cap,omitempty"`
}

// Duration is a time.Duration that reads as "20ms" in JSON.
type Duration time.Duration

// MarshalText returns the duration as time.Duration prints it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Status returns the state of now.
func (s *Shedder) Status() Status {
	st := Status{
		Parked:   s.turns.Len(),
		Health:   s.health.Load().Status(),
		Line:     LineStatus{Waiting: make(map[string]int, 4)},
		Finished: make(map[string]int64, len(s.finished)),
	}
	st.Reloads = s.reloads.read()
	if r, ok := s.store.(limits.Reporter); ok {
		report := r.Report()
		st.Store = &report
	}
	if m, ok := s.store.(*limits.Memory); ok {
		stats := m.Stats()
		st.Memory = &stats
	}
	s.counts.report(&st)
	set := s.current()
	st.Shadow = set.config.Shadow
	told := set.config.Answers
	st.Answers = AnswersStatus{RateLimit: !told.HideRateLimit, HTML: !told.NoHTML, Legacy: cmp.Or(told.Legacy, "none")}
	for _, r := range set.rules {
		st.Rules = append(st.Rules, r.status())
	}
	st.Line.Clients = s.pseudonyms.clients(s.readGate(&st, set)) // hashed after the lock is released
	st.explain()
	return st
}

// readGate reads what is guarded by the lock, and returns the clients with the most waiters.
func (s *Shedder) readGate(st *Status, set *settings) []queue.Backlog {
	now := s.clock.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &s.gate
	st.Admitted = g.granted
	for o, n := range s.finished {
		st.Finished[Outcome(o).String()] = n
	}
	st.Limit, st.Estimate, st.InFlight = g.limit(), g.estimate.Limit(), g.inFlight
	st.Waiting, st.QueueCapacity, st.QueueMaxWait = g.line.Len(), g.line.Cap(), Duration(g.maxWait)
	st.Latency, st.Concurrency = Duration(g.latency.typical()), g.estimate.Status()
	st.Streams, st.Beyond = g.streams.inUse, g.beyond.inUse
	for _, r := range set.config.Routes {
		if b := set.routes[r.Name].budget; b != nil {
			st.Budgets = append(st.Budgets, LongLivedStatus{Route: r.Name, InUse: b.inUse, Max: b.max})
		}
	}
	st.Reserved = st.Limit - g.room(int(Sheddable))
	st.Explain.Change = g.change.status(now)
	for _, l := range g.lanes.all {
		st.Routes = append(st.Routes, l.status())
	}
	return g.readLine(now, &st.Line)
}

func (r *rule) status() RuleStatus {
	st := RuleStatus{
		Name: r.Name, Rule: r.policy.Rule().String(), Shadow: r.Shadow, Unit: r.Unit,
		Admitted: r.admitted.Load(), Delayed: r.delayed.Load(), Refused: r.refused.Load(),
		OverSoft: r.overSoft.Load(), WouldRefuse: r.shadowed.Load(),
		Units: r.units.Load(), Paced: r.paced.Load(), Settled: r.settled.Load(),
	}
	st.SubBuckets = r.SubBuckets
	if st.Strict = r.Strict; r.OnFailure != limits.AsTheStore {
		st.OnFailure = r.OnFailure.String()
	}
	if r.Sharing != limits.SharedAsTheStore {
		st.Sharing = r.Sharing.String()
	}
	for plan, policy := range r.plans {
		if st.Plans == nil {
			st.Plans = make(map[string]string, len(r.plans))
		}
		st.Plans[plan] = policy.Rule().String()
	}
	return st
}

// counts counts decisions; every field is safe to use without a lock.
type counts struct {
	delayed, exempt, gone, cut, refundErrors atomic.Int64

	refused [len(reasons)]atomic.Int64
	would   [len(reasons)]atomic.Int64
}

// reasons lists all words, so that counters by reason are an array.
var reasons = [...]Reason{
	OverLimit, CostTooLarge, InFlight, NoIdentity, FeatureOff, Overloaded, QueueFull, WaitExpired, Displaced, Deadline,
	StoreUnavailable, BodyTooSlow,
}

func (c *counts) refuse(reason Reason) { count(&c.refused, reason) }

func (c *counts) wouldRefuse(reason Reason) { count(&c.would, reason) }

func count(by *[len(reasons)]atomic.Int64, reason Reason) {
	for i, r := range reasons {
		if r == reason {
			by[i].Add(1)
			return
		}
	}
}

func (c *counts) report(st *Status) {
	st.Exempt, st.Gone = c.exempt.Load(), c.gone.Load()
	st.BodiesCut, st.RefundErrors = c.cut.Load(), c.refundErrors.Load()
	st.Refused = make(map[Reason]int64)
	for i, r := range reasons {
		if n := c.refused[i].Load(); n > 0 {
			st.Refused[r] = n
		}
		if n := c.would[i].Load(); n > 0 {
			if st.WouldRefuse == nil {
				st.WouldRefuse = make(map[Reason]int64)
			}
			st.WouldRefuse[r] = n
		}
	}
}
