package load

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const ms = time.Millisecond

func TestTheReportSplitsByStatusAndCountsOnlyTimelySuccessAsGood(t *testing.T) {
	p := Plan{GoodWithin: 250 * ms}
	got := p.report([]Shot{
		{Due: 0, Status: 200, Latency: 20 * ms},
		{Due: 999 * ms, Status: 201, Latency: 250 * ms, Lag: 3 * ms},
		{Due: 1000 * ms, Status: 200, Latency: 251 * ms},
		{Due: 1500 * ms, Status: 429, Latency: 2 * ms},
		{Due: 2000 * ms, Status: 503, Latency: 1 * ms},
		{Due: 2100 * ms, Status: 0, Latency: 3000 * ms},
		{Due: 2200 * ms, Status: 404, Latency: 1 * ms},
	})
	want := Report{
		Sent: 7, Statuses: map[int]int{200: 2, 201: 1, 429: 1, 503: 1, 404: 1}, Errors: 1, Good: 2,
		Lag:     Quantiles{P50: 0, P99: 3 * ms, Max: 3 * ms},
		Success: Quantiles{P50: 250 * ms, P99: 251 * ms, Max: 251 * ms},
		Refused: Quantiles{P50: 1 * ms, P99: 2 * ms, Max: 2 * ms},
		Seconds: []Second{{Sent: 2, OK: 2, Good: 2}, {Sent: 2, OK: 1, Over: 1}, {Sent: 3, Short: 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if got.OK() != 3 {
		t.Errorf("OK() = %d, want 3", got.OK())
	}
}

func TestFastRefusalsDoNotImproveTheLatencyOfSuccess(t *testing.T) {
	shots := []Shot{{Status: 200, Latency: 100 * ms}}
	alone := Plan{}.report(shots).Success
	for range 1000 {
		shots = append(shots, Shot{Status: 503, Latency: 1})
	}
	if got := (Plan{}).report(shots).Success; got != alone {
		t.Errorf("with a thousand refusals success has %v, without %v", got, alone)
	}
}

func TestQuantilesAreExact(t *testing.T) {
	var d []time.Duration
	for i := 1000; i >= 1; i-- {
		d = append(d, time.Duration(i))
	}
	if got, want := quantiles(d), (Quantiles{P50: 500, P99: 990, Max: 1000}); got != want {
		t.Errorf("of 1 to 1000: %v, want %v", got, want)
	}
	if got, want := quantiles([]time.Duration{7}), (Quantiles{7, 7, 7}); got != want {
		t.Errorf("of one value: %v, want %v", got, want)
	}
	if got := quantiles(nil); got != (Quantiles{}) {
		t.Errorf("of none: %v, want zeros", got)
	}
}

func TestOnlyPlansThatAskForDetailGetIt(t *testing.T) {
	if r := (Plan{}).report(make([]Shot, 3)); r.Shots != nil {
		t.Error("shots without having asked")
	}
	if r := (Plan{Detail: true}).report(make([]Shot, 3)); len(r.Shots) != 3 {
		t.Errorf("%d shots, want 3", len(r.Shots))
	}
}
