package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/spillway-go/spillway/shed"
)

// Names of what Spans writes.
const (
	eventAdmitted = "spillway.admitted"
	eventRefused  = "spillway.refused"
	eventFinished = "spillway.finished"

	keyDecision = attribute.Key("spillway.decision") // admitted or refused
	keyRoute    = attribute.Key("spillway.route")
	keyPriority = attribute.Key("spillway.priority")
	keyReason   = attribute.Key("spillway.reason")
	keyRule     = attribute.Key("spillway.rule")
	keyOutcome  = attribute.Key("spillway.outcome")
	keyWait     = attribute.Key("spillway.wait_seconds")
	keyService  = attribute.Key("spillway.service_seconds")
	keyStore    = attribute.Key("spillway.store_seconds")
	keySource   = attribute.Key("spillway.store_source")
)

// Spans writes each decision to the OpenTelemetry span of the context that was given to Admit: attributes that the span can
// be found by (spillway.decision, route, priority; reason and rule of a refusal) and an event at the moment of the decision,
// and another at the end of the work. Times are in seconds. It makes no spans of its own and sets no status: whether a
// refusal is an error is the business of who made the span. The middleware of tracing therefore has to stand outside of
// Spillway's.
//
// A request whose span does not record costs the look at its context. The zero value is ready for use.
type Spans struct{}

// Observe implements shed.Observer. Without a context there is no span, so it does nothing.
func (Spans) Observe(shed.Event) {}

// ObserveContext implements shed.ContextObserver.
func (Spans) ObserveContext(ctx context.Context, e shed.Event) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	switch e.Kind {
	case shed.Admitted:
		span.SetAttributes(append(decision(e), keyDecision.String("admitted"))...)
		span.AddEvent(eventAdmitted, trace.WithAttributes(times(e)...))
	case shed.Refused:
		why := append(decision(e), keyDecision.String("refused"), keyReason.String(string(e.Reason)))
		if e.Rule != "" {
			why = append(why, keyRule.String(e.Rule))
		}
		span.SetAttributes(why...)
		span.AddEvent(eventRefused, trace.WithAttributes(append(times(e), keyReason.String(string(e.Reason)))...))
	case shed.Finished:
		span.SetAttributes(keyOutcome.String(e.Outcome.String()))
		span.AddEvent(eventFinished, trace.WithAttributes(keyService.Float64(e.Service.Seconds()), keyOutcome.String(e.Outcome.String())))
	}
}

// decision is what every decision is told by.
func decision(e shed.Event) []attribute.KeyValue {
	route := e.Route
	if route == "" {
		route = DefaultRoute
	}
	return append(make([]attribute.KeyValue, 0, 5), keyRoute.String(route), keyPriority.String(e.Priority.String()))
}

func times(e shed.Event) []attribute.KeyValue {
	all := append(make([]attribute.KeyValue, 0, 4), keyWait.Float64(e.Wait.Seconds()))
	if e.Store > 0 {
		all = append(all, keyStore.Float64(e.Store.Seconds()), keySource.String(source(e)))
	}
	return all
}
