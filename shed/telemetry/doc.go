// Package telemetry answers: what can a graph and an alert see of a Shedder?
//
// [Metrics] is a Prometheus collector and a [shed.Observer] in one. What the Shedder counts itself (decisions by rule and
// by reason, limit, in flight, waiting, pressure) is read from its Status when Prometheus asks; what only events tell (how
// long requests waited and ran) is gathered in histograms as it happens.
//
//	metrics := telemetry.New()
//	s, err := shed.New(shed.Config{Observer: metrics})
//	...
//	metrics.Watch(s)
//	prometheus.MustRegister(metrics)
//
// Labels are bounded: names of configured rules and routes, priorities, reasons, outcomes and signals. A client's name or key is never
// a label.
package telemetry
