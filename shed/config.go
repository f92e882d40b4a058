package shed

import (
	"net/netip"
	"time"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/concurrency"
)

// Scope says what one balance of a limit belongs to. The zero value is PerClient.
type Scope uint8

// The scopes, as spelled in the configuration file: client, ip, ip_prefix, route, client_route, global.
const (
	PerClient      Scope = iota // one balance for each client
	PerIP                       // one for each address (an IPv6 client is its prefix)
	PerIPPrefix                 // one for each /24 (IPv4) or /48 (IPv6)
	PerRoute                    // one for each route
	PerClientRoute              // one for each client on each route
	Global                      // one for all
)

// String returns the word of the configuration file.
func (s Scope) String() string {
	if words := [...]string{"client", "ip", "ip_prefix", "route", "client_route", "global"}; int(s) < len(words) {
		return words[s]
	}
	return "unknown"
}

// Excess says what happens to what a limit does not allow. The zero value is Reject.
type Excess uint8

// The two treatments of excess.
const (
	Reject Excess = iota // refuse at once
	Delay                // let it wait for its turn, first come first served; where several limits delay, the longest wait decides
)

// String returns the word of the configuration file.
func (e Excess) String() string {
	if e == Delay {
		return "delay"
	}
	return "reject"
}

// Limit is one rule: what it allows, for whom, on which routes.
type Limit struct {
	// Name identifies the limit in headers, metrics and logs; unique, printable ASCII, required.
	Name string
	// Rule is the arithmetic, e.g. limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(5)}; required.
	Rule limits.Rule
	// Per is what a balance belongs to; the zero value is PerClient.
	Per Scope
	// Excess says what happens to what does not fit; the zero value is Reject. Delay is for leaky and token buckets.
	Excess Excess
	// MaxWait bounds the wait of delayed excess; zero means 2 s. An error without Excess: Delay.
	MaxWait time.Duration
	// Routes names the routes the limit applies to; empty means all that are not exempt.
	Routes []string
	// Unit is what the limit counts: Requests (also if empty), RequestBytes, ResponseBytes, Messages, or any other word of
	// small letters and underscores that the program counts. Requests are charged their cost. Other units are charged as
	// far as Request.Amounts knows them when the request is admitted; what is not known then passes through a Flow.
	Unit string
	// MinSize is the size in bytes from which messages count, for Unit: Messages; zero means that all do.
	MinSize int64
	// Count says which requests count in the end; the zero value is CountAll. The others are given back by Permit.Settle.
	Count Count
	// For lists the ways in which clients must be known for the limit to apply to them: "principal", "api_key", "ip", as
	// in Clients.Identify. Empty means all clients, known or not.
	For []string
	// Plans are other rules for the clients of a plan, by its name. A change of plan keeps what was used. They need a
	// balance of each client's own: PerClient or PerClientRoute.
	Plans map[string]limits.Rule
	// Shadow lets the limit decide and count without acting: what it would refuse passes. It is for trying a limit.
	Shadow bool
	// OnFailure is what becomes of requests while a store outside of the process cannot decide: limits.Local, Open, or Closed,
	// which answers StoreUnavailable. The zero value leaves it to the store.
	OnFailure limits.OnFailure
	// Strict marks a quota that must never be exceeded, as money must not: it is Closed, and never spent ahead of counting.
	Strict bool
	// Sharing is how instances share the limit's balances in a store outside of the process: limits.SharedExactly, or
	// limits.SharedByLease or limits.SharedAsync for buckets that refuse. The zero value leaves it to the store.
	Sharing limits.Sharing
	// SubBuckets splits the limit's one balance into as many parts, for a store that keeps them on different servers: 2 to
	// limits.MaxSubBuckets, for Global limits; zero means one balance. See limits.InSubBuckets.
	SubBuckets int
}

// Units that have a meaning of their own.
const (
	Requests      = "requests"       // each weighs its cost
	RequestBytes  = "request_bytes"  // of bodies that come in
	ResponseBytes = "response_bytes" // of bodies that go out
	Messages      = "messages"       // of a WebSocket or an event stream
)

// Route gives a name and a treatment to a part of the service.
type Route struct {
	// Name identifies the route in metrics and in Limit.Routes; unique, required.
	Name string
	// Match is the net/http pattern that the middleware matches requests with, e.g. "POST /orders/{id}".
	Match string
	// Cost is what a request weighs in rules that count requests; zero means 1.
	Cost int64
	// CostHeader is the field of a response in which the handler says what the request weighed after all, as a whole number in
	// digits. The middleware reads and removes it. Empty means that none is read.
	CostHeader string
	// Priority orders requests while there is not room for all; the zero value is Critical. See queue.Fair for what lower
	// priorities are promised.
	Priority Priority
	// Deadline is how long after its arrival a request must be answered; zero means that the route sets none. The caller's
	// deadline, its context's, holds as well, whichever is sooner. Who could not be answered in time is refused instead of
	// being served for nobody; work that runs is not ended.
	Deadline time.Duration
	// Feature is the name under which the pumpkin can switch the route off; empty means that only the switch for everything does.
	Feature string
	// LongLived, if above 0, gives streams and upgrades their own budget: that many at once, outside the adaptive limit.
	LongLived int
	// Shadow lets everything about the route be decided and counted without acting: see Config.Shadow.
	Shadow bool
	// Exempt routes (probes, metrics, the pumpkin poll) are never charged, queued or shed by load; only one wide guard for
	// the whole process bounds them.
	Exempt bool
}

