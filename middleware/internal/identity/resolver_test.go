package identity

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/shed"
)

// behindProxies trusts 10/8 and, for IPv6, fd00::/8.
var behindProxies = shed.Clients{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}

func resolver(t testing.TB, c shed.Clients) *Resolver {
	t.Helper()
	r, err := New(c, false, false)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// request comes from peer with header lines given as name, value, name, value.
func request(peer string, lines ...string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = peer
	for i := 0; i < len(lines); i += 2 {
		r.Header.Add(lines[i], lines[i+1])
	}
	return r
}

func TestClientIsTheRightmostAddressThatIsNoProxy(t *testing.T) {
	const nobody = ""
	forwarded, cloudflare, word, name := behindProxies, behindProxies, behindProxies, behindProxies
	forwarded.Forwarded, cloudflare.Forwarded, word.Forwarded, name.Forwarded = "forwarded", "CF-Connecting-IP", "x_forwarded_for", "x-forwarded-for"
	for _, row := range []struct {
		why     string
		clients shed.Clients
		peer    string
		lines   []string
		want    string
	}{
		// ip-spoof: no proxy is configured, so nothing but the peer counts.
		{"forged list from a direct peer", shed.Clients{}, "8.8.8.8:1", []string{"X-Forwarded-For", "6.6.6.6"}, "ip:8.8.8.8"},
		{"every header that anybody ever believed", shed.Clients{}, "8.8.8.8:1", []string{
			"X-Forwarded-For", "6.6.6.6", "X-Real-IP", "6.6.6.6", "True-Client-IP", "6.6.6.6", "Forwarded", "for=6.6.6.6",
			"CF-Connecting-IP", "6.6.6.6", "Fastly-Client-IP", "6.6.6.6", "X-Azure-ClientIP", "6.6.6.6"}, "ip:8.8.8.8"},
		{"a private peer is not a proxy by that", shed.Clients{}, "10.0.0.1:1", []string{"X-Forwarded-For", "6.6.6.6"}, "ip:10.0.0.1"},
		{"forged list from a peer outside the proxies", behindProxies, "8.8.8.8:1", []string{"X-Forwarded-For", "6.6.6.6"}, "ip:8.8.8.8"},
		{"only the configured header counts", behindProxies, "10.0.0.1:1", []string{"X-Real-IP", "6.6.6.6", "Forwarded", "for=6.6.6.6"}, "ip:10.0.0.1"},

		// The walk.
		{"client, then proxy", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "9.9.9.9"}, "ip:9.9.9.9"},
		{"what the client wrote itself stands left", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "6.6.6.6, 9.9.9.9"}, "ip:9.9.9.9"},
		{"garbage left of the client is never looked at", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "\",;x, 9.9.9.9"}, "ip:9.9.9.9"},
		{"proxies are passed over", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "6.6.6.6, 9.9.9.9, 10.0.0.3, 10.0.0.2"}, "ip:9.9.9.9"},
		{"lines are one list", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "6.6.6.6", "X-Forwarded-For", "9.9.9.9", "X-Forwarded-For", "10.0.0.2"}, "ip:9.9.9.9"},
		{"all are proxies: the leftmost", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "10.0.0.9, 10.0.0.2"}, "ip:10.0.0.9"},
		{"no list: the proxy itself asks", behindProxies, "10.0.0.1:1", nil, "ip:10.0.0.1"},
		{"the list by its word", word, "10.0.0.1:1", []string{"X-Forwarded-For", "6.6.6.6, 9.9.9.9"}, "ip:9.9.9.9"},
		{"the list by its name", name, "10.0.0.1:1", []string{"X-Forwarded-For", "6.6.6.6, 9.9.9.9"}, "ip:9.9.9.9"},
		{"an empty place at the left", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", " ,9.9.9.9"}, "ip:9.9.9.9"},

		// Never left of garbage.
		{"garbage next to the proxy", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "9.9.9.9, garbage, 10.0.0.9"}, nobody},
		{"an empty place at the right", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "9.9.9.9,"}, nobody},
		{"an empty place in front of a proxy", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", ",10.0.0.2"}, nobody},
		{"an empty list", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", ""}, nobody},
		{"a unix socket among the proxies", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "9.9.9.9, unix:"}, nobody},
		{"the unspecified address", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "9.9.9.9, 0.0.0.0"}, nobody},

		// Spellings.
		{"port, as Azure writes it", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "9.9.9.9:1234"}, "ip:9.9.9.9"},
		{"mapped", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "::ffff:102:304"}, "ip:1.2.3.4"},
		{"IPv6", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "2001:db8::1"}, "ip:2001:db8::/64"},
		{"IPv6 in brackets", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "[2001:db8::1]"}, "ip:2001:db8::/64"},
		{"IPv6 with port", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "[2001:db8::1]:1234"}, "ip:2001:db8::/64"},
		{"IPv4 in brackets is nothing", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "[9.9.9.9]"}, nobody},
		{"an IPv6 proxy", behindProxies, "[fd00::1]:1", []string{"X-Forwarded-For", "9.9.9.9"}, "ip:9.9.9.9"},
		{"a mapped proxy", behindProxies, "[::ffff:10.0.0.1]:1", []string{"X-Forwarded-For", "9.9.9.9"}, "ip:9.9.9.9"},

		// Forwarded, RFC 7239.
		{"plain", forwarded, "10.0.0.1:1", []string{"Forwarded", "for=6.6.6.6, for=9.9.9.9;proto=https;by=10.0.0.1"}, "ip:9.9.9.9"},
		{"quoted, with port", forwarded, "10.0.0.1:1", []string{"Forwarded", `For="[2001:db8::17]:4711"`}, "ip:2001:db8::/64"},
		{"an open quote swallows nothing", forwarded, "10.0.0.1:1", []string{"Forwarded", `for="6.6.6.6, for=9.9.9.9`}, "ip:9.9.9.9"},
		{"commas in quotes do not part elements", forwarded, "10.0.0.1:1", []string{"Forwarded", `for=9.9.9.9;x="a, for=6.6.6.6"`}, "ip:9.9.9.9"},
		{"two addresses in one element", forwarded, "10.0.0.1:1", []string{"Forwarded", "for=6.6.6.6;for=9.9.9.9"}, nobody},
		{"a quote that is left open at the left", forwarded, "10.0.0.1:1", []string{"Forwarded", `by="a;for=9.9.9.9`}, nobody},
		{"a quote alone", forwarded, "10.0.0.1:1", []string{"Forwarded", `a";for="`}, nobody},
		{"nothing in quotes", forwarded, "10.0.0.1:1", []string{"Forwarded", `for=""`}, nobody},
		{"a quote that only ends", forwarded, "10.0.0.1:1", []string{"Forwarded", `a=";for=69.9.9.9"`}, nobody},
		{"a quote that only begins", forwarded, "10.0.0.1:1", []string{"Forwarded", `for="9.9.9.96;a="`}, nobody},
		{"an obfuscated node", forwarded, "10.0.0.1:1", []string{"Forwarded", "for=9.9.9.9, for=_hidden"}, nobody},
		{"an unknown node", forwarded, "10.0.0.1:1", []string{"Forwarded", "for=9.9.9.9, for=unknown"}, nobody},
		{"a backslash", forwarded, "10.0.0.1:1", []string{"Forwarded", `for="\"9.9.9.9"`}, nobody},
		{"no for at all", forwarded, "10.0.0.1:1", []string{"Forwarded", "for=9.9.9.9, proto=https"}, nobody},

		// A header with a single address.
		{"one", cloudflare, "10.0.0.1:1", []string{"CF-Connecting-IP", "9.9.9.9"}, "ip:9.9.9.9"},
		{"none", cloudflare, "10.0.0.1:1", nil, "ip:10.0.0.1"},
		{"the last of several lines", cloudflare, "10.0.0.1:1", []string{"CF-Connecting-IP", "6.6.6.6", "CF-Connecting-IP", "9.9.9.9"}, "ip:9.9.9.9"},
		{"a list where one is due", cloudflare, "10.0.0.1:1", []string{"CF-Connecting-IP", "6.6.6.6, 9.9.9.9"}, nobody},
		{"from somebody who is no proxy", cloudflare, "8.8.8.8:1", []string{"CF-Connecting-IP", "6.6.6.6"}, "ip:8.8.8.8"},

		// Bounds.
		{"32 proxies", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "9.9.9.9" + strings.Repeat(",10.0.0.2", 31)}, "ip:9.9.9.9"},
		{"33 proxies", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "9.9.9.9" + strings.Repeat(",10.0.0.2", 32)}, nobody},
		{"10 KB from the client", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", strings.Repeat("6", 10_000) + ", 9.9.9.9"}, "ip:9.9.9.9"},
		{"10 KB at the right", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "9.9.9.9, " + strings.Repeat("6", 10_000)}, nobody},
		{"blanks past the bound", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "9.9.9.9" + strings.Repeat(" ", 5000) + ",10.0.0.2"}, nobody},
		{"an address that just fits", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "9.9.9.9," + strings.Repeat(" ", 4080) + "10.0.0.2"}, "ip:9.9.9.9"},
		{"an address that the bound cuts", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "69.9.9.9," + strings.Repeat(" ", 4080) + "10.0.0.2"}, nobody},
		{"a line that fills the bound", behindProxies, "10.0.0.1:1", []string{"X-Forwarded-For", "9.9.9.9", "X-Forwarded-For", strings.Repeat(" ", 4088) + "10.0.0.2"}, nobody},
	} {
		t.Run(row.why, func(t *testing.T) {
			req := request(row.peer, row.lines...)
			if got := resolver(t, row.clients).Identify(req, "").Client; got != row.want {
				t.Errorf("client is %q, want %q", got, row.want)
			}
			if req.RemoteAddr != row.peer {
				t.Errorf("RemoteAddr became %q", req.RemoteAddr)
			}
		})
	}
}

