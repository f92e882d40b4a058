package telemetry

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/pumpkin"
	"github.com/spillway-go/spillway/shed"
)

// Bounds of the histograms, in seconds: from what nobody notices to what nobody waits for.
var (
	waitBuckets    = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2, 5}
	serviceBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	storeBuckets   = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25}
)

// DefaultMaxRoutes is how many routes have a label of their own.
const DefaultMaxRoutes = 200

// Names of routes in labels that no configured route stands behind.
const (
	DefaultRoute = "default" // requests that match no configured route
	OtherRoutes  = "other"   // the routes beyond Config.MaxRoutes, together
)

// Config says what Metrics look like. The zero value is what New uses.
type Config struct {
	// MaxRoutes is how many routes have a label of their own, in the order of their first request; all further ones are counted
	// together under the route "other". Zero means DefaultMaxRoutes. Negative gives no route a label of its own.
	MaxRoutes int
	// WaitBuckets and ServiceBuckets are the upper bounds of the histograms' buckets, in seconds, ascending; nil means from
	// 1 ms to 5 s, and from 0.5 ms to 10 s.
	WaitBuckets, ServiceBuckets []float64
}

// Metrics collects what one Shedder does. Make it with New, give it to the shed.Config as Observer, then tell it with Watch
// which Shedder to read, and register it. Several Shedders of one process each have Metrics of their own, registered with
// prometheus.WrapRegistererWith and a label that tells them apart. It is safe for concurrent use.
type Metrics struct {
	shedder   atomic.Pointer[shed.Shedder]
	pumpkin   atomic.Pointer[interface{ Status() pumpkin.Status }]
	maxRoutes int

	admitted *prometheus.CounterVec
	refused  *prometheus.CounterVec
	wait     *prometheus.HistogramVec
	service  *prometheus.HistogramVec
	store    *prometheus.HistogramVec

	mu     sync.Mutex                          // held while a route is added
	routes atomic.Pointer[map[string]*ofRoute] // replaced whole
	other  *ofRoute
}

// ofRoute are the metrics of one route, found once and not for each request.
type ofRoute struct {
	label    string
	admitted prometheus.Counter
	wait     prometheus.Observer
	service  [3]func() prometheus.Observer // by shed.Outcome; those that never happen have no series
}

// New returns Metrics that have seen nothing yet.
func New() *Metrics {
	m, err := NewWithConfig(Config{})
	if err != nil { // the zero Config is in order
		panic(err)
	}
	return m
}

// NewWithConfig is New with other settings. The error says which of them cannot work.
func NewWithConfig(cfg Config) (*Metrics, error) {
	for name, buckets := range map[string][]float64{"WaitBuckets": cfg.WaitBuckets, "ServiceBuckets": cfg.ServiceBuckets} {
		for i := 1; i < len(buckets); i++ {
			if !(buckets[i] > buckets[i-1]) {
				return nil, fmt.Errorf("telemetry: %s[%d] is %v after %v; write the bounds in ascending order", name, i, buckets[i], buckets[i-1])
			}
		}
	}
	m := &Metrics{
		maxRoutes: cfg.MaxRoutes,
		admitted:  prometheus.NewCounterVec(prometheus.CounterOpts(admittedFamily.opts()), admittedFamily.Labels),
		refused:   prometheus.NewCounterVec(prometheus.CounterOpts(refusedFamily.opts()), refusedFamily.Labels),
		wait:      waitFamily.histogram(cfg.WaitBuckets, waitBuckets),
		service:   serviceFamily.histogram(cfg.ServiceBuckets, serviceBuckets),
		store:     storeFamily.histogram(nil, storeBuckets),
	}
	if m.maxRoutes == 0 {
		m.maxRoutes = DefaultMaxRoutes
	}
	m.routes.Store(&map[string]*ofRoute{})
	return m, nil
}

// Watch makes s the Shedder whose status is collected. Until then only what events tell is.
func (m *Metrics) Watch(s *shed.Shedder) { m.shedder.Store(s) }