// Clients says how the middleware finds out who asks. The zero value means: whom the program's Principal function names, if there is
// one, else the API key in X-API-Key, else the peer's address; no proxy is trusted.
type Clients struct {
	// Identify lists the ways, first that applies: "principal", "api_key", "ip". Empty means api_key, ip, and before them principal
	// where the middleware has a Principal function.
	Identify []string
	// APIKeyHeader is the header that carries API keys; empty means X-API-Key.
	APIKeyHeader string
	// APIKeys are the keys that name a client. Any other key is no identity, and the next way is tried. Nil means that keys are
	// labels: whoever makes one up is a new client each time, so that only rules per address hold against that.
	APIKeys []APIKey
	// Secret keeps the names that are made of labels from being reversed. Instances that share a store need the same one; without
	// it such names are plain digests there, and in a store of the process's own they are made with a secret that dies with it.
	Secret Secret
	// TrustedProxies lists the peers whose forwarding header is believed.
	TrustedProxies []netip.Prefix
	// Forwarded is the one forwarding header that is believed: "x_forwarded_for", "forwarded", or a header's name. Empty
	// means x_forwarded_for.
	Forwarded string
	// IPv6Prefix is how many bits of an IPv6 address name a client, 48 to 128; zero means 64.
	IPv6Prefix int
	// Unknown says what happens when nobody is known: "refuse", "shared" or "exempt". Empty means refuse.
	Unknown string
	// ExemptFrom lists peers for whom exempt routes are not guarded.
	ExemptFrom []netip.Prefix
}

// Answers says what the middleware tells clients beside its decisions. The zero value means: what is left of their quotas in the
// fields RateLimit and RateLimit-Policy, no older fields, and pages for browsers. What the middleware's own configuration hides
// stays hidden.
type Answers struct {
	// HideRateLimit leaves out what is left of quotas, where that is nobody's business. Retry-After stays.
	HideRateLimit bool
	// Legacy adds the fields from before there was a draft: "x_ratelimit_epoch", "x_ratelimit_delta" or "ratelimit_delta". Empty
	// means none.
	Legacy string
	// NoHTML answers with the problem document also who asks for HTML.
	NoHTML bool
}

// Queue bounds the line in front of the concurrency limit, a queue.Fair.
type Queue struct {
	// Capacity is how many may wait. Zero means DefaultQueueCapacity or, where that is more, as many as can be served within
	// MaxWait at the present limit and latency, up to MostQueueCapacity. Negative means that nobody waits.
	Capacity int
	// MaxWait is how long one may wait; zero means 500 ms. Who is expected to wait for more than 0.6 of the time that is left
	// to answer in is refused at once; that time is the caller's own, or 1.25 × MaxWait when it names none.
	MaxWait time.Duration
}

// Features tells which features are switched off; pumpkin.Pumpkin is one. The zero answer is "on".
type Features interface {
	// FeatureOff reports whether feature is off for client, with the banner's words and how long to stay away. Of a route without
	// a feature it is asked about "*", which is off when everything is.
	FeatureOff(feature, client string) (words string, retryAfter time.Duration, off bool)
}

// everything is the feature of routes that have none of their own.
const everything = "*"

// knower is a Features that wants to know which ones routes have, to warn about others.
type knower interface {
	KnowFeatures(names []string)
}

// tell tells features which of them routes have.
func tell(features Features, routes []Route) {
	k, ok := features.(knower)
	if !ok {
		return
	}
	var names []string
	for _, r := range routes {
		if r.Feature != "" {
			names = append(names, r.Feature)
		}
	}
	k.KnowFeatures(names)
}

// Config is everything a Shedder needs. The zero value is a working shedder without rules: adaptive gate, line and health.
type Config struct {
	Clients     Clients
	Limits      []Limit
	Routes      []Route
	Answers     Answers
	Bodies      Bodies
	Concurrency concurrency.Config
	Queue       Queue
	Health      health.Config

	// Reserve is the share of the concurrency limit, up to 0.9, that only Critical and CriticalPlus may use; zero means none. The line
	// lets them go first in any case; a reserve also keeps places free for them while nobody waits, so that they start at once when
	// they come. What is reserved and not used is idle.
	Reserve float64

	// Shadow lets limits and gate decide and count without acting: nothing is refused and nothing waits. Each permit and event, and
	// Status.WouldRefuse, say what would have happened. It is for trying a Spillway in front of real traffic. Features that are
	// switched off stay off, for somebody means it, and the guard of exempt routes holds. Under overload the numbers are too high:
	// what would have been turned away is a burden to the service.
	Shadow bool

	// Store keeps the balances of the limits; nil means a limits.Memory of its own.
	Store limits.Store
	// Features is asked before anything else; nil means that every feature is on.
	Features Features
	// Observer is told about every decision, after all locks are released; nil means nobody.
	Observer Observer
}

// Ungated returns c for quotas alone: what the limits let pass runs at once, however much that is and however this process is. It is
// for calls to somebody else's service, whose limit is not ours to find, and for programs that only want the limits.
func (c Config) Ungated() Config {
	const many = 1 << 20
	c.Concurrency = concurrency.Config{Algorithm: "fixed", Min: many, Max: many, Initial: many}
	c.Health = health.Config{Off: true}
	c.Bodies = Bodies{Unwatched: true} // there are no places that a slow body could hold
	return c
}
