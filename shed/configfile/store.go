package configfile

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/redisstore"
	"github.com/spillway-go/spillway/shed"
)

// Store is what the file says about where balances are kept. The zero value keeps them in this process's memory.
type Store struct {
	Redis Redis
	// Regions divides the quotas between regions that have a Redis each.
	Regions Regions
}

// Redis is a store that several instances share.
type Redis struct {
	// URL is its address, as redisstore.Open reads it; empty means that there is none.
	URL string
	// PasswordFile is the file that holds the password, if the URL does not; relative to where the program runs.
	PasswordFile string
	// Prefix begins the names of all keys; empty means redisstore.DefaultPrefix.
	Prefix string
	// OnFailure is what limits do that do not say so themselves; the zero value means limits.Local.
	OnFailure limits.OnFailure
	// Instances is what quotas are divided by where an instance decides alone; 0 means 1. Heartbeat counts them in Redis.
	Instances int
	Heartbeat bool
	// Timeout is how long a decision may take; 0 means redisstore.DefaultTimeout.
	Timeout time.Duration
	// CacheRefusals remembers what Redis refused, see redisstore.Refusals.
	CacheRefusals bool
	// Sharing is how instances share the limits that do not say so themselves; the zero value means limits.SharedExactly. Lease
	// is how long a block is spent that was taken ahead; 0 means redisstore.DefaultLease. See redisstore.Leases. MergeEvery is how
	// often what was counted here is merged; 0 means redisstore.DefaultMergeEvery. See redisstore.Async.
	Sharing    limits.Sharing
	Lease      time.Duration
	MergeEvery time.Duration
}

var storeShape = shape{keys: []key{
	{name: "redis", kind: kindSection, in: &redisShape, required: "{url: redis://127.0.0.1:6379/0}"},
	{name: "regions", kind: kindSection, in: &regionsShape},
}}

var redisShape = shape{keys: []key{
	{name: "url", kind: kindText, required: "redis://127.0.0.1:6379/0"},
	{name: "password_file", kind: kindText},
	{name: "prefix", kind: kindText},
	{name: "on_failure", kind: kindWord, words: failureWords},
	{name: "instances", kind: kindInteger, min: 1, max: 10_000},
	{name: "heartbeat", kind: kindBoolean},
	{name: "cache_refusals", kind: kindBoolean},
	{name: "sharing", kind: kindWord, words: sharingWords},
	{name: "lease", kind: kindDuration, min: int64(10 * time.Millisecond), max: int64(time.Second)},
	{name: "merge_every", kind: kindDuration, min: int64(10 * time.Millisecond), max: int64(time.Second)},
	{name: "timeout", kind: kindDuration, min: int64(time.Millisecond), max: int64(10 * time.Second)},
}}

// store reads the section store of a file in folder.
func store(o object, folder string) Store {
	r, ok := o.section("redis")
	if !ok {
		return Store{}
	}
	s := Redis{
		URL: r.text("url"), PasswordFile: r.file("password_file", folder), Prefix: r.text("prefix"),
		Heartbeat: r.boolean("heartbeat"), Timeout: r.duration("timeout"),
		CacheRefusals: r.boolean("cache_refusals"), Lease: r.duration("lease"), MergeEvery: r.duration("merge_every"),
	}
	r.address("url", s.URL)
	r.prefix("prefix", s.Prefix)
	if i, ok := r.word("on_failure"); ok {
		s.OnFailure = failures[i]
	}
	if i, ok := r.word("sharing"); ok {
		s.Sharing = sharings[i]
	}
	if n, ok := r.integer("instances"); ok {
		s.Instances = int(n)
	}
	all := Store{Redis: s}
	if g, ok := o.section("regions"); ok {
		all.Regions = regions(g, folder)
	}
	return all
}

// address reports an address of Redis that is none.
func (o object) address(name, url string) {
	if url == "" {
		return
	}
	if err := redisstore.Check(url, redisstore.Config{}); err != nil {
		what, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "redisstore: "), ";")
		o.fields[name].fail(what, "write it like redis://127.0.0.1:6379/0")
	}
}

// prefix reports what cannot begin names of keys.
func (o object) prefix(name, prefix string) {
	if prefix == "" {
		return
	}
	if err := redisstore.Check("redis://127.0.0.1:6379/0", redisstore.Config{Prefix: prefix}); err != nil {
		o.fields[name].fail(shown(prefix)+" cannot begin names", "use letters, digits, colons and dashes")
	}
}

// OpenStore makes the store that the configuration names, for shed.Config.Store, and what closes it; nil means that balances
// are kept in memory. A Redis that does not answer is no error: limits do what they say for that until it does. What log is
// told is when that begins and ends, and what speaks against the way Redis is set up; nil means slog.Default.
func (c *Config) OpenStore(log *slog.Logger) (store limits.Store, closeStore func(), err error) {
	if log == nil {
		log = slog.Default()
	}
	for _, w := range c.Warnings {
		log.Warn("spillway: " + w)
	}
	r := c.Store.Redis
	if r.URL == "" {
		return nil, func() {}, nil
	}
	inner, client, err := openRedis(r.URL, r.PasswordFile, r.Prefix, r.Timeout, "store.redis")
	if err != nil {
		return nil, nil, err
	}
	guard, err := redisstore.NewGuard(inner, redisstore.GuardConfig{
		OnFailure: r.OnFailure, Instances: r.Instances, Heartbeat: r.Heartbeat, Timeout: r.Timeout,
		Strict:   slices.ContainsFunc(c.Shed.Limits, func(l shed.Limit) bool { return l.Strict }),
		OnChange: func(change redisstore.Change) { logChange(log, change) },
		Warn:     func(w string) { log.Warn("spillway: " + w) },
	})
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	if r.Instances == 0 && !r.Heartbeat && c.dividesQuotas() {
		log.Warn("spillway: store.redis.instances is not set, so it is 1: where several instances share this Redis, each hands out " +
			"whole quotas while it cannot reach it; set instances, or heartbeat: true")
	}
	whole, leave, err := c.layered(guard, log)
	if err != nil {
		guard.Close()
		client.Close()
		return nil, nil, err
	}
	return whole, func() { whole.Close(); leave(); client.Close() }, nil
}

// openRedis makes a store at an address, and its client. The section is named in errors.
func openRedis(url, passwordFile, prefix string, timeout time.Duration, section string) (*redisstore.Store, io.Closer, error) {
	options := redisstore.Options{Timeout: timeout}
	var err error
	if options.Password, err = passwordIn(passwordFile); err != nil {
		return nil, nil, fmt.Errorf("%s.password_file: %w", section, err)
	}
	client, err := redisstore.Open(url, options)
	if err != nil {
		return nil, nil, err
	}
	inner, err := redisstore.New(client, redisstore.Config{Prefix: prefix})
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	return inner, client, nil
}

// dividesQuotas reports whether some limit is decided here when the store cannot.
func (c *Config) dividesQuotas() bool {
	return slices.ContainsFunc(c.Shed.Limits, func(l shed.Limit) bool {
		f := l.OnFailure
		if f == limits.AsTheStore {
			f = c.Store.Redis.OnFailure
		}
		return !l.Strict && (f == limits.AsTheStore || f == limits.Local)
	})
}

func logChange(log *slog.Logger, c redisstore.Change) {
	switch {
	case c.State == redisstore.Up:
		log.Info("spillway: the store of quotas decides again", "state", string(c.State), "after", c.Lasted.Round(time.Millisecond))
	case c.Err != nil:
		log.Error("spillway: the store of quotas cannot decide; each limit does what its on_failure says", "state", string(c.State), "error", c.Err)
	}
}
