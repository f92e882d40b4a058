package edge

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

// Who has done what the warning asks for is not warned, at the start and after a reload.
func TestTheWarningAboutLabelsEndsWithALimitPerAddress(t *testing.T) {
	rule := limits.TokenBucket{Capacity: 9, Refill: limits.PerSecond(9)}
	perClient := shed.Limit{Name: "c", Rule: rule}
	perIP := shed.Limit{Name: "ip", Per: shed.PerIP, Rule: rule}
	but := func(change func(*shed.Limit)) []shed.Limit {
		l := perIP
		change(&l)
		return []shed.Limit{perClient, l}
	}
	routes := []shed.Route{{Name: "x", Match: "GET /x"}}
	for what, c := range map[string]struct {
		limits []shed.Limit
		warns  bool
	}{
		"per client":                    {[]shed.Limit{perClient}, true},
		"per address":                   {[]shed.Limit{perIP}, false},
		"per route":                     {[]shed.Limit{{Name: "r", Per: shed.PerRoute, Rule: rule}}, false},
		"per client and route":          {[]shed.Limit{{Name: "r", Per: shed.PerClientRoute, Rule: rule}}, true},
		"an address, spelled out":       {but(func(l *shed.Limit) { l.Unit = shed.Requests }), false},
		"both":                          {[]shed.Limit{perClient, perIP}, false},
		"a prefix":                      {but(func(l *shed.Limit) { l.Per = shed.PerIPPrefix }), false},
		"an address on one route":       {but(func(l *shed.Limit) { l.Routes = []string{"x"} }), true},
		"an address that is watched":    {but(func(l *shed.Limit) { l.Shadow = true }), true},
		"an address without a key":      {but(func(l *shed.Limit) { l.For = []string{"ip"} }), true},
		"failures of an address":        {but(func(l *shed.Limit) { l.Count = shed.CountFailures }), true},
		"bytes of an address":           {but(func(l *shed.Limit) { l.Unit = shed.RequestBytes }), true},
		"an address's requests at once": {but(func(l *shed.Limit) { l.Rule = limits.InFlight{Max: 9} }), true},
	} {
		var log bytes.Buffer
		s, err := shed.New(shed.Config{Limits: c.limits, Routes: routes})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		defer s.Close()
		if _, err := New(Config{Shedder: s, Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if warned := log.Len() > 0; warned != c.warns {
			t.Errorf("%s: warned: %v", what, warned)
		}
		log.Reset()
		if _, err := s.Reload(shed.Config{Limits: []shed.Limit{perClient}, Routes: routes}); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if again := log.Len() > 0; again == c.warns {
			t.Errorf("%s: without a limit per address after a reload: warned: %v", what, again)
		}
	}
}
