package telemetry_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/telemetry"
)

// span is a recording span that keeps what it is told. It is written against the API alone, as Spans is.
type span struct {
	noop.Span
	deaf       bool
	attributes map[string]string
	events     []string
}

func (s *span) IsRecording() bool { return !s.deaf }

func (s *span) SetAttributes(kv ...attribute.KeyValue) {
	if s.attributes == nil {
		s.attributes = make(map[string]string)
	}
	for _, a := range kv {
		s.attributes[string(a.Key)] = a.Value.String()
	}
}

func (s *span) AddEvent(name string, options ...trace.EventOption) {
	var words []string
	cfg := trace.NewEventConfig(options...)
	for _, a := range cfg.Attributes() {
		words = append(words, string(a.Key)+"="+a.Value.String())
	}
	s.events = append(s.events, name+" "+strings.Join(words, " "))
}

func traced(t *testing.T) (*shed.Shedder, *span, context.Context) {
	t.Helper()
	s, err := shed.New(shed.Config{
		Limits:   []shed.Limit{{Name: "per-client", Rule: limits.TokenBucket{Capacity: 1, Refill: limits.PerSecond(1)}}},
		Routes:   []shed.Route{{Name: "reports", Priority: shed.Sheddable}},
		Observer: shed.Observers(telemetry.New(), telemetry.Spans{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	sp := new(span)
	return s, sp, trace.ContextWithSpan(t.Context(), sp)
}

func TestTheCallersSpanTellsOfAnAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sp, ctx := traced(t)
		p, err := s.Admit(ctx, shed.Request{Client: "secret-client", Route: "reports"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Millisecond)
		p.Done(shed.Success)
		if diff := cmp.Diff(map[string]string{
			"spillway.decision": "admitted", "spillway.route": "reports", "spillway.priority": "sheddable", "spillway.outcome": "success",
		}, sp.attributes); diff != "" {
			t.Errorf("attributes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{
			"spillway.admitted spillway.wait_seconds=0",
			"spillway.finished spillway.service_seconds=0.03 spillway.outcome=success",
		}, sp.events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestTheCallersSpanTellsOfARefusalAndNeverTheClient(t *testing.T) {
	s, sp, ctx := traced(t)
	if _, err := s.Admit(t.Context(), shed.Request{Client: "secret-client"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Admit(ctx, shed.Request{Client: "secret-client"}); err == nil {
		t.Fatal("admitted without quota")
	}
	if diff := cmp.Diff(map[string]string{
		"spillway.decision": "refused", "spillway.route": "default", "spillway.priority": "critical",
		"spillway.reason": "over_limit", "spillway.rule": "per-client",
	}, sp.attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"spillway.refused spillway.wait_seconds=0 spillway.reason=over_limit"}, sp.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestASpanThatDoesNotRecordCostsNothing(t *testing.T) {
	ctx := trace.ContextWithSpan(t.Context(), &span{deaf: true})
	var o shed.ContextObserver = telemetry.Spans{}
	for _, ctx := range []context.Context{ctx, context.Background()} {
		if n := testing.AllocsPerRun(100, func() {
			o.ObserveContext(ctx, shed.Event{Kind: shed.Refused, Reason: shed.OverLimit, Rule: "per-client", Store: 1})
			o.ObserveContext(ctx, shed.Event{Kind: shed.Finished})
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func TestASpanTellsWhoDecidedInAStore(t *testing.T) {
	sp := new(span)
	ctx := trace.ContextWithSpan(t.Context(), sp)
	telemetry.Spans{}.ObserveContext(ctx, shed.Event{Kind: shed.Admitted, Store: time.Millisecond, Source: limits.FromRedis})
	telemetry.Spans{}.ObserveContext(ctx, shed.Event{Kind: shed.Refused, Reason: shed.StoreUnavailable, Store: time.Millisecond})
	if diff := cmp.Diff([]string{
		"spillway.admitted spillway.wait_seconds=0 spillway.store_seconds=0.001 spillway.store_source=redis",
		"spillway.refused spillway.wait_seconds=0 spillway.store_seconds=0.001 spillway.store_source=none spillway.reason=store_unavailable",
	}, sp.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
