package spillway_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/configfile"
)

// The limits of the README's first lines of code.
var (
	perClient = shed.Limit{Name: "per-client", Rule: limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(5)}}
	perIP     = shed.Limit{Name: "per-ip", Per: shed.PerIP, Rule: limits.TokenBucket{Capacity: 500, Refill: limits.PerSecond(100)}}
)

// TestTheReadmeWarnsOfNothing: what people try first, in code and as a file, starts without a warning; without the limit per address it
// would not.
func TestTheReadmeWarnsOfNothing(t *testing.T) {
	first := ""
	for _, b := range blocks(t, "go") {
		if b.file == "README.md" {
			first = b.text
			break
		}
	}
	for _, line := range []string{
		`{Name: "per-client", Rule: limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(5)}},`,
		`{Name: "per-ip", Per: shed.PerIP, Rule: limits.TokenBucket{Capacity: 500, Refill: limits.PerSecond(100)}},`,
	} {
		if !strings.Contains(first, line) {
			t.Errorf("the README's first lines of code have no %s", line)
		}
	}
	if said := warnings(t, shed.Config{Limits: []shed.Limit{perClient, perIP}}); said != "" {
		t.Errorf("the first lines of code warn: %s", said)
	}
	if said := warnings(t, shed.Config{Limits: []shed.Limit{perClient}}); !strings.Contains(said, "API keys are only labels") {
		t.Errorf("the control warns of %q", said)
	}
	for _, b := range blocks(t, "yaml") {
		if b.file != "README.md" {
			continue
		}
		cfg, err := configfile.Parse(filepath.Join(t.TempDir(), "spillway.yaml"), []byte(b.text), configfile.Config{})
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if said := strings.Join(cfg.Warnings, "\n") + warnings(t, cfg.Shed); said != "" {
			t.Errorf("%s warns: %s", b, said)
		}
	}
}

// warnings returns what the middleware logs about a configuration.
func warnings(t *testing.T, cfg shed.Config) string {
	t.Helper()
	s, err := shed.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var said bytes.Buffer
	if _, err := middleware.ShedWithConfig(middleware.Config{Shedder: s, Logger: slog.New(slog.NewTextHandler(&said, nil))}); err != nil {
		t.Fatal(err)
	}
	return said.String()
}