func TestOneAddressIsOneClient(t *testing.T) {
	for _, same := range [][]string{
		{"1.2.3.4:5", "1.2.3.4:6", "1.2.3.4", "[::ffff:1.2.3.4]:9", "::ffff:102:304"}, // ip-port
		{"[::1]:9", "::1", "[::1]"}, // ip-port
		{"[2001:db8::1]:1", "[2001:db8::ffff:ffff:ffff:ffff]:1", "2001:db8::2", "[2001:db8::3%eth0]:1"}, // ipv6-rotation
		{"[64:ff9b::102:304]:1", "1.2.3.4:1"}, // an IPv4 client through NAT64
	} {
		for _, peer := range same[1:] {
			a := resolver(t, shed.Clients{}).Identify(request(same[0]), "")
			b := resolver(t, shed.Clients{}).Identify(request(peer), "")
			if a.Client == "" || a.Client != b.Client || a.IP != b.IP {
				t.Errorf("%s is %q and %s is %q", same[0], a.Client, peer, b.Client)
			}
		}
	}
	other := resolver(t, shed.Clients{}).Identify(request("[2001:db8:0:1::1]:1"), "")
	if one := resolver(t, shed.Clients{}).Identify(request("[2001:db8::1]:1"), ""); one.Client == other.Client {
		t.Errorf("two prefixes share the name %q", one.Client)
	}
}

