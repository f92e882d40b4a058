package configfile

import (
	"fmt"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/concurrency"
	banner "github.com/spillway-go/spillway/pumpkin"
	"github.com/spillway-go/spillway/shed"
)

type features struct{}

func (features) FeatureOff(string, string) (string, time.Duration, bool) { return "", 0, false }

// program is a configuration in which every field differs from the library's default.
func program() Config {
	return Config{
		Shed: shed.Config{
			Clients: shed.Clients{
				Identify: []string{"ip"}, APIKeyHeader: "X-Program", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")},
				Forwarded: "forwarded", IPv6Prefix: 56, Unknown: "shared", ExemptFrom: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			},
			Limits: []shed.Limit{{Name: "program", Rule: limits.TokenBucket{Capacity: 1, Refill: limits.PerSecond(1)}}},
			Routes: []shed.Route{
				{Name: "report", Match: "GET /api/report", Cost: 5, Priority: shed.Sheddable, Feature: "reports"},
				{Name: "health", Match: "GET /healthz", Exempt: true},
				{Name: "assets", Match: "GET /assets/", Exempt: true},
			},
			Concurrency: concurrency.Config{Algorithm: "fixed", Min: 2, Max: 8, Initial: 5},
			Answers:     shed.Answers{Legacy: "x_ratelimit_epoch", NoHTML: true},
			Queue:       shed.Queue{Capacity: 80, MaxWait: 100 * time.Millisecond},
			Health:      health.Config{CPU: health.Thresholds{Low: 0.1, High: 0.2}, WarmUp: 5 * time.Second, Off: true},
			Store:       limits.Store(nil),
			Features:    features{},
			Observer:    shed.ObserverFunc(func(shed.Event) {}),
		},
		Pumpkin: Pumpkin{PollAfter: 20 * time.Second, AdminListen: "127.0.0.1:1", TokenFile: "program.token"},
	}
}

