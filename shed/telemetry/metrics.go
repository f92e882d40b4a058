package telemetry

import (
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/shed"
)

// waitBuckets and serviceBuckets bound the histograms, in seconds: from what nobody notices to what nobody waits for.
var (
	waitBuckets    = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2, 5}
	serviceBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
)

// Metrics collects what one Shedder does. Make it with New, give it to the shed.Config as Observer, then tell it with Watch
// which Shedder to read, and register it. It is safe for concurrent use.
type Metrics struct {
	shedder atomic.Pointer[shed.Shedder]

	wait    *prometheus.HistogramVec
	service *prometheus.HistogramVec
	refused *prometheus.CounterVec
}

// New returns Metrics that have seen nothing yet.
func New() *Metrics {
	return &Metrics{
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "spillway_wait_seconds", Buckets: waitBuckets,
			Help: "Time that admitted requests waited for a turn and in the line.",
		}, []string{"route"}),
		service: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "spillway_service_seconds", Buckets: serviceBuckets,
			Help: "Time that permits were held, by outcome.",
		}, []string{"route", "outcome"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "spillway_refused_total",
			Help: "Refused requests by route, reason and, where a rule refused, rule.",
		}, []string{"route", "reason", "rule"}),
	}
}

// Watch makes s the Shedder whose status is collected. Until then only the histograms are.
func (m *Metrics) Watch(s *shed.Shedder) { m.shedder.Store(s) }

// Observe implements shed.Observer.
func (m *Metrics) Observe(e shed.Event) {
	route := e.Route
	if route == "" {
		route = "default"
	}
	switch e.Kind {
	case shed.Admitted:
		m.wait.WithLabelValues(route).Observe(e.Wait.Seconds())
	case shed.Refused:
		m.refused.WithLabelValues(route, string(e.Reason), e.Rule).Inc()
	case shed.Finished:
		m.service.WithLabelValues(route, e.Outcome.String()).Observe(e.Service.Seconds())
	}
}

// The metrics that are read from the status.
var (
	limitDesc    = desc("limit", "How many requests may run at once now.")
	estimateDesc = desc("limit_estimate", "What the concurrency algorithm alone would allow, before the health cap.")
	inFlightDesc = desc("in_flight", "Requests that run under the limit.")
	waitingDesc  = desc("waiting", "Requests in the line in front of the limit.", "priority")
	newestDesc   = desc("newest_first", "1 while refusals of a priority last, so that its newest is served first, else 0.", "priority")
	parkedDesc   = desc("parked", "Requests that wait for the turn a delaying rule gave them.")
	pressureDesc = desc("pressure", "Pressure by signal, 0 to 1; a signal without an opinion is missing.", "signal")
	admittedDesc = desc("admitted_total", "Requests that got a permit.")
	exemptDesc   = desc("exempt_total", "Requests to exempt routes that passed.")
	goneDesc     = desc("gone_total", "Callers that left before they were answered.")
	decisionDesc = desc("rule_decisions_total", "Decisions by rule.", "rule", "decision")
	overSoftDesc = desc("rule_over_soft_total", "Admitted requests that went over the soft rate of a burst.", "rule")
	streamsDesc  = desc("streams", "Streams on routes without a budget of their own.")
	budgetDesc   = desc("long_lived_in_use", "Long-lived requests by route.", "route")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("spillway_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.wait.Describe(ch)
	m.service.Describe(ch)
	m.refused.Describe(ch)
	for _, d := range []*prometheus.Desc{
		limitDesc, estimateDesc, inFlightDesc, waitingDesc, newestDesc, parkedDesc, pressureDesc, admittedDesc, exemptDesc, goneDesc,
		decisionDesc, overSoftDesc, streamsDesc, budgetDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.wait.Collect(ch)
	m.service.Collect(ch)
	m.refused.Collect(ch)
	s := m.shedder.Load()
	if s == nil {
		return
	}
	st := s.Status()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge(limitDesc, float64(st.Limit))
	gauge(estimateDesc, float64(st.Estimate))
	gauge(inFlightDesc, float64(st.InFlight))
	for priority, n := range st.Line.Waiting {
		gauge(waitingDesc, float64(n), priority)
		newest := 0.
		if slices.Contains(st.Line.NewestFirst, priority) {
			newest = 1
		}
		gauge(newestDesc, newest, priority)
	}
	gauge(parkedDesc, float64(st.Parked))
	for _, signal := range st.Health.Signals {
		if signal.State.Known() {
			gauge(pressureDesc, signal.Pressure, signal.Signal)
		}
	}
	counter(admittedDesc, st.Admitted)
	counter(exemptDesc, st.Exempt)
	counter(goneDesc, st.Gone)
	for _, r := range st.Rules {
		counter(decisionDesc, r.Admitted-r.Delayed, r.Name, "admitted")
		counter(decisionDesc, r.Delayed, r.Name, "delayed")
		counter(decisionDesc, r.Refused, r.Name, "refused")
		if r.Shadow {
			counter(decisionDesc, r.WouldRefuse, r.Name, "would_refuse")
		}
		counter(overSoftDesc, r.OverSoft, r.Name)
	}
	gauge(streamsDesc, float64(st.Streams))
	for _, b := range st.Budgets {
		gauge(budgetDesc, float64(b.InUse), b.Route)
	}
}