func TestPrefixOfIPv6IsConfigurable(t *testing.T) {
	for bits, want := range map[int]string{48: "ip:2001:db8:1::/48", 56: "ip:2001:db8:1:200::/56", 128: "ip:2001:db8:1:2ff::1"} {
		if got := resolver(t, shed.Clients{IPv6Prefix: bits}).Identify(request("[2001:db8:1:2ff::1]:1"), "").Client; got != want {
			t.Errorf("%d bits: %q, want %q", bits, got, want)
		}
	}
}

func TestNobodyIsWhatTheConfigurationSays(t *testing.T) {
	for _, peer := range []string{"", "@", "/run/app.sock", "unix", ":80", "1.2.3.4.5:6", "0.0.0.0:1"} {
		for unknown, want := range map[string]Identity{
			"": {}, "refuse": {}, "shared": {Client: Unknown}, "exempt": {Anonymous: true},
		} {
			if got := resolver(t, shed.Clients{Unknown: unknown}).Identify(request(peer), ""); got != want {
				t.Errorf("peer %q, unknown %q: %+v, want %+v", peer, unknown, got, want)
			}
		}
	}
	// Who is known is not anonymous, whatever is done about others.
	if got := resolver(t, shed.Clients{Unknown: "exempt"}).Identify(request("1.2.3.4:1"), ""); got.Client != "ip:1.2.3.4" || got.Anonymous {
		t.Errorf("a known client: %+v", got)
	}
}

