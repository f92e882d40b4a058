package identity

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/shed"
)

const salt = "0123456789abcdef"

func TestOnlyKeysOfTheListNameTheirHolders(t *testing.T) {
	r := resolver(t, shed.Clients{APIKeys: []shed.APIKey{
		{Name: "alice", Digest: shed.DigestKey("alice-key", ""), Plan: "premium"},
		{Name: "alice", Digest: shed.DigestKey("alice-next", ""), Plan: "premium"}, // a key in exchange
		{Name: "bob", Digest: shed.DigestKey("bob-key", salt)},
		{Name: "carol", Digest: shed.DigestKey("carol-key", salt+salt)},
	}})
	for key, want := range map[string]Identity{
		"alice-key":                            {Client: "api_key:alice", Plan: "premium", By: "api_key"},
		"alice-next":                           {Client: "api_key:alice", Plan: "premium", By: "api_key"},
		"bob-key":                              {Client: "api_key:bob", By: "api_key"},
		"carol-key":                            {Client: "api_key:carol", By: "api_key"},
		"made-up":                              {Client: "ip:192.0.2.1", By: "ip"},
		"alice":                                {Client: "ip:192.0.2.1", By: "ip"},
		"":                                     {Client: "ip:192.0.2.1", By: "ip"},
		strings.Repeat("x", 257):               {Client: "ip:192.0.2.1", By: "ip"},
		shed.DigestKey("bob-key", "").String(): {Client: "ip:192.0.2.1", By: "ip"},
	} {
		got := r.Identify(request("192.0.2.1:1", "X-API-Key", key), "")
		if got.Client != want.Client || got.Plan != want.Plan || got.By != want.By {
			t.Errorf("%q is %+v, want %+v", key, got, want)
		}
	}
	if r.Labels() {
		t.Error("keys that are verified are no labels")
	}
	if !resolver(t, shed.Clients{}).Labels() || resolver(t, shed.Clients{Identify: []string{"ip"}}).Labels() {
		t.Error("keys are labels exactly where they name clients and nobody verifies them")
	}
}

func TestAnEmptyListOfKeysKnowsNoKey(t *testing.T) {
	r := resolver(t, shed.Clients{APIKeys: []shed.APIKey{}})
	if got := r.Identify(request("192.0.2.1:1", "X-API-Key", "k"), "").Client; got != "ip:192.0.2.1" {
		t.Error(got)
	}
}

func TestNobodyIsWhoHasNoKeyOfTheListWhereKeysAreTheOnlyWay(t *testing.T) {
	r := resolver(t, shed.Clients{Identify: []string{"api_key"}, APIKeys: []shed.APIKey{{Name: "a", Digest: shed.DigestKey("k", "")}}})
	if got := r.Identify(request("192.0.2.1:1", "X-API-Key", "other"), ""); got.Client != "" || got.By != "" {
		t.Errorf("%+v", got)
	}
}

func TestListsOfKeysThatAreWrongAreRefused(t *testing.T) {
	d := func(key string) shed.KeyDigest { return shed.DigestKey(key, "") }
	var salts []shed.APIKey
	for _, c := range "123456789" {
		salts = append(salts, shed.APIKey{Name: "a", Digest: shed.DigestKey("k", salt+string(c))})
	}
	salts[0].Name = strings.Repeat("b", 64)
	resolver(t, shed.Clients{APIKeys: salts[:8]}) // as many, and as long, as may be
	for want, list := range map[string][]shed.APIKey{
		"the name \"\"":       {{Digest: d("k")}},
		"the name \"a\\n\"":   {{Name: "a\n", Digest: d("k")}},
		"is not 1 to 64":      {{Name: strings.Repeat("a", 65), Digest: d("k")}},
		"no digest":           {{Name: "a"}},
		"has two plans":       {{Name: "a", Digest: d("k"), Plan: "free"}, {Name: "a", Digest: d("l"), Plan: "premium"}},
		"has the same key as": {{Name: "a", Digest: d("k")}, {Name: "b", Digest: d("k")}},
		"9 different salts":   salts,
	} {
		if _, err := New(shed.Clients{APIKeys: list}, false, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s: %v", want, err)
		}
	}
}

func TestProcessesThatShareBalancesKnowClientsByTheSameName(t *testing.T) {
	name := func(c shed.Clients, shared bool) string {
		r, err := New(c, false, shared)
		if err != nil {
			t.Fatal(err)
		}
		return r.Identify(request("192.0.2.1:1", "X-API-Key", "k"), "").Client
	}
	public := "key:ac9245052223665a8181486dc7a88047" // the same in every process, whatever its version
	if got := name(shed.Clients{}, true); got != public {
		t.Errorf("%s, want %s", got, public)
	}
	if got := name(shed.Clients{}, false); got == public || got != name(shed.Clients{}, false) {
		t.Errorf("a process of its own: %s", got)
	}
	a, b := shed.Clients{Secret: []byte("a")}, shed.Clients{Secret: []byte("b")}
	if name(a, true) == name(b, true) || name(a, true) != name(a, false) || name(a, true) == public {
		t.Error("the secret decides")
	}
}
