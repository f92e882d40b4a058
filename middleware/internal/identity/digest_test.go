package identity

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/shed"
)

func TestKeysNeverShow(t *testing.T) {
	const key = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"
	id := resolver(t, shed.Clients{}).Identify(request("1.2.3.4:1", "X-API-Key", key), "")
	if strings.Contains(id.Client, key) || strings.Contains(id.Client, hex.EncodeToString([]byte(key))) {
		t.Errorf("the client's name %q holds the key", id.Client)
	}
	if plain := sha256.Sum256([]byte(key)); strings.Contains(id.Client, hex.EncodeToString(plain[:8])) {
		t.Errorf("the client's name %q can be looked up in a table", id.Client)
	}
	again := resolver(t, shed.Clients{}).Identify(request("5.6.7.8:1", "X-API-Key", key), "")
	if again.Client != id.Client {
		t.Errorf("one key has two names, %q and %q: two middlewares would not know the client as the same", id.Client, again.Client)
	}
}

func TestDigestIsTruncatedHMAC(t *testing.T) {
	mac := hmac.New(sha256.New, []byte("secret"))
	mac.Write([]byte("key:value"))
	d := newDigester([]byte("secret"))
	for range 2 { // states are used again
		if got, want := d.nameOf("key:", "value"), "key:"+hex.EncodeToString(mac.Sum(nil)[:16]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		d.nameOf("key:", "another")
	}
}

func TestEachProcessHasASecretOfItsOwnAndKeysDoNotStay(t *testing.T) {
	if a, b := randomSecret(), randomSecret(); len(a) != sha256.Size || bytes.Equal(a, b) || bytes.Equal(a, make([]byte, len(a))) {
		t.Errorf("the secrets %x and %x are not drawn", a, b)
	}
	d := newDigester([]byte("secret"))
	d.nameOf("key:", "value")
	if d.in = d.in[:cap(d.in)]; bytes.Contains(d.in, []byte("value")) {
		t.Errorf("the key is still in memory: %q", d.in)
	}
	m := newKeyGroup("salt").macs.Get().(*keyMAC)
	if m.of("value"); bytes.Contains(m.in[:], []byte("value")) {
		t.Errorf("the key is still in memory: %q", m.in)
	}
}

func TestHostileKeysNameNobody(t *testing.T) {
	r := resolver(t, shed.Clients{})
	for why, lines := range map[string][]string{
		"none":               nil,
		"empty":              {"X-API-Key", ""},
		"257 bytes":          {"X-API-Key", strings.Repeat("k", 257)},
		"10 KB":              {"X-API-Key", strings.Repeat("k", 10_000)},
		"control characters": {"X-API-Key", "a\x01b"},
		"a tab":              {"X-API-Key", "a\tb"},
		"DEL":                {"X-API-Key", "a\x7fb"},
		"not ASCII":          {"X-API-Key", "schlüssel"},
		"two lines":          {"X-API-Key", "a", "X-API-Key", "b"},
	} {
		if got := r.Identify(request("1.2.3.4:1", lines...), "").Client; got != "ip:1.2.3.4" {
			t.Errorf("%s: the client is %q", why, got)
		}
	}
	for _, key := range []string{"k", strings.Repeat("k", 256), "Bearer a b", " ", "~"} {
		if got := r.Identify(request("1.2.3.4:1", "X-API-Key", key), "").Client; !strings.HasPrefix(got, "key:") {
			t.Errorf("a key of %d bytes: the client is %q", len(key), got)
		}
	}
}

// A name says of which kind it is, so nobody can choose a key or principal that is somebody else's name.
func TestNamesOfDifferentKindsNeverMeet(t *testing.T) {
	r, err := New(shed.Clients{}, true, false)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, p := range []string{
		"ip:1.2.3.4", "key:" + strings.Repeat("0", 32), "unknown", "a", "~", strings.Repeat("a", 128), strings.Repeat("a", 129), "a\x00", "principal:a",
	} {
		name := r.Identify(request("1.2.3.4:1"), p).Client
		asItIs := len(p) <= 128 && printable(p)
		if asItIs && name != "principal:"+p || !asItIs && (!strings.HasPrefix(name, "principal-digest:") || strings.Contains(name, p)) {
			t.Errorf("the principal %q is named %q", p, name)
		}
		if other, twice := seen[name]; twice {
			t.Errorf("%q and %q are both named %q", p, other, name)
		}
		seen[name] = p
	}
}

func TestAPIKeyHeaderIsConfigurable(t *testing.T) {
	r := resolver(t, shed.Clients{APIKeyHeader: "authorization"})
	if got := r.Identify(request("1.2.3.4:1", "Authorization", "Bearer t"), "").Client; !strings.HasPrefix(got, "key:") {
		t.Errorf("the client is %q", got)
	}
	if got := r.TakesAPIKeys(); got != "authorization" {
		t.Errorf("keys go into %q", got)
	}
	if got := resolver(t, shed.Clients{APIKeyHeader: "X-az09!#$%&'*+-.^_`|~"}).TakesAPIKeys(); got != "X-az09!#$%&'*+-.^_`|~" {
		t.Errorf("keys go into %q", got)
	}
	if got := resolver(t, shed.Clients{Identify: []string{"ip"}}).TakesAPIKeys(); got != "" {
		t.Errorf("keys go into %q though they name nobody", got)
	}
}

func BenchmarkIdentify(b *testing.B) {
	r := resolver(b, behindProxies)
	for name, req := range map[string][]string{
		"key":       {"X-API-Key", "sk_live_4eC39HqLyjWDarjtT1zdp7dc"},
		"peer":      nil,
		"forwarded": {"X-Forwarded-For", "6.6.6.6, 2001:db8::1, 10.0.0.3, 10.0.0.2"},
	} {
		req := request("10.0.0.1:1234", req...)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r.Identify(req, "").Client == "" {
					b.Fatal("nobody")
				}
			}
		})
	}
}
