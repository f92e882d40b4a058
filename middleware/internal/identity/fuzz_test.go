package identity

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/shed"
)

var seeds = []string{
	"", " ", ",", ",,,", "9.9.9.9", "9.9.9.9:1234", "[2001:db8::1]:1", "[2001:db8::1]", "2001:db8::1", "fe80::1%eth0",
	"::ffff:1.2.3.4", "[::ffff:1.2.3.4]:9", "1.2.3.4, 10.0.0.1", "unknown", "_hidden", "\"", "\\", "[", "]", "[]", "[]:",
	"for=1.2.3.4", `for="[2001:db8::17]:4711";proto=https, for=10.0.0.2`, `for="1.2.3.4`, `for=1.2.3.4;for=5.6.7.8`, "%", "1.2.3.4%",
	strings.Repeat("10.0.0.1,", 40), strings.Repeat(" ", 5000),
}

// Whatever a client writes, what the trusted proxy writes after it decides.
func FuzzClientCannotReachPastTheProxy(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	lists := resolver(f, behindProxies)
	rfc7239 := behindProxies
	rfc7239.Forwarded = "forwarded"
	elements := resolver(f, rfc7239)
	f.Fuzz(func(t *testing.T, written string) {
		for _, proxies := range []string{"", ", 10.0.0.2"} {
			if got := lists.Identify(request("10.0.0.1:1", "X-Forwarded-For", written+", 9.9.9.9"+proxies), "").Client; got != "ip:9.9.9.9" {
				t.Errorf("after %q the client is %q", written, got)
			}
		}
		if got := elements.Identify(request("10.0.0.1:1", "Forwarded", written+`, for="9.9.9.9:80";proto=https, for=10.0.0.2`), "").Client; got != "ip:9.9.9.9" {
			t.Errorf("after %q the client is %q", written, got)
		}
		if got := lists.Identify(request("8.8.8.8:1", "X-Forwarded-For", written), "").Client; got != "ip:8.8.8.8" {
			t.Errorf("a direct peer that writes %q is %q", written, got)
		}
	})
}

// An address is read in its one canonical form, or not at all.
func FuzzAddressesAreCanonical(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		addr := parseAddress(text)
		if !addr.IsValid() {
			return
		}
		if addr.Is4In6() || addr.Zone() != "" || addr.IsUnspecified() {
			t.Fatalf("%q is read as %v", text, addr)
		}
		for _, again := range []string{addr.String(), netip.AddrPortFrom(addr, 7).String()} {
			if parseAddress(again) != addr {
				t.Errorf("%q is read as %v, but %q as %v", text, addr, again, parseAddress(again))
			}
		}
		one := canonical(addr, 64)
		if canonical(one, 64) != one {
			t.Errorf("%v: reducing it twice gives another client", addr)
		}
		r := resolver(t, shed.Clients{})
		if id := r.Identify(request(text), ""); id.IP != one || !strings.HasPrefix(id.Client, "ip:") {
			t.Errorf("the peer %q is %+v", text, id)
		}
	})
}