func TestWaysAreTriedInOrder(t *testing.T) {
	named := request("1.2.3.4:1", "X-API-Key", "k")
	key := ownNames().digest("key:", "k")
	for _, row := range []struct {
		identify   []string
		principals bool
		req        *http.Request
		principal  string
		want       string
	}{
		{nil, false, named, "", key},
		{nil, true, named, "alice", "principal:alice"},
		{nil, true, named, "", key},
		{nil, false, named, "alice", key},
		{[]string{"ip"}, true, named, "alice", "ip:1.2.3.4"},
		{[]string{"ip", "api_key"}, false, named, "", "ip:1.2.3.4"},
		{[]string{"api_key", "principal"}, true, named, "alice", key},
		{[]string{"api_key"}, false, request("1.2.3.4:1"), "", ""},
	} {
		r, err := New(shed.Clients{Identify: row.identify}, row.principals, false)
		if err != nil {
			t.Fatal(err)
		}
		got := r.Identify(row.req, row.principal)
		if got.Client != row.want {
			t.Errorf("%v, principal %q: %q, want %q", row.identify, row.principal, got.Client, row.want)
		}
		if got.IP != netip.MustParseAddr("1.2.3.4") {
			t.Errorf("%v: the address is %v; it must be known whatever names the client", row.identify, got.IP)
		}
	}
}

func TestBadSettingsAreRefusedByName(t *testing.T) {
	for want, c := range map[string]shed.Clients{
		`clients.ipv6_prefix is 47`:                    {IPv6Prefix: 47},
		`clients.ipv6_prefix is 129`:                   {IPv6Prefix: 129},
		`clients.identify lists "cookie"`:              {Identify: []string{"cookie"}},
		`clients.identify lists principal, but`:        {Identify: []string{"principal"}},
		`clients.api_key_header "X API"`:               {APIKeyHeader: "X API"},
		`clients.api_key_header "X:API"`:               {APIKeyHeader: "X:API"},
		`clients.forwarded "X,Y"`:                      {Forwarded: "X,Y"},
		`clients.unknown is "allow"`:                   {Unknown: "allow"},
		`clients.trusted_proxies[0] is not a network`:  {TrustedProxies: make([]netip.Prefix, 1)},
		`clients.exempt_from[0] is not a network`:      {ExemptFrom: make([]netip.Prefix, 1)},
		`clients.trusted_proxies[0] ::ffff:0.0.0.0/95`: {TrustedProxies: []netip.Prefix{netip.MustParsePrefix("::ffff:0:0/95")}},
	} {
		if _, err := New(c, false, false); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

func TestMappedNetworksAreIPv4Networks(t *testing.T) {
	c := shed.Clients{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}, ExemptFrom: []netip.Prefix{netip.MustParsePrefix("::ffff:127.0.0.1/128")}}
	r := resolver(t, c)
	if got := r.Identify(request("10.1.1.1:1", "X-Forwarded-For", "9.9.9.9"), "").Client; got != "ip:9.9.9.9" {
		t.Errorf("behind a proxy of a mapped network: %q", got)
	}
	if got := r.Identify(request("11.1.1.1:1", "X-Forwarded-For", "9.9.9.9"), "").Client; got != "ip:11.1.1.1" {
		t.Errorf("from next to the mapped network: %q", got)
	}
	whole := resolver(t, shed.Clients{ExemptFrom: []netip.Prefix{netip.MustParsePrefix("::ffff:0:0/96")}})
	if !whole.Exempts(netip.MustParseAddr("203.0.113.1")) || whole.Exempts(netip.MustParseAddr("2001:db8::1")) {
		t.Error("all of mapped IPv4 is not all of IPv4")
	}
	if !r.Exempts(netip.MustParseAddr("127.0.0.1")) || r.Exempts(netip.MustParseAddr("127.0.0.2")) || r.Exempts(netip.Addr{}) {
		t.Error("exempt_from does not hold exactly the loopback address")
	}
}
