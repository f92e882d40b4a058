package telemetry_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/concurrency"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/telemetry"
)

func watched(t *testing.T) (*shed.Shedder, *telemetry.Metrics) {
	t.Helper()
	metrics := telemetry.New()
	s, err := shed.New(shed.Config{
		Limits:      []shed.Limit{{Name: "per-client", Rule: limits.TokenBucket{Capacity: 2, Refill: limits.PerSecond(1)}}},
		Routes:      []shed.Route{{Name: "items"}, {Name: "events", LongLived: 5}, {Name: "probes", Exempt: true}},
		Concurrency: concurrency.Config{Algorithm: "fixed", Min: 1, Max: 7, Initial: 7},
		Health:      health.Config{Off: true},
		Observer:    metrics,
	})
	if err != nil {
		t.Fatal(err)
	}
	metrics.Watch(s)
	return s, metrics
}

func TestMetricsTellWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, metrics := watched(t)
		defer s.Close()
		ctx := context.Background()
		for range 2 {
			p, err := s.Admit(ctx, shed.Request{Client: "a", Route: "items"})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Millisecond)
			p.Done(shed.Success)
		}
		for range 3 {
			if _, err := s.Admit(ctx, shed.Request{Client: "a", Route: "items"}); err == nil {
				t.Fatal("admitted above the quota")
			}
		}
		stream, err := s.Admit(ctx, shed.Request{Client: "b", Route: "events"})
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Done(shed.Ignored)
		if _, err := s.Admit(ctx, shed.Request{Route: "probes"}); err != nil {
			t.Fatal(err)
		}
		want := `
# HELP spillway_limit How many requests may run at once now.
# TYPE spillway_limit gauge
spillway_limit 7
# HELP spillway_in_flight Requests that run under the limit.
# TYPE spillway_in_flight gauge
spillway_in_flight 0
# HELP spillway_waiting Requests in the line in front of the limit.
# TYPE spillway_waiting gauge
spillway_waiting{priority="critical"} 0
spillway_waiting{priority="critical_plus"} 0
spillway_waiting{priority="sheddable"} 0
spillway_waiting{priority="sheddable_plus"} 0
# HELP spillway_newest_first 1 while refusals of a priority last, so that its newest is served first, else 0.
# TYPE spillway_newest_first gauge
spillway_newest_first{priority="critical"} 0
spillway_newest_first{priority="critical_plus"} 0
spillway_newest_first{priority="sheddable"} 0
spillway_newest_first{priority="sheddable_plus"} 0
# HELP spillway_long_lived_in_use Long-lived requests by route.
# TYPE spillway_long_lived_in_use gauge
spillway_long_lived_in_use{route="events"} 1
# HELP spillway_admitted_total Requests that got a permit, by route.
# TYPE spillway_admitted_total counter
spillway_admitted_total{route="events"} 1
spillway_admitted_total{route="items"} 2
# HELP spillway_long_lived_max How many long-lived requests a route may have at once.
# TYPE spillway_long_lived_max gauge
spillway_long_lived_max{route="events"} 5
# HELP spillway_exempt_total Requests to exempt routes that passed.
# TYPE spillway_exempt_total counter
spillway_exempt_total 1
# HELP spillway_rule_decisions_total Decisions by rule.
# TYPE spillway_rule_decisions_total counter
spillway_rule_decisions_total{decision="admitted",rule="per-client"} 3
spillway_rule_decisions_total{decision="delayed",rule="per-client"} 0
spillway_rule_decisions_total{decision="refused",rule="per-client"} 3
# HELP spillway_refused_total Refused requests by route, reason and, where a rule refused, rule.
# TYPE spillway_refused_total counter
spillway_refused_total{reason="over_limit",route="items",rule="per-client"} 3
# HELP spillway_service_seconds Time that permits were held, by outcome.
# TYPE spillway_service_seconds histogram
` + histogram("spillway_service_seconds", `outcome="success",route="items"`, 0.03, 2,
			.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10)
		if err := testutil.CollectAndCompare(metrics, strings.NewReader(want),
			"spillway_limit", "spillway_in_flight", "spillway_waiting", "spillway_newest_first", "spillway_long_lived_in_use", "spillway_long_lived_max", "spillway_admitted_total", "spillway_exempt_total",
			"spillway_rule_decisions_total", "spillway_refused_total", "spillway_service_seconds"); err != nil {
			t.Error(err)
		}
	})
}

func TestTheLineIsCountedByPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := telemetry.New()
		s, err := shed.New(shed.Config{
			Routes:      []shed.Route{{Name: "vital", Priority: shed.CriticalPlus}, {Name: "batch", Priority: shed.Sheddable}},
			Concurrency: concurrency.Config{Algorithm: "fixed", Min: 1, Max: 1, Initial: 1},
			Queue:       shed.Queue{MaxWait: time.Second},
			Health:      health.Config{Off: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		metrics.Watch(s)
		running, err := s.Admit(t.Context(), shed.Request{Client: "a"})
		if err != nil {
			t.Fatal(err)
		}
		for _, route := range []string{"vital", "batch", "batch"} {
			go func() {
				if p, err := s.Admit(t.Context(), shed.Request{Client: "a", Route: route}); err == nil {
					p.Done(shed.Success)
				}
			}()
		}
		synctest.Wait()
		if err := testutil.CollectAndCompare(metrics, strings.NewReader(`
# HELP spillway_waiting Requests in the line in front of the limit.
# TYPE spillway_waiting gauge
spillway_waiting{priority="critical"} 0
spillway_waiting{priority="critical_plus"} 1
spillway_waiting{priority="sheddable"} 2
spillway_waiting{priority="sheddable_plus"} 0
`), "spillway_waiting"); err != nil {
			t.Error(err)
		}
		running.Done(shed.Success)
		synctest.Wait()
	})
}