// parsed reads text over the program's configuration.
func parsed(t *testing.T, text string, over Config) *Config {
	t.Helper()
	c, err := Parse("dir/f.yaml", []byte(text), over)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// same fails unless two configurations are equal; functions are compared by being there.
func same(t *testing.T, got, want *Config) {
	t.Helper()
	if (got.Shed.Observer == nil) != (want.Shed.Observer == nil) {
		t.Error("the observer is lost or made up")
	}
	prefixes := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(shed.Config{}, "Observer"), cmpopts.IgnoreUnexported(Config{}), prefixes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASectionThatIsAbsentIsTheProgramsExceptForLimits(t *testing.T) {
	// Each section alone, with nothing in it: it takes the library's defaults, all others stay the program's.
	for section, change := range map[string]func(*Config){
		"limits: []":      func(*Config) {},
		"clients: {}":     func(c *Config) { c.Shed.Clients = shed.Clients{} },
		"concurrency: {}": func(c *Config) { c.Shed.Concurrency = concurrency.Config{} },
		"answers: {}":     func(c *Config) { c.Shed.Answers = shed.Answers{} },
		"queue: {}":       func(c *Config) { c.Shed.Queue = shed.Queue{} },
		"health: {}":      func(c *Config) { c.Shed.Health = health.Config{WarmUp: 5 * time.Second} },
		"pumpkin: {}":     func(c *Config) { c.Pumpkin = Pumpkin{AdminListen: DefaultAdminListen} },
		"routes: []":      func(c *Config) { c.Shed.Routes = c.Shed.Routes[1:] }, // the exempt ones stay
	} {
		t.Run(section, func(t *testing.T) {
			want := program()
			want.Shed.Limits = nil
			change(&want)
			same(t, parsed(t, section, program()), &want)
		})
	}
}

func TestAKeyMissingInAPresentSectionTakesTheLibrarysDefault(t *testing.T) {
	want := program()
	want.Shed.Limits = []shed.Limit{{Name: "a", Rule: limits.LeakyBucket{Capacity: 7, Leak: limits.PerSecond(3)}}}
	want.Shed.Clients = shed.Clients{Unknown: "exempt"}
	want.Shed.Concurrency = concurrency.Config{Max: 9, Initial: 6}
	want.Shed.Queue = shed.Queue{Capacity: 3}
	want.Shed.Health = health.Config{CPU: health.Thresholds{Low: 0.75, High: 0.8}, WarmUp: 5 * time.Second}
	want.Pumpkin = Pumpkin{AdminListen: DefaultAdminListen, TokenFile: "dir/admin.token"}
	same(t, parsed(t, `
clients: {unknown: exempt}
limits: [{name: a, leaky_bucket: {capacity: 7, leak: 3/s}}]
concurrency: {max: 9, initial: 6}
queue: {capacity: 3}
health: {cpu: {high: 0.8}}
pumpkin: {admin: {token_file: admin.token}}
`, program()), &want)
}

func TestEveryValueArrivesWhereItBelongs(t *testing.T) {
	c, err := Load("testdata/good/everything.yaml", forwarding())
	if err != nil {
		t.Fatal(err)
	}
	// Not everything goes with everything.
	var idle []string
	for _, w := range c.Warnings {
		idle = append(idle, strings.Split(w, ": ")[1])
	}
	if want := []string{
		"concurrency.max", "answers.legacy", "bodies.min_rate", "bodies.grace", "bodies.gather", "store.redis.merge_every",
		"pumpkin.templates.search-off.features",
	}; !slices.Equal(idle, want) {
		t.Errorf("warned of %q, want %q", idle, want)
	}
	c.Warnings = nil
	same(t, c, &Config{
		Shed: shed.Config{
			Clients: shed.Clients{
				Identify: []string{"principal", "api_key", "ip"}, APIKeyHeader: "X-Client-Key",
				APIKeys: []shed.APIKey{
					{Name: "alice", Digest: shed.DigestKey("correct-horse-battery-staple", ""), Plan: "premium"},
					{Name: "bob", Digest: must(shed.ParseKeyDigest("hmac-sha256:30313233343536373839616263646566:ac9245052223665a8181486dc7a8804716fd7222a51783fc9d5c0d3fd0d8349a"))},
				},
				TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Forwarded: "CF-Connecting-IP", IPv6Prefix: 56,
				Unknown: "shared", ExemptFrom: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
			},
			Limits: []shed.Limit{
				{Name: "per-client", Rule: limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(5)}, Per: shed.PerIP, Sharing: limits.SharedByLease},
				{Name: "smooth-writes", Rule: limits.LeakyBucket{Capacity: 100, Leak: limits.PerSecond(50)}, Per: shed.PerClientRoute,
					Excess: shed.Delay, MaxWait: 3 * time.Second, Routes: []string{"write"}},
				{Name: "site", Rule: limits.Burst{Soft: limits.PerSecond(100), Hard: limits.PerSecond(200), Total: limits.PerMinute(10_000)},
					Per: shed.Global, Shadow: true},
				{Name: "uploads", Rule: limits.TokenBucket{Capacity: 10 << 20, Refill: limits.Rate{Amount: 64 << 10, Per: time.Second, Bytes: true}},
					Unit: shed.RequestBytes, For: []string{"api_key"}, Plans: map[string]limits.Rule{
						"premium": limits.SlidingWindow{Quota: limits.Rate{Amount: 1 << 20, Per: time.Second, Bytes: true}},
						"closed":  limits.FixedWindow{Quota: limits.Rate{Per: limits.Day}},
					}},
				{Name: "hourly", Rule: limits.FixedWindow{Quota: limits.PerHour(1000)}, Per: shed.Global, SubBuckets: 4},
				{Name: "strict", Rule: limits.SlidingLog{Quota: limits.Rate{Amount: 10, Per: 2 * time.Second}}, Strict: true},
				{Name: "smooth", Rule: limits.SlidingWindow{Quota: limits.PerMinute(600)}, OnFailure: limits.Open},
				{Name: "parallel", Rule: limits.InFlight{Max: 8}},
				{Name: "downloads", Rule: limits.TokenBucket{Capacity: 1 << 20, Refill: limits.Rate{Amount: 256 << 10, Per: time.Second, Bytes: true}},
					Unit: shed.ResponseBytes},
				{Name: "chat", Rule: limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(5)}, Unit: shed.Messages, MinSize: 1024},
				{Name: "rows", Rule: limits.TokenBucket{Capacity: 5000, Refill: limits.PerSecond(100)}, Unit: "rows"},
				{Name: "logins", Rule: limits.FixedWindow{Quota: limits.PerHour(5)}, Per: shed.PerIP, Count: shed.CountFailures},
			},
			Routes: []shed.Route{
				{Name: "reports", Match: "POST /reports", Cost: 5, CostHeader: "X-Request-Cost", Priority: shed.Sheddable, Feature: "reports"},
				{Name: "write", Match: "POST /orders/{id}", Priority: shed.CriticalPlus, Deadline: 2 * time.Second, Shadow: true},
				{Name: "events", Match: "GET /events", LongLived: 100},
				{Name: "probes", Match: "GET /healthz", Exempt: true},
			},
			Concurrency: concurrency.Config{Algorithm: "fixed", Min: 3, Max: 400, Initial: 30},
			Reserve:     0.2,
			Answers:     shed.Answers{HideRateLimit: true, Legacy: "ratelimit_delta", NoHTML: true},
			Bodies:      shed.Bodies{MinRate: limits.Rate{Amount: 1024, Per: time.Second, Bytes: true}, Grace: 10 * time.Second, Gather: 4096, Unwatched: true},
			Queue:       shed.Queue{Capacity: 80, MaxWait: 100 * time.Millisecond},
			Shadow:      true,
			Health: health.Config{
				CPU: health.Thresholds{Low: 0.7, High: 0.9}, Throttle: health.Thresholds{Low: 0.2, High: 0.6},
				Memory: health.Thresholds{Low: 0.8, High: 0.9}, Heap: health.Thresholds{Low: 0.6, High: 0.8},
				Scheduling:  health.Delays{Low: 30 * time.Millisecond, High: 200 * time.Millisecond},
				TimerLag:    health.Delays{Low: 60 * time.Millisecond, High: 150 * time.Millisecond},
				MemoryStall: health.Thresholds{Low: 0.2, High: 0.4}, HostCPU: health.Thresholds{Low: 0.6, High: 0.9}, CPULimit: 0.5,
			},
		},
		APIKeysFile: "testdata/keys/keys.yaml",
		Store: Store{Redis: Redis{
			URL: "rediss://app@redis.internal.example:6380/2", PasswordFile: "testdata/good/redis.password", Prefix: "shop",
			OnFailure: limits.Closed, Instances: 3, Heartbeat: true, Timeout: 80 * time.Millisecond, CacheRefusals: true,
			Sharing: limits.SharedByLease, Lease: 300 * time.Millisecond, MergeEvery: 100 * time.Millisecond,
		}, Regions: Regions{
			Region: "eu", Weights: map[string]int64{"eu": 2, "us": 1}, Home: "rediss://home.internal.example:6380/3",
			PasswordFile: "testdata/good/redis.password", Prefix: "shop-home", Lease: 400 * time.Millisecond, Timeout: 250 * time.Millisecond,
		}},
		Pumpkin: Pumpkin{
			PollAfter: 30 * time.Second, PollIdle: 45 * time.Second, DefaultLang: "de", File: "testdata/good/pumpkin.json",
			Templates: map[string]banner.Entry{"search-off": {
				Severity: banner.Major, URL: "https://status.example/", LinkText: "Mehr", Sticky: true, RecoverSpread: 60,
				Message:  map[string]string{"de": "Die Suche ist eine Weile aus.", "en": "Search is off for a while."},
				Features: map[string]banner.Feature{"search": {Off: 1}, "*": {Off: 0.25}}, TTL: 30 * time.Minute,
			}},
			Auto: []banner.AutoRule{{
				ID: "overload", Template: "search-off", EnterFor: 5 * time.Second, ExitFor: 90 * time.Second, MinHold: 3 * time.Minute,
				Step: 20 * time.Second, TTL: 4 * time.Minute,
				When: map[string]banner.Levels{"pressure": {High: 0.95, Low: 0.4}, "cpu": {High: 1}},
			}},
			Redis: PumpkinRedis{
				URL: "redis+cluster://redis.internal.example:6379", PasswordFile: "testdata/good/redis.password", Namespace: "shop",
				SnapshotFile: "testdata/good/state.json",
			},
			AdminListen: "127.0.0.1:9181", TokenFile: "testdata/good/admin.token",
			AdminHosts: []string{"admin.internal.example"}, AuditFile: "testdata/good/audit.jsonl",
		},
		Upstreams: map[string]*url.URL{"events": {Scheme: "https", Host: "events.internal.example", Path: "/v1"}},
	})
}

