package telemetry_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/telemetry"
)

// written is a Log and what it writes, without the time.
func written(t *testing.T, every time.Duration) (*telemetry.Log, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var out bytes.Buffer
	text := slog.NewTextHandler(writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return out.Write(p)
	}), &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	l, err := telemetry.NewLog(telemetry.LogConfig{Logger: slog.New(text), Every: every})
	if err != nil {
		t.Fatal(err)
	}
	return l, func() []string {
		mu.Lock()
		defer mu.Unlock()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		out.Reset()
		slices.Sort(lines)
		return lines
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestAFloodIsOneRecordAtOnceAndOneForEachInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, lines := written(t, 10*time.Second)
		full := shed.Event{Kind: shed.Refused, Route: "items", Reason: shed.QueueFull}
		for i := range 1000 {
			full.Wait = time.Duration(i%7) * time.Millisecond
			l.Observe(full)
			l.Observe(shed.Event{Kind: shed.Admitted, Route: "items"})
			l.Observe(shed.Event{Kind: shed.Finished, Route: "items", Outcome: shed.Success})
		}
		l.Observe(shed.Event{Kind: shed.Refused, Reason: shed.OverLimit, Rule: "per-client"})
		if diff := cmp.Diff([]string{
			`level=INFO msg="spillway: refused, for what the client did" event=refused route=default reason=over_limit rule=per-client priority=critical wait=0s`,
			`level=WARN msg="spillway: refused, short of room" event=refused route=items reason=queue_full priority=critical wait=0s`,
		}, lines()); diff != "" {
			t.Errorf("at once (-want +got):\n%s", diff)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff([]string{
			`level=WARN msg="spillway: refused, short of room" event=refused route=items reason=queue_full priority=critical longest_wait=6ms count=999 seconds=10`,
		}, lines()); diff != "" {
			t.Errorf("when the interval is over (-want +got):\n%s", diff)
		}
		l.Observe(full)
		l.Observe(full)
		if got := lines(); len(got) != 1 {
			t.Errorf("in the next interval: %q", got)
		}
		time.Sleep(time.Second)
		l.Close()
		if got := lines(); len(got) != 1 || !strings.HasSuffix(got[0], "count=1 seconds=1") {
			t.Errorf("at the end: %q", got)
		}
		l.Observe(full)
		l.Close()
		if got := lines(); len(got) != 1 || got[0] != "" {
			t.Errorf("after the end: %q", got)
		}
	})
}

func TestEveryReasonHasWordsAndTheRightLevel(t *testing.T) {
	warn := []shed.Reason{shed.Overloaded, shed.QueueFull, shed.WaitExpired, shed.Displaced, shed.Deadline, shed.StoreUnavailable}
	info := []shed.Reason{shed.OverLimit, shed.CostTooLarge, shed.InFlight, shed.NoIdentity, shed.FeatureOff}
	l, lines := written(t, 0)
	defer l.Close()
	for level, reasons := range map[string][]shed.Reason{"WARN": warn, "INFO": info} {
		for _, reason := range reasons {
			l.Observe(shed.Event{Kind: shed.Refused, Reason: reason})
			if got := lines(); !strings.HasPrefix(got[0], "level="+level+" ") || !strings.Contains(got[0], "reason="+string(reason)+" ") {
				t.Errorf("%s: %q", reason, got)
			}
		}
	}
	l.Observe(shed.Event{Kind: shed.Finished, Outcome: shed.Dropped})
	if got := lines(); !strings.Contains(got[0], "outcome=dropped") {
		t.Errorf("dropped work: %q", got)
	}
}

func TestInventedNamesDoNotGrowTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, lines := written(t, time.Second)
		for i := range 5000 {
			l.Observe(shed.Event{Kind: shed.Refused, Route: fmt.Sprint("made up ", i), Reason: shed.OverLimit})
		}
		if n := len(lines()); n != 501 {
			t.Errorf("%d records at once, want 500 and one for all others", n)
		}
		l.Close()
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "route=other") || !strings.Contains(got[0], "count=4499") {
			t.Errorf("the rest: %q", got)
		}
	})
}

func TestALogThatCannotWorkIsRefused(t *testing.T) {
	for _, cfg := range []telemetry.LogConfig{{}, {Logger: slog.Default(), Every: -1}} {
		if _, err := telemetry.NewLog(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

func TestALogIsSafeForManyAndForItsEnd(t *testing.T) {
	l, _ := written(t, time.Millisecond)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				l.Observe(shed.Event{Kind: shed.Refused, Reason: shed.Overloaded})
			}
		})
	}
	l.Close()
	wg.Wait()
}