// histogram writes what n observations of value look like.
func histogram(name, labels string, value float64, n int, buckets ...float64) string {
	var b strings.Builder
	for _, le := range buckets {
		count := 0
		if value <= le {
			count = n
		}
		fmt.Fprintf(&b, "%s_bucket{%s,le=\"%v\"} %d\n", name, labels, le, count)
	}
	fmt.Fprintf(&b, "%s_bucket{%s,le=\"+Inf\"} %d\n", name, labels, n)
	fmt.Fprintf(&b, "%s_sum{%s} %v\n%s_count{%s} %d\n", name, labels, value*float64(n), name, labels, n)
	return b.String()
}

func TestMetricNamesFollowTheConventions(t *testing.T) {
	s, metrics := watched(t)
	defer s.Close()
	problems, err := testutil.CollectAndLint(metrics)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestMetricsOfNothingAreNoError(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(telemetry.New())
	if _, err := registry.Gather(); err != nil {
		t.Fatal(err)
	}
}

func TestAClientIsNeverALabel(t *testing.T) {
	s, metrics := watched(t)
	defer s.Close()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics)
	for i := range 100 {
		if p, err := s.Admit(t.Context(), shed.Request{Client: fmt.Sprint("client-", i), Route: fmt.Sprint("no-such-route-", i)}); err == nil {
			p.Done(shed.Success)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if strings.Contains(l.GetValue(), "client-") || strings.Contains(l.GetValue(), "no-such") {
					t.Errorf("%s has the label %s=%q", f.GetName(), l.GetName(), l.GetValue())
				}
			}
		}
	}
}

func TestShadowsAndBurstsTellWhatTheyDid(t *testing.T) {
	metrics := telemetry.New()
	s, err := shed.New(shed.Config{
		Limits: []shed.Limit{
			{Name: "tried", Rule: limits.FixedWindow{Quota: limits.PerDay(1)}, Shadow: true},
			{Name: "site", Rule: limits.Burst{Soft: limits.PerDay(2), Hard: limits.PerDay(5)}, Per: shed.Global},
		},
		Health:   health.Config{Off: true},
		Observer: metrics,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	metrics.Watch(s)
	for range 3 {
		p, err := s.Admit(t.Context(), shed.Request{Client: "a"})
		if err != nil {
			t.Fatal(err)
		}
		p.Done(shed.Success)
	}
	want := `
# HELP spillway_rule_decisions_total Decisions by rule.
# TYPE spillway_rule_decisions_total counter
spillway_rule_decisions_total{decision="admitted",rule="site"} 3
spillway_rule_decisions_total{decision="admitted",rule="tried"} 1
spillway_rule_decisions_total{decision="delayed",rule="site"} 0
spillway_rule_decisions_total{decision="delayed",rule="tried"} 0
spillway_rule_decisions_total{decision="refused",rule="site"} 0
spillway_rule_decisions_total{decision="refused",rule="tried"} 0
spillway_rule_decisions_total{decision="would_refuse",rule="tried"} 2
# HELP spillway_rule_over_soft_total Admitted requests that went over the soft rate of a burst.
# TYPE spillway_rule_over_soft_total counter
spillway_rule_over_soft_total{rule="site"} 1
spillway_rule_over_soft_total{rule="tried"} 0
`
	if err := testutil.CollectAndCompare(metrics, strings.NewReader(want), "spillway_rule_decisions_total", "spillway_rule_over_soft_total"); err != nil {
		t.Error(err)
	}
}

func TestThePackageCommentListsEveryMetric(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	descs := make(chan *prometheus.Desc, 100)
	telemetry.New().Describe(descs)
	close(descs)
	n := 0
	for d := range descs {
		n++
		name := strings.Split(strings.SplitN(d.String(), `fqName: "`, 2)[1], `"`)[0]
		if !strings.Contains(string(doc), name) {
			t.Errorf("%s is not in the package comment", name)
		}
	}
	if n < 10 {
		t.Errorf("only %d metrics were described", n)
	}
}

// What clients are told is in the status and in one line of the metrics, and follows a reload.
func TestWhatClientsAreToldIsShown(t *testing.T) {
	cfg := shed.Config{}
	s, err := shed.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m := telemetry.New()
	m.Watch(s)
	shows := func(want shed.AnswersStatus, line string) {
		t.Helper()
		if got := s.Status().Answers; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		text := "# HELP spillway_answers_info Always 1, with what clients are told beside the decisions: the section answers of the configuration.\n" +
			"# TYPE spillway_answers_info gauge\nspillway_answers_info" + line + " 1\n"
		if err := testutil.CollectAndCompare(m, strings.NewReader(text), "spillway_answers_info"); err != nil {
			t.Error(err)
		}
	}
	shows(shed.AnswersStatus{RateLimit: true, HTML: true, Legacy: "none"}, `{html="true",legacy="none",rate_limit="true"}`)
	cfg.Answers = shed.Answers{HideRateLimit: true, NoHTML: true, Legacy: "x_ratelimit_delta"}
	if _, err := s.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	shows(shed.AnswersStatus{Legacy: "x_ratelimit_delta"}, `{html="false",legacy="x_ratelimit_delta",rate_limit="false"}`)
}