// TestWhatIsOffByDefaultIsOnWhenItIsThere is about signals that the library watches only when it is asked to.
func TestWhatIsOffByDefaultIsOnWhenItIsThere(t *testing.T) {
	on := program()
	on.Shed.Health.MemoryStall, on.Shed.Health.HostCPU = health.Thresholds{Low: 0.3, High: 0.4}, health.Thresholds{Low: 0.3, High: 0.4}
	off := parsed(t, "health: {cpu: {}}", on).Shed.Health
	if off.MemoryStall != (health.Thresholds{}) || off.HostCPU != (health.Thresholds{}) {
		t.Errorf("absent: %+v", off)
	}
	defaults := parsed(t, "health: {memory_stall: {}, host_cpu: {high: 0.99}}", Config{}).Shed.Health
	if defaults.MemoryStall != (health.Thresholds{Low: 0.1, High: 0.25}) || defaults.HostCPU != (health.Thresholds{Low: 0.75, High: 0.99}) {
		t.Errorf("there: %+v", defaults)
	}
	half := parsed(t, "health: {scheduling: {low: 99ms}, timer_lag: {high: 51ms}}", Config{}).Shed.Health
	want := health.Config{Scheduling: health.Delays{Low: 99 * time.Millisecond, High: 100 * time.Millisecond},
		TimerLag: health.Delays{Low: 50 * time.Millisecond, High: 51 * time.Millisecond}}
	if !reflect.DeepEqual(half, want) {
		t.Errorf("half of it: %+v, want %+v", half, want)
	}
}

