package gameday

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/spillway-go/spillway/shed"
)

// bucket is a rule as the verdicts know it: what may come at once, and what a second brings.
type bucket struct{ Capacity, Refill int }

// bound is the most that the rule lets through in a time that lasts so many seconds.
func (b bucket) bound(seconds float64) float64 {
	return float64(b.Capacity) + float64(b.Refill)*seconds
}

// rules are the numbers in the file.
type rules struct {
	Free, Premium    bucket // per client with a key
	Address, Network bucket // per address and per /24 of those without one
	Exports          bucket // KiB of exports
	Orders           bucket // turns: the capacity waits, the refill is the leak
	Payments         bucket // strict
	Soft, Hard       int    // of the burst of searches, for everybody together
	Parallel         int    // requests of a client at once, in each gateway
}

var (
	usual = rules{
		Free: bucket{40, 10}, Premium: bucket{100, 25}, Address: bucket{20, 5}, Network: bucket{30, 10},
		Exports: bucket{64, 64}, Orders: bucket{20, 10}, Payments: bucket{30, 5}, Soft: 40, Hard: 80, Parallel: 24,
	}
	tighter = func() rules { r := usual; r.Free = bucket{20, 5}; return r }()
)

//go:embed gateway.yaml
var settingsText string

var settingsTemplate = template.Must(template.New("gateway.yaml").Parse(settingsText))

// settings is the configuration file of both gateways. Everything is on.
func settings(r rules, redisURL, liveAddr string) string {
	var b strings.Builder
	// A template that was parsed and finds its fields cannot fail on a Builder.
	_ = settingsTemplate.Execute(&b, map[string]any{"R": r, "Redis": redisURL, "Live": liveAddr})
	return b.String()
}

// keys are the secrets of the clients that have one, by name.
type keys map[string]string

// makeKeys draws a key for each client that has an account and writes the gateways' list of them.
func makeKeys(dir string, clients []*customer) (keys, error) {
	secrets := keys{}
	var file strings.Builder
	for _, c := range clients {
		secret, entry := shed.NewAPIKey(c.name, c.plan)
		secrets[c.name] = secret
		fmt.Fprintf(&file, "- {name: %s, digest: %q", entry.Name, entry.Digest)
		if c.plan != "" {
			fmt.Fprintf(&file, ", plan: %s", c.plan)
		}
		file.WriteString("}\n")
	}
	return secrets, write(dir, "keys.yaml", file.String())
}

// write replaces a file of the day's folder as a whole.
func write(dir, name, text string) error {
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// ExportBytes is the capacity of the rule on exports, which the file has in bytes.
func (r rules) ExportBytes() int { return r.Exports.Capacity << 10 }
