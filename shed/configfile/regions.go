package configfile

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/redisstore"
	"github.com/spillway-go/spillway/shed"
)

// Regions is what the file says about regions that share quotas, see redisstore.Regions. The zero value is one region.
type Regions struct {
	// Region is the one that this instance is in; empty means that there are none. Weights are those of all.
	Region  string
	Weights map[string]int64
	// Home is the address of the Redis of all regions; PasswordFile and Prefix are as in Redis, but for the default of the latter.
	Home, PasswordFile, Prefix string
	// Lease is how long a block is spent that was borrowed; 0 means redisstore.DefaultLease. Timeout is how long home may take
	// to answer; 0 means redisstore.DefaultTimeout.
	Lease, Timeout time.Duration
}

// homePrefix begins the names of keys at home, which may be the server of a region.
const homePrefix = "spillway-home"

var regionsShape = shape{keys: []key{
	{name: "region", kind: kindText, required: "eu"},
	{name: "weights", kind: kindNumberMap, min: 1000, max: 1000 * redisstore.MaxWeight},
	{name: "home", kind: kindText, required: "redis://127.0.0.1:6379/0"},
	{name: "password_file", kind: kindText},
	{name: "prefix", kind: kindText},
	{name: "lease", kind: kindDuration, min: int64(10 * time.Millisecond), max: int64(time.Second)},
	{name: "timeout", kind: kindDuration, min: int64(time.Millisecond), max: int64(10 * time.Second)},
}}

// regions reads the section store.regions of a file in folder.
func regions(o object, folder string) Regions {
	r := Regions{
		Region: o.text("region"), Home: o.text("home"), PasswordFile: o.file("password_file", folder), Prefix: o.text("prefix"),
		Lease: o.duration("lease"), Timeout: o.duration("timeout"), Weights: make(map[string]int64),
	}
	for name, w := range o.numberMap("weights", "weights: {eu: 2, us: 1}") {
		if r.Weights[name] = int64(w); float64(int64(w)) != w {
			o.fields["weights"].fail(fmt.Sprintf("%s: %g is no whole number", name, w), "use whole weights, such as 2 and 1")
		}
	}
	o.address("home", r.Home)
	o.prefix("prefix", r.Prefix)
	if r.Region == "" {
		return r
	}
	if err := r.parts().Check(anyPolicy); err != nil {
		what, mend, _ := strings.Cut(err.Error(), "; ")
		if mend == "" {
			mend = "write weights: {eu: 2, us: 1}"
		}
		o.fail(what, mend)
		return Regions{}
	}
	return r
}

// anyPolicy can be divided between all regions that can be.
var anyPolicy = func() *limits.Policy {
	p, err := limits.NewPolicy("any", limits.FixedWindow{Quota: limits.PerSecond(1_000_000)})
	if err != nil {
		panic(err) // it is fixed
	}
	return p
}()

func (r *Regions) parts() redisstore.RegionsConfig {
	return redisstore.RegionsConfig{Region: r.Region, Weights: r.Weights}
}

// divisible reports limits that cannot be divided between regions. All are the mappings that they were read from.
func (c *Config) divisible(all []object) {
	if c.Store.Regions.Region == "" {
		return
	}
	for i, l := range c.Shed.Limits {
		rules := []limits.Rule{l.Rule}
		for _, rule := range l.Plans {
			rules = append(rules, rule)
		}
		for _, rule := range rules {
			if _, counted := rule.(limits.InFlight); rule == nil || counted {
				continue
			}
			if l.Excess == shed.Delay {
				rule = limits.Delay{Rule: rule, MaxWait: l.MaxWait}
			}
			var options []limits.Option
			if l.Strict {
				options = append(options, limits.Strict())
			}
			p, err := limits.NewPolicy("limit", rule, options...)
			if err == nil {
				err = c.Store.Regions.parts().Check(p)
			}
			if err != nil {
				all[i].fail("cannot be divided between regions", "use guarantee: strict, with which home decides, or another rule")
				break
			}
		}
	}
}

// home makes the store of all regions.
func (c *Config) home(log *slog.Logger) (*redisstore.Leases, func(), error) {
	r := c.Store.Regions
	prefix := r.Prefix
	if prefix == "" {
		prefix = homePrefix
	}
	inner, client, err := openRedis(r.Home, r.PasswordFile, prefix, r.Timeout, "store.regions")
	if err != nil {
		return nil, nil, err
	}
	guard, err := redisstore.NewGuard(inner, redisstore.GuardConfig{
		OnFailure: limits.Closed, Heartbeat: c.Store.Redis.Heartbeat, Timeout: r.Timeout,
		Instances: min(max(c.Store.Redis.Instances, 1)*len(r.Weights), 10_000),
		OnChange:  func(change redisstore.Change) { logChange(log.With("store", "home"), change) },
		Warn:      func(w string) { log.Warn("spillway: home: " + w) },
	})
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	refusals, err := redisstore.NewRefusals(guard, 0)
	if err != nil {
		guard.Close()
		client.Close()
		return nil, nil, err
	}
	leases, err := redisstore.NewLeases(refusals, redisstore.LeaseConfig{Lasts: r.Lease})
	if err != nil {
		guard.Close()
		client.Close()
		return nil, nil, err
	}
	return leases, func() { client.Close() }, nil
}
