package telemetry

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/shed"
)

// Family describes one metric: what a graph or an alert has to know of it.
type Family struct {
	Name   string   // with its prefix and unit, e.g. spillway_wait_seconds
	Kind   string   // "counter", "gauge" or "histogram"
	Help   string   // one line
	Labels []string // nil if there are none

	desc *prometheus.Desc // nil where a vector has its own
}

// Families lists every metric that Metrics can show, in alphabetical order. docs/metrics.md is held against it.
func Families() []Family {
	var all []Family
	for _, f := range append(slices.Clone(read), admittedFamily, refusedFamily, waitFamily, serviceFamily, storeFamily) {
		all = append(all, Family{Name: f.Name, Kind: f.Kind, Help: f.Help, Labels: slices.Clone(f.Labels)})
	}
	slices.SortFunc(all, func(a, b Family) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}

// What events tell.
var (
	admittedFamily = &Family{Kind: "counter", Name: "spillway_admitted_total", Labels: []string{"route"},
		Help: "Requests that got a permit, by route."}
	refusedFamily = &Family{Kind: "counter", Name: "spillway_refused_total", Labels: []string{"route", "reason", "rule"},
		Help: "Refused requests by route, reason and, where a rule refused, rule."}
	waitFamily = &Family{Kind: "histogram", Name: "spillway_wait_seconds", Labels: []string{"route"},
		Help: "Time that admitted requests waited for a turn and in the line."}
	serviceFamily = &Family{Kind: "histogram", Name: "spillway_service_seconds", Labels: []string{"route", "outcome"},
		Help: "Time that permits were held, by outcome."}
	storeFamily = &Family{Kind: "histogram", Name: "spillway_store_seconds", Labels: []string{"source"},
		Help: "Time that a store outside of this process took for a decision, by who decided."}
)

// read are the families that are read from the status.
var read []*Family

// What the status tells.
var (
	limitFamily    = gauge("spillway_limit", "How many requests may run at once now.")
	estimateFamily = gauge("spillway_limit_estimate", "What the concurrency algorithm alone would allow, before the health cap.")
	reservedFamily = gauge("spillway_reserved", "How many places of the limit only the critical priorities may use.")
	inFlightFamily = gauge("spillway_in_flight", "Requests that run under the limit.")
	typicalFamily  = gauge("spillway_typical_service_seconds", "What successful work takes typically, waiting excluded; 0 while nothing is known.")
	capacityFamily = gauge("spillway_queue_capacity", "How many may wait in the line.")
	waitingFamily  = gauge("spillway_waiting", "Requests in the line in front of the limit.", "priority")
	newestFamily   = gauge("spillway_newest_first", "1 while refusals of a priority last, so that its newest is served first, else 0.", "priority")
	parkedFamily   = gauge("spillway_parked", "Requests that wait for the turn a delaying rule gave them.")

	totalPressureFamily = gauge("spillway_pressure_max", "The pressure that counts: the highest of the signals about this process; missing while none is known.")
	pressureFamily      = gauge("spillway_pressure", "Pressure by signal, 0 to 1; a signal without an opinion is missing.", "signal")
	signalFamily        = gauge("spillway_signal_state", "1 for the state that a health signal is in: warming, ok, stale, absent or failed.", "signal", "state")
	discardedFamily     = counter("spillway_signal_discarded_total", "Samples of a health signal that could not be used.", "signal")
	transitionsFamily   = counter("spillway_signal_transitions_total", "Changes of a health signal's state.", "signal")

	exemptFamily       = counter("spillway_exempt_total", "Requests to exempt routes that passed.")
	goneFamily         = counter("spillway_gone_total", "Callers that left before they were answered.")
	decisionFamily     = counter("spillway_rule_decisions_total", "Decisions by rule.", "rule", "decision")
	overSoftFamily     = counter("spillway_rule_over_soft_total", "Admitted requests that went over the soft rate of a burst.", "rule")
	unitsFamily        = counter("spillway_rule_units_total", "What rules on other units than requests have charged: bytes, messages, or what the program counts.", "rule", "unit")
	pacedFamily        = counter("spillway_rule_paced_total", "How often something had to wait for a rule on other units than requests.", "rule")
	settledFamily      = counter("spillway_rule_settled_total", "What a rule has given back because work came to less than it was charged.", "rule")
	bodiesCutFamily    = counter("spillway_bodies_cut_total", "Requests that ran and whose long body then came too slowly.")
	refundErrorsFamily = counter("spillway_refund_errors_total", "Refunds of quota that the store could not make.")

	streamsFamily       = gauge("spillway_streams", "Streams on routes without a budget of their own.")
	budgetFamily        = gauge("spillway_long_lived_in_use", "Long-lived requests by route.", "route")
	routeInFlightFamily = gauge("spillway_route_in_flight", "Requests that run under the limit, by route.", "route")
	routeLimitFamily    = gauge("spillway_route_limit", "How many of a route may run at once while it is held back: because its work is slow, or by the health of what it needs.", "route", "why")
	budgetMaxFamily     = gauge("spillway_long_lived_max", "How many long-lived requests a route may have at once.", "route")

	storeUpFamily        = gauge("spillway_store_up", "1 while the shared store of quotas decides, 0 while each instance does what its limits' on_failure says.")
	storeChangesFamily   = counter("spillway_store_state_changes_total", "How often the shared store stopped or began again to decide.")
	storeInstancesFamily = gauge("spillway_store_instances", "How many instances share the quotas: what a limit is divided by where this one decides alone.")
	storeDecisionsFamily = counter("spillway_store_decisions_total", "Decisions by who made them: redis, lease, async, cache, local, open or closed.", "source")
	storeMergesFamily    = counter("spillway_store_merges_total", "Messages in which this instance merged what it had counted for limits with sharing: async, by result: done or failed.", "result")
	storeMergedFamily    = gauge("spillway_store_merged_keys", "Balances that this instance counts for limits with sharing: async.")
	storeHomeFamily      = gauge("spillway_store_home_up", "1 while the store of all regions decides, 0 while this region has its own part only.", "region")
	storeBorrowedFamily  = counter("spillway_store_borrowed_total", "Decisions that were admitted with what the store of all regions has.", "region")
	storeTriesFamily     = counter("spillway_store_second_tries_total", "Decisions that were asked about another sub-bucket, for the first did not have enough.")
	storeErrorsFamily    = counter("spillway_store_errors_total", "Failed calls of the shared store, by what that means.", "kind")

	memoryKeysFamily     = gauge("spillway_memory_keys", "Balances in the store of this process.")
	memoryMaxKeysFamily  = gauge("spillway_memory_keys_max", "How many balances it can hold; newcomers beyond that share one for each limit.")
	memoryOverflowFamily = counter("spillway_memory_overflowed_total", "Charges that were judged by a shared balance, because the store of this process was full.")
	memoryDroppedFamily  = counter("spillway_memory_dropped_total", "Balances that were dropped because they were full again.")
	memoryLogFamily      = gauge("spillway_memory_log_entries", "Single charges that sliding logs in this process have room for.")
	memoryMaxLogFamily   = gauge("spillway_memory_log_entries_max", "How many single charges they can remember; beyond that they join times, and allow less but never more.")

	answersFamily     = gauge("spillway_answers_info", "Always 1, with what clients are told beside the decisions: the section answers of the configuration.", "rate_limit", "legacy", "html")
	reloadsFamily     = counter("spillway_config_reloads_total", "New configurations since the start, by what became of them.", "result")
	configOKFamily    = gauge("spillway_config_ok", "1 while the newest configuration is in force, 0 if it was refused and an older one is.")
	wouldRefuseFamily = counter("spillway_would_refuse_total", "Admitted requests that would have been refused were they no shadows.", "reason")
)

func gauge(name, help string, labels ...string) *Family { return family("gauge", name, help, labels) }

func counter(name, help string, labels ...string) *Family {
	return family("counter", name, help, labels)
}

func family(kind, name, help string, labels []string) *Family {
	f := &Family{Name: name, Kind: kind, Help: help, Labels: labels, desc: prometheus.NewDesc(name, help, labels, nil)}
	read = append(read, f)
	return f
}

func (f *Family) opts() prometheus.Opts { return prometheus.Opts{Name: f.Name, Help: f.Help} }

func (f *Family) histogram(buckets, usual []float64) *prometheus.HistogramVec {
	if buckets == nil {
		buckets = usual
	}
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: f.Name, Help: f.Help, Buckets: buckets}, f.Labels)
}

func timeOf(d shed.Duration) float64 { return time.Duration(d).Seconds() }
