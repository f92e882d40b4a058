package telemetry_test

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/spillway-go/spillway/pumpkin"
	"github.com/spillway-go/spillway/shed/telemetry"
)

func TestThePumpkinIsCounted(t *testing.T) {
	m := telemetry.New()
	if n := testutil.CollectAndCount(m, "spillway_pumpkin_polls_total"); n != 0 {
		t.Errorf("%d series of a pumpkin that is not there", n)
	}
	p, err := pumpkin.New(pumpkin.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m.WatchPumpkin(p)
	e := pumpkin.Entry{Severity: pumpkin.Major, Message: map[string]string{"en": "x"}, Reason: "r"}
	if err := p.Put("ada", "a", e); err != nil {
		t.Fatal(err)
	}
	if err := p.Raise("lag", "b", e); err != nil {
		t.Fatal(err)
	}
	p.Public().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/pumpkin.json", nil))
	p.Admin().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://127.0.0.1/items", nil))
	want := `# HELP spillway_pumpkin_admin_failures_total Admin requests with no or a wrong token, for a wrong name or from another origin.
# TYPE spillway_pumpkin_admin_failures_total counter
spillway_pumpkin_admin_failures_total 1
# HELP spillway_pumpkin_items Items that the public sees, by severity and by who put them there.
# TYPE spillway_pumpkin_items gauge
spillway_pumpkin_items{origin="auto",severity="major"} 1
spillway_pumpkin_items{origin="manual",severity="major"} 1
# HELP spillway_pumpkin_polls_total Polls that were answered, in full or with 304.
# TYPE spillway_pumpkin_polls_total counter
spillway_pumpkin_polls_total{answer="full"} 1
spillway_pumpkin_polls_total{answer="not_modified"} 0
# HELP spillway_pumpkin_writes_total Writes that were made, changing something or not.
# TYPE spillway_pumpkin_writes_total counter
spillway_pumpkin_writes_total 2
`
	if err := testutil.CollectAndCompare(m, strings.NewReader(want), "spillway_pumpkin_admin_failures_total", "spillway_pumpkin_items",
		"spillway_pumpkin_polls_total", "spillway_pumpkin_writes_total"); err != nil {
		t.Error(err)
	}
}

func TestSharingAndAutomationAreCounted(t *testing.T) {
	m := telemetry.New()
	m.WatchPumpkin(still{pumpkin.Status{
		Store: &pumpkin.StoreReport{Reachable: true, Failures: 3, Reseeded: 1},
		Auto:  []pumpkin.AutoStatus{{ID: "overload", Share: 0.5, Latched: true, Up: 2, Raised: 4, Lowered: 3}},
	}})
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, s := range f.GetMetric() {
			name := f.GetName()
			for _, l := range s.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = s.GetGauge().GetValue() + s.GetCounter().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"spillway_pumpkin_store_reachable": 1, "spillway_pumpkin_store_failures_total": 3, "spillway_pumpkin_store_reseeded_total": 1,
		"spillway_pumpkin_auto_share overload": 0.5, "spillway_pumpkin_auto_latched overload": 1, "spillway_pumpkin_auto_votes overload": 2,
		"spillway_pumpkin_auto_changes_total raised overload": 4, "spillway_pumpkin_auto_changes_total lowered overload": 3,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %g (%v), want %g", name, v, ok, want)
		}
	}
}

type still struct{ status pumpkin.Status }

func (s still) Status() pumpkin.Status { return s.status }
