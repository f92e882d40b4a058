package edge

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

// Who asks and for what is read by the configuration in force, from the next request on.
func TestAnEdgeFollowsItsShedder(t *testing.T) {
	s, err := shed.New(shed.Config{Routes: []shed.Route{{Name: "old", Match: "GET /x"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e, err := New(Config{Shedder: s})
	if err != nil {
		t.Fatal(err)
	}
	seen := func() (client, route string) {
		r := httptest.NewRequest("GET", "/x", nil)
		r.RemoteAddr = "192.0.2.1:7"
		r.Header.Set("X-API-Key", "k")
		r.Header.Set("X-Forwarded-For", "198.51.100.9")
		v := e.view.Load()
		return v.who.Identify(r, "").Client, v.routes.find(r).name
	}
	keyed, route := seen()
	if route != "old" {
		t.Errorf("route %q", route)
	}
	next := shed.Config{
		Routes:  []shed.Route{{Name: "new", Match: "GET /x"}},
		Clients: shed.Clients{Identify: []string{"ip"}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
		Limits:  []shed.Limit{{Name: "up", Unit: shed.RequestBytes, Rule: limits.TokenBucket{Capacity: 9, Refill: limits.PerSecond(9)}}},
	}
	if _, err := s.Reload(next); err != nil {
		t.Fatal(err)
	}
	if client, route := seen(); client != "ip:198.51.100.9" || route != "new" || !e.view.Load().bodies {
		t.Errorf("after the reload: client %q, route %q", client, route)
	}
	for what, bad := range map[string]shed.Config{
		"a pattern":   {Routes: []shed.Route{{Name: "x", Match: "nonsense"}}},
		"a principal": {Clients: shed.Clients{Identify: []string{"principal"}}},
	} {
		if _, err := s.Reload(bad); err == nil {
			t.Errorf("%s that cannot work was taken", what)
		}
		if client, route := seen(); client != "ip:198.51.100.9" || route != "new" {
			t.Errorf("%s that was refused changed who is seen: %q, %q", what, client, route)
		}
	}
	if _, err := s.Reload(shed.Config{}); err != nil {
		t.Fatal(err)
	}
	if client, _ := seen(); client != keyed {
		t.Errorf("a key has another name after reloads: %q, was %q", client, keyed)
	}
}

func TestOnlyOtherStoresThanMemoryAreSharedWithOtherProcesses(t *testing.T) {
	memory, err := limits.NewMemory(limits.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for why, row := range map[string]struct {
		store limits.Store
		want  bool
	}{"none": {nil, false}, "memory": {memory, false}, "another": {struct{ limits.Store }{memory}, true}} {
		if got := shares(row.store); got != row.want {
			t.Errorf("%s: %t", why, got)
		}
	}
}
