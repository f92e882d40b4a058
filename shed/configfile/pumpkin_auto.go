package configfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	banner "github.com/spillway-go/spillway/pumpkin"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/pumpkin/redispumpkin"
)

// PumpkinRedis is where instances share their banner. The zero value is nowhere: each has its own.
type PumpkinRedis struct {
	// URL is the address, as redisstore.Open reads it; empty means none.
	URL string
	// PasswordFile is the file that holds the password, if the URL does not; relative to where the program runs.
	PasswordFile string
	// Namespace keeps services that use one Redis apart; empty means "default".
	Namespace string
	// SnapshotFile keeps the state for a start without Redis; empty means none.
	SnapshotFile string
}

var pumpkinRedisShape = shape{keys: []key{
	{name: "url", kind: kindText, required: "redis://127.0.0.1:6379/0"},
	{name: "password_file", kind: kindText},
	{name: "namespace", kind: kindText},
	{name: "snapshot_file", kind: kindText},
}}

// maxAuto is how many items automation may hold.
const maxAuto = 8

var autoShape = shape{keys: []key{
	{name: "id", kind: kindText, required: "overload"},
	{name: "template", kind: kindText, required: "degraded"},
	{name: "when", kind: kindNamed, in: &levelsShape, required: "{pressure: {high: 0.9, low: 0.5}}"},
	{name: "enter_for", kind: kindDuration, min: int64(time.Second), max: int64(24 * time.Hour)},
	{name: "exit_for", kind: kindDuration, min: int64(time.Second), max: int64(24 * time.Hour)},
	{name: "min_hold", kind: kindDuration, min: int64(time.Second), max: int64(24 * time.Hour)},
	{name: "step", kind: kindDuration, min: int64(time.Second), max: int64(24 * time.Hour)},
	{name: "ttl", kind: kindDuration, min: int64(10 * time.Second), max: int64(24 * time.Hour)},
}}

var levelsShape = shape{keys: []key{
	{name: "high", kind: kindNumber, min: 0, max: 1000, required: "0.9"},
	{name: "low", kind: kindNumber, min: 0, max: 1000, required: "0.5"},
}}

// bannerRedis reads where the banner is shared.
func (o object) bannerRedis(folder string) PumpkinRedis {
	r, ok := o.section("redis")
	if !ok {
		return PumpkinRedis{}
	}
	s := PumpkinRedis{
		URL: r.text("url"), PasswordFile: r.file("password_file", folder), Namespace: r.text("namespace"),
		SnapshotFile: r.file("snapshot_file", folder),
	}
	r.address("url", s.URL)
	if s.Namespace != "" && redispumpkin.CheckNamespace(s.Namespace) != nil {
		r.fields["namespace"].fail(shown(s.Namespace)+" cannot be a name", "use up to 64 letters, digits, dots, dashes and underscores")
	}
	return s
}

// auto reads the rules of automation for a pumpkin made of c. Signals are those of the program.
func (o object) auto(c banner.Config, signals []string) []banner.AutoRule {
	all, _ := o.sections("auto")
	var rules []banner.AutoRule
	for _, a := range all {
		before := len(a.found)
		r := banner.AutoRule{
			ID: a.text("id"), Template: a.text("template"), When: a.levels(signals), EnterFor: a.duration("enter_for"),
			ExitFor: a.duration("exit_for"), MinHold: a.duration("min_hold"), Step: a.duration("step"), TTL: a.duration("ttl"),
		}
		if len(a.found) != before || !a.has("id") || !a.has("template") || !a.has("when") {
			continue // said already
		}
		if err := c.CheckAuto(append(rules, r)); err != nil {
			what, mend, _ := strings.Cut(err.Error(), "; ")
			a.fail(what, cmp.Or(mend, "mend it, for it would do nothing when it is needed"))
			continue
		}
		rules = append(rules, r)
	}
	return rules
}

// levels reads when a rule acts.
func (o object) levels(signals []string) map[string]banner.Levels {
	names, all := o.named("when")
	when := map[string]banner.Levels{}
	for i, l := range all {
		var levels banner.Levels
		before := len(l.found)
		levels.High, _ = l.number("high")
		levels.Low, _ = l.number("low")
		switch {
		case !slices.Contains(signals, names[i]):
			l.fail(shown(names[i])+" is no signal of this program", didYouMean(names[i], signals))
		case len(l.found) != before || !l.has("high") || !l.has("low"):
		case levels.Low >= levels.High:
			l.fail(fmt.Sprintf("low %g must be below high %g", levels.Low, levels.High), "in between nothing changes: set them apart")
		}
		when[names[i]] = levels
	}
	return when
}

// The signals that do not come from health alone.
const (
	signalPressure = "pressure" // the total of health
	signalShed     = "shed"     // the share of requests that were turned away for want of room
	signalQueue    = "queue"    // how full the line is
)

// signalNames lists what automation can go by in a program with this health.
func signalNames(c health.Config) []string {
	all := []string{signalPressure, signalShed, signalQueue}
	for _, k := range healthShape.keys {
		if k.kind == kindSection {
			all = append(all, k.name)
		}
	}
	for _, p := range c.Pools {
		all = append(all, p.Name)
	}
	for _, d := range c.Dependencies {
		all = append(all, d.Name)
	}
	for _, k := range c.Checks {
		all = append(all, k.Name)
	}
	return all
}
