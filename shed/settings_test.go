package shed

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits/concurrency"
)

func TestBadConfigurationIsRefusedWithWhatToDo(t *testing.T) {
	ok := bucket("ok", 1, 1)
	for _, c := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"no rule", Config{Limits: []Limit{{Name: "x"}}}, "give it one"},
		{"twice", Config{Limits: []Limit{ok, ok}}, "used twice"},
		{"unknown route", Config{Limits: []Limit{{Name: "x", Rule: ok.Rule, Routes: []string{"nowhere"}}}}, `no route "nowhere"`},
		{"negative wait", Config{Queue: Queue{MaxWait: -1}}, "negative"},
		{"max_wait alone", Config{Limits: []Limit{{Name: "x", Rule: ok.Rule, MaxWait: time.Second}}}, "excess: delay"},
		{"negative capacity", Config{Limits: []Limit{bucket("x", -1, 1)}}, "x"},
		{"route twice", Config{Routes: []Route{{Name: "r"}, {Name: "r"}}}, "used twice"},
		{"nameless route", Config{Routes: []Route{{Match: "GET /"}}}, "needs a name"},
		{"a pattern of Echo's", Config{Routes: []Route{{Name: "r", Match: "POST /orders/:id"}}}, "{id} stands for any"},
		{"a method misspelt", Config{Routes: []Route{{Name: "r", Match: "PSOT /orders"}}}, "did you mean POST?"},
		{"a path never clean", Config{Routes: []Route{{Name: "r", Match: "/a//b"}}}, "without //"},
		{"a cost in a cookie", Config{Routes: []Route{{Name: "r", CostHeader: "Set-Cookie"}}}, "a field of its own"},
		{"trusting everybody in halves", Config{Clients: Clients{TrustedProxies: []netip.Prefix{
			netip.MustParsePrefix("0.0.0.0/1"), netip.MustParsePrefix("128.0.0.0/1"),
		}}}, "the addresses of your proxies"},
		{"keys in Host", Config{Clients: Clients{APIKeyHeader: "Host"}}, "a header of its own"},
		{"addresses in a cookie", Config{Clients: Clients{Forwarded: "Cookie"}}, "your proxy writes"},
		{"negative cost", Config{Routes: []Route{{Name: "r", Cost: -1}}}, "negative"},
		{"exempt and long-lived", Config{Routes: []Route{{Name: "r", Exempt: true, LongLived: 1}}}, "exempt"},
		{"exempt and limited", Config{
			Routes: []Route{{Name: "r", Exempt: true}},
			Limits: []Limit{{Name: "x", Rule: ok.Rule, Routes: []string{"r"}}},
		}, "never charged"},
		{"algorithm", Config{Concurrency: concurrency.Config{Algorithm: "magic"}}, "magic"},
		{"thresholds", Config{Health: health.Config{CPU: health.Thresholds{Low: 0.9, High: 0.5}}}, "0.9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := New(c.cfg)
			if err == nil {
				s.Close()
				t.Fatal("was accepted")
			}
			if !strings.HasPrefix(err.Error(), "shed: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q does not say %q", err, c.want)
			}
		})
	}
}

func TestCraftedNamesShareNoBalance(t *testing.T) {
	r := &rule{Limit: Limit{Per: PerClientRoute}}
	a, _ := r.key(&route{Route: Route{Name: "a"}}, &Request{Client: "bc"})
	b, _ := r.key(&route{Route: Route{Name: "ab"}}, &Request{Client: "c"})
	if a == b {
		t.Fatalf("both are %q", a)
	}
}