// route returns the metrics of a route.
func (m *Metrics) route(name string) *ofRoute {
	if r := (*m.routes.Load())[name]; r != nil {
		return r
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := *m.routes.Load()
	if r := known[name]; r != nil {
		return r
	}
	if len(known) >= m.maxRoutes {
		if m.other == nil {
			m.other = m.newRoute(OtherRoutes)
		}
		return m.other
	}
	label := name
	if label == "" {
		label = DefaultRoute
	}
	r := m.newRoute(label)
	more := maps.Clone(known)
	more[name] = r
	m.routes.Store(&more)
	return r
}

func (m *Metrics) newRoute(label string) *ofRoute {
	r := &ofRoute{label: label, admitted: m.admitted.WithLabelValues(label), wait: m.wait.WithLabelValues(label)}
	for outcome := range r.service {
		r.service[outcome] = sync.OnceValue(func() prometheus.Observer {
			return m.service.WithLabelValues(label, shed.Outcome(outcome).String())
		})
	}
	return r
}

// Observe implements shed.Observer.
func (m *Metrics) Observe(e shed.Event) {
	route := m.route(e.Route)
	switch e.Kind {
	case shed.Admitted:
		route.admitted.Inc()
		route.wait.Observe(e.Wait.Seconds())
	case shed.Refused:
		m.refused.WithLabelValues(route.label, string(e.Reason), e.Rule).Inc()
	case shed.Finished:
		if int(e.Outcome) < len(route.service) {
			route.service[e.Outcome]().Observe(e.Service.Seconds())
		}
	}
	if e.Store > 0 {
		m.store.WithLabelValues(source(e)).Observe(e.Store.Seconds())
	}
}

// source says who decided about the quota.
func source(e shed.Event) string {
	if e.Reason == shed.StoreUnavailable && e.Source == limits.FromMemory { // a store that does not tell
		return "none"
	}
	return e.Source.String()
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.counted() {
		c.Describe(ch)
	}
	for _, f := range read {
		ch <- f.desc
	}
}

// counted are the collectors that events feed.
func (m *Metrics) counted() []prometheus.Collector {
	return []prometheus.Collector{m.admitted, m.refused, m.wait, m.service, m.store}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.counted() {
		c.Collect(ch)
	}
	if s := m.shedder.Load(); s != nil {
		st := s.Status()
		report{ch}.status(&st)
	}
	if p := m.pumpkin.Load(); p != nil {
		report{ch}.pumpkin((*p).Status())
	}
}

// report writes what a status says.
type report struct{ ch chan<- prometheus.Metric }

func (r report) set(f *Family, v float64, labels ...string) {
	kind := prometheus.GaugeValue
	if f.Kind == "counter" {
		kind = prometheus.CounterValue
	}
	r.ch <- prometheus.MustNewConstMetric(f.desc, kind, v, labels...)
}

func (r report) status(st *shed.Status) {
	r.set(limitFamily, float64(st.Limit))
	r.set(estimateFamily, float64(st.Estimate))
	r.set(reservedFamily, float64(st.Reserved))
	r.set(inFlightFamily, float64(st.InFlight))
	r.set(typicalFamily, timeOf(st.Latency))
	r.set(capacityFamily, float64(st.QueueCapacity))
	for priority, n := range st.Line.Waiting {
		r.set(waitingFamily, float64(n), priority)
		r.set(newestFamily, one(slices.Contains(st.Line.NewestFirst, priority)), priority)
	}
	r.set(parkedFamily, float64(st.Parked))
	r.health(st)
	r.set(exemptFamily, float64(st.Exempt))
	r.set(goneFamily, float64(st.Gone))
	r.set(bodiesCutFamily, float64(st.BodiesCut))
	r.set(refundErrorsFamily, float64(st.RefundErrors))
	for _, rule := range st.Rules {
		r.set(decisionFamily, float64(rule.Admitted-rule.Delayed), rule.Name, "admitted")
		r.set(decisionFamily, float64(rule.Delayed), rule.Name, "delayed")
		r.set(decisionFamily, float64(rule.Refused), rule.Name, "refused")
		if rule.Shadow || rule.WouldRefuse > 0 {
			r.set(decisionFamily, float64(rule.WouldRefuse), rule.Name, "would_refuse")
		}
		r.set(overSoftFamily, float64(rule.OverSoft), rule.Name)
		r.set(settledFamily, float64(rule.Settled), rule.Name)
		if rule.Unit != "" && rule.Unit != shed.Requests {
			r.set(unitsFamily, float64(rule.Units), rule.Name, rule.Unit)
			r.set(pacedFamily, float64(rule.Paced), rule.Name)
		}
	}
	for reason, n := range st.WouldRefuse {
		r.set(wouldRefuseFamily, float64(n), string(reason))
	}
	r.set(streamsFamily, float64(st.Streams))
	for _, route := range st.Routes {
		r.route(route)
	}
	for _, b := range st.Budgets {
		r.set(budgetFamily, float64(b.InUse), b.Route)
		r.set(budgetMaxFamily, float64(b.Max), b.Route)
	}
	r.set(answersFamily, 1, strconv.FormatBool(st.Answers.RateLimit), st.Answers.Legacy, strconv.FormatBool(st.Answers.HTML))
	r.set(reloadsFamily, float64(st.Reloads.Applied), "applied")
	r.set(reloadsFamily, float64(st.Reloads.Failed), "failed")
	r.set(configOKFamily, one(st.Reloads.OK))
	if st.Store != nil {
		r.store(st.Store)
	}
	if st.Memory != nil {
		r.memory(st.Memory)
	}
}

func (r report) memory(st *limits.Stats) {
	r.set(memoryKeysFamily, float64(st.Keys))
	r.set(memoryMaxKeysFamily, float64(st.MaxKeys))
	r.set(memoryOverflowFamily, float64(st.Overflowed))
	r.set(memoryDroppedFamily, float64(st.Dropped))
	r.set(memoryLogFamily, float64(st.Entries))
	r.set(memoryMaxLogFamily, float64(st.MaxEntries))
}

func (r report) store(st *limits.Report) {
	r.set(storeUpFamily, one(st.State == "up"))
	r.set(storeChangesFamily, float64(st.Changes))
	r.set(storeInstancesFamily, float64(st.Instances))
	for source, n := range st.Decisions {
		r.set(storeDecisionsFamily, float64(n), source)
	}
	r.set(storeTriesFamily, float64(st.SecondTries))
	if h := st.Home; h != nil {
		r.set(storeHomeFamily, one(h.State == "up"), h.Region)
		r.set(storeBorrowedFamily, float64(h.Borrowed), h.Region)
	}
	if m := st.Merges; m != nil {
		r.set(storeMergesFamily, float64(m.Done), "done")
		r.set(storeMergesFamily, float64(m.Failed), "failed")
		r.set(storeMergedFamily, float64(m.Keys))
	}
	for kind, n := range st.Errors {
		r.set(storeErrorsFamily, float64(n), kind)
	}
}

func (r report) route(st shed.RouteStatus) {
	name := st.Route
	if name == "" {
		name = DefaultRoute
	}
	r.set(routeInFlightFamily, float64(st.InFlight), name)
	if st.Slow {
		r.set(routeLimitFamily, float64(st.Bound), name, "slow")
	}
	if st.HealthCap > 0 {
		r.set(routeLimitFamily, float64(st.HealthCap), name, "health")
	}
}

func (r report) health(st *shed.Status) {
	if st.Health.State.Known() {
		r.set(totalPressureFamily, st.Health.Pressure)
	}
	for _, signal := range st.Health.Signals {
		if signal.State.Known() {
			r.set(pressureFamily, signal.Pressure, signal.Signal)
		}
		r.set(signalFamily, 1, signal.Signal, signal.State.String())
		var discarded uint64
		for _, n := range signal.Discarded {
			discarded += n
		}
		r.set(discardedFamily, float64(discarded), signal.Signal)
		r.set(transitionsFamily, float64(signal.Transitions), signal.Signal)
	}
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
