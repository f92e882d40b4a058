package configfile

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	banner "github.com/spillway-go/spillway/pumpkin"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/shed"
)

func TestSignalsAreReadFromTheStatus(t *testing.T) {
	var s shed.Status
	signals := Signals(func() shed.Status { return s })
	if got := signals(); len(got) != 1 || got["shed"] != 0 {
		t.Errorf("of nothing: %v", got)
	}
	s = shed.Status{
		Waiting: 50, QueueCapacity: 200, Admitted: 60,
		Refused: map[shed.Reason]int64{shed.Overloaded: 20, shed.QueueFull: 10, shed.WaitExpired: 5, shed.Displaced: 3, shed.Deadline: 2, shed.OverLimit: 1000, shed.FeatureOff: 1000},
		Health: health.Status{Pressure: 0.7, State: health.OK, Signals: []health.Reading{
			{Signal: "db", Pressure: 1, State: health.OK}, {Signal: "cpu", Pressure: 0.7, State: health.Warming},
		}},
	}
	got := signals()
	if len(got) != 4 || got["pressure"] != 0.7 || got["queue"] != 0.25 || got["db"] != 1 || got["shed"] != 0.4 {
		t.Errorf("%v", got)
	}
	for range shedOver - 1 {
		if got := signals(); got["shed"] != 0.4 {
			t.Fatalf("forgotten too soon: %v", got)
		}
	}
	if got := signals(); got["shed"] != 0 {
		t.Errorf("ten seconds later: %v", got)
	}
	s.Refused[shed.Overloaded] += shedLeast - 1
	if got := signals(); got["shed"] != 0 {
		t.Errorf("of a handful of requests: %v", got)
	}
}

func TestAutomationOfTheFileRaises(t *testing.T) {
	c := parsed(t, "pumpkin: {auto: [{id: full, template: degraded, when: {queue: {high: 0.9, low: 0.1}}, enter_for: 2s}]}", Config{})
	synctest.Test(t, func(t *testing.T) {
		p, err := banner.New(banner.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		end, err := c.RunPumpkin(p, func() shed.Status { return shed.Status{Waiting: 100, QueueCapacity: 100} }, nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3*time.Second + time.Millisecond)
		if d := p.Document(); len(d.Items) != 1 || d.Items[0].ID != "full" || d.Items[0].Severity != banner.Major {
			t.Errorf("%+v", d)
		}
		end()
	})
}

func TestABannerIsSharedAsTheFileSays(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "empty"), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := banner.New(banner.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	status := func() shed.Status { return shed.Status{} }
	for want, r := range map[string]PumpkinRedis{
		"is empty":      {URL: "redis://127.0.0.1:1/0", PasswordFile: filepath.Join(dir, "empty")},
		"password_file": {URL: "redis://127.0.0.1:1/0", PasswordFile: filepath.Join(dir, "none")},
		"snapshot file": {URL: "redis://127.0.0.1:1/0", SnapshotFile: filepath.Join(dir, "no", "file")},
	} {
		c := Config{Pumpkin: Pumpkin{Redis: r}}
		end, err := c.RunPumpkin(p, status, nil)
		if end(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	c := Config{Pumpkin: Pumpkin{Redis: PumpkinRedis{URL: "redis://127.0.0.1:1/0", SnapshotFile: filepath.Join(dir, "state.json")}}}
	end, err := c.RunPumpkin(p, status, slog.New(slog.DiscardHandler)) // nobody listens there, and it starts all the same
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if s := p.Status().Store; s == nil || s.Reachable {
		t.Errorf("%+v", s)
	}
	if _, err := os.Stat(filepath.Join(dir, "state.json")); err != nil {
		t.Error(err)
	}
}