// TestPoolsDependenciesAndChecksStayTheProgramsOwn: the file has no words for functions.
func TestPoolsDependenciesAndChecksStayTheProgramsOwn(t *testing.T) {
	own := program()
	own.Shed.Health.Pools = []health.Pool{{Name: "db", Routes: []string{"a"}}}
	own.Shed.Health.Dependencies = []health.Dependency{{Name: "d", Routes: []string{"a"}}}
	own.Shed.Health.Checks = []health.Check{{Name: "k"}}
	c := parsed(t, "health: {cpu: {high: 0.8}}", own).Shed.Health
	if !reflect.DeepEqual(c.Pools, own.Shed.Health.Pools) || !reflect.DeepEqual(c.Dependencies, own.Shed.Health.Dependencies) || len(c.Checks) != 1 {
		t.Errorf("%+v", c)
	}
	c.Pools[0].Name, c.Dependencies[0].Name, c.Checks[0].Name = "changed", "changed", "changed"
	c.Pools[0].Routes[0] = "changed"
	if h := own.Shed.Health; h.Pools[0].Name != "db" || h.Pools[0].Routes[0] != "a" || h.Dependencies[0].Name != "d" || h.Checks[0].Name != "k" {
		t.Error("writing to the result changed the program's configuration")
	}
}

func TestZeroInTheFileMeansZero(t *testing.T) {
	if q := parsed(t, "queue: {capacity: 0}", Config{}).Shed.Queue; q.Capacity >= 0 {
		t.Errorf("capacity 0 became %d, which is the default", q.Capacity)
	}
	l := parsed(t, "limits: [{name: a, token_bucket: {capacity: 0, refill: 1/s}}]", Config{}).Shed.Limits
	if rule := l[0].Rule.(limits.TokenBucket); rule.Capacity != 0 {
		t.Errorf("capacity 0 became %d", rule.Capacity)
	}
}

// TestTheBoundsOfConcurrencyAreTheLibrarysOwn goes through small configurations: what Parse accepts the library takes
// without moving what was written, and nothing that the library would take so is refused.
func TestTheBoundsOfConcurrencyAreTheLibrarysOwn(t *testing.T) {
	values := []int{0, 1, 2, 4, 20, 499, 500, 501, 1000}
	for _, algorithm := range concurrency.Algorithms() {
		for _, low := range values {
			for _, high := range values {
				for _, initial := range values {
					text := "concurrency: {algorithm: " + algorithm
					for name, n := range map[string]int{"min": low, "max": high, "initial": initial} {
						if n > 0 {
							text += fmt.Sprintf(", %s: %d", name, n)
						}
					}
					_, err := Parse("f", []byte(text+"}"), Config{})
					e, refusal := concurrency.New(concurrency.Config{Algorithm: algorithm, Min: low, Max: high, Initial: initial})
					kept := refusal == nil && (initial == 0 || e.Status().Limit == initial)
					if (err == nil) != kept {
						t.Errorf("%s}: Parse says %v; the library says %v, kept: %v", text, err, refusal, kept)
					}
				}
			}
		}
	}
}

func TestThePathOfTheTokenFileIsRelativeToTheFile(t *testing.T) {
	for name, want := range map[string]string{"f.yaml": "a/t", "/etc/spillway/f.yaml": "/etc/spillway/a/t", "../f.yaml": "../a/t"} {
		c, err := Parse(name, []byte("pumpkin: {admin: {token_file: a/t}}"), Config{})
		if err != nil || c.Pumpkin.TokenFile != want {
			t.Errorf("%s: %+v, %v, want %s", name, c, err, want)
		}
	}
	if c := parsed(t, "pumpkin: {admin: {token_file: /run/t}}", Config{}); c.Pumpkin.TokenFile != "/run/t" {
		t.Errorf("an absolute path became %s", c.Pumpkin.TokenFile)
	}
}

func TestTheResultSharesNoMemoryWithTheProgram(t *testing.T) {
	over := program()
	c := parsed(t, "queue: {}", over)
	c.Shed.Routes[0].Name = "changed"
	c.Shed.Clients.Identify[0] = "changed"
	c.Shed.Clients.TrustedProxies[0] = netip.Prefix{}
	c.Shed.Clients.ExemptFrom[0] = netip.Prefix{}
	if !reflect.DeepEqual(over.Shed.Routes, program().Shed.Routes) || !reflect.DeepEqual(over.Shed.Clients, program().Shed.Clients) {
		t.Error("writing to the result changed the program's configuration")
	}
}
